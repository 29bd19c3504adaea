import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback

from auxcst_sklearn import PAPER, CostSensitiveAuxMLP, CostSensitiveAuxMLPCV
from auxcst_sklearn._estimators import mlp_cv as mlp_cv_module
from auxcst_sklearn.metrics import cost_scorer, mean_cost
from tests.factories import QUICK

ALPHAS = [0, 0.4, 2.0]
COST_MATRIX = [[0, 1, 5], [2, 0, 1], [1, 3, 0]]
NETWORK = {"depth": 2, "width": 8, "max_epochs": 3, "n_networks": 2, **QUICK}


@pytest.fixture
def mlp_cv():
    return partial(CostSensitiveAuxMLPCV, alphas=ALPHAS, cv=3, **NETWORK)


def separate_costs(X, y, folds, weight, costs, **data):
    """Mean costs of left-out rows (n_alphas, n_folds), by separate fits."""
    path = np.empty((len(ALPHAS), len(folds)))
    for i, alpha in enumerate(ALPHAS):
        for j, (train, test) in enumerate(folds):
            model = CostSensitiveAuxMLP(alpha=alpha, **costs, **NETWORK)
            model.fit(X[train], y[train], **{name: v[train] for name, v in data.items()})
            tested = {name: v[test] for name, v in data.items() if name == "cost"}
            y_pred = model.predict(X[test])
            path[i, j] = mean_cost(y[test], y_pred, sample_weight=weight[test], **costs, **tested)
    return path


def test_alpha_has_the_least_cross_validated_cost(mlp_cv, problem):
    X, y, weight = problem.X, problem.y, np.random.RandomState(0).uniform(size=60)
    model = mlp_cv(cost_matrix=COST_MATRIX).fit(X, y, sample_weight=weight)

    folds = list(StratifiedKFold(3).split(X, y))
    expected = separate_costs(
        X, y, folds, weight, {"cost_matrix": COST_MATRIX}, sample_weight=weight
    )
    assert_allclose(model.mean_cost_path_, expected, rtol=1e-5)
    mean = np.average(expected, axis=1, weights=[weight[test].sum() for _, test in folds])
    assert model.alpha_ == ALPHAS[mean.argmin()]
    assert model.alphas_.tolist() == ALPHAS


def test_costs_per_sample(mlp_cv, problem):
    model = mlp_cv().fit(problem.X, problem.y, cost=problem.cost)

    folds = list(StratifiedKFold(3).split(problem.X, problem.y))
    expected = separate_costs(problem.X, problem.y, folds, np.ones(60), {}, cost=problem.cost)
    assert_allclose(model.mean_cost_path_, expected, rtol=1e-5)


def test_the_network_is_that_of_the_chosen_alpha(mlp_cv, problem):
    model = mlp_cv().fit(problem.X, problem.y, cost=problem.cost)

    network = CostSensitiveAuxMLP(alpha=model.alpha_, **NETWORK).fit(
        problem.X, problem.y, cost=problem.cost
    )
    assert_allclose(model.predict_cost(problem.X), network.predict_cost(problem.X))
    assert model.hidden_layers_ == network.hidden_layers_
    assert model.score(problem.X, problem.y, cost=problem.cost) == network.score(
        problem.X, problem.y, cost=problem.cost
    )


def test_of_equal_costs_the_smaller_alpha_is_chosen(mlp_cv, problem):
    X = np.zeros_like(problem.X)  # every network predicts the same class
    model = mlp_cv(alphas=[3.0, 0.5, 0.5, 1.0]).fit(X, problem.y, cost=np.tile([1, 0, 2], (60, 1)))

    assert model.alphas_.tolist() == [0.5, 1, 3]
    assert_allclose(model.mean_cost_path_, np.zeros((3, 3)))
    assert model.alpha_ == 0.5


def test_a_class_may_be_missing_in_a_fold(mlp_cv, problem):
    y = np.where(np.arange(60) < 2, "rare", np.where(problem.y > 0, "b", "a"))
    cost = pd.DataFrame(problem.cost, columns=["rare", "a", "b"])
    folds = [(np.arange(20, 60), np.arange(20)), (np.arange(30), np.arange(30, 60))]
    model = mlp_cv(cv=folds).fit(problem.X, y, cost=cost)

    assert model.classes_.tolist() == ["a", "b", "rare"]
    assert model.mean_cost_path_.shape == (3, 2)


def test_zero_weights_do_not_shift_the_folds(mlp_cv, problem):
    weight = (np.arange(60) >= 12).astype(float)
    folds = [(np.arange(40), np.arange(40, 60)), (np.arange(20, 60), np.arange(20))]
    model = mlp_cv(cv=folds, cost_matrix=COST_MATRIX).fit(
        problem.X, problem.y, sample_weight=weight
    )

    expected = separate_costs(
        *(problem.X, problem.y, folds, weight, {"cost_matrix": COST_MATRIX}), sample_weight=weight
    )
    assert_allclose(model.mean_cost_path_, expected, rtol=1e-5)
    with pytest.raises(ValueError, match="zero for all rows that fold 1 of cv leaves out"):
        model.fit(problem.X, problem.y, sample_weight=np.arange(60) >= 20)
    assert_allclose(model.mean_cost_path_, expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("alphas", "message"),
    [
        ([], "at least one"),
        ([[0.1], [0.2]], "one dimension"),
        ([0, [0.1, 0.2]], r"alphas=\[0, \[0.1, 0.2\]\].*alpha_path"),
        (["large"], "expected at least one number"),
        ([0.1, -1], r"alphas holds -1"),
    ],
)
def test_unfit_alphas(alphas, message, mlp_cv, problem):
    with pytest.raises(ValueError, match=message):
        mlp_cv(alphas=alphas).fit(problem.X, problem.y)


def test_there_is_no_partial_fit(mlp_cv):
    assert not hasattr(mlp_cv(), "partial_fit")
    with pytest.raises(AttributeError, match="continue with CostSensitiveAuxMLP"):
        mlp_cv().partial_fit  # noqa: B018


def test_in_a_search_with_costs_per_sample(mlp_cv, problem, routing):
    search = GridSearchCV(
        mlp_cv(cv=2), {"width": [4, 8]}, scoring=cost_scorer, cv=ShuffleSplit(1, random_state=0)
    ).fit(problem.X, problem.y, cost=problem.cost)

    assert search.best_estimator_.alpha_ in ALPHAS
    assert np.isfinite(search.best_score_)


def test_clone_and_pickle(mlp_cv, problem):
    model = mlp_cv().fit(problem.X, problem.y, cost=problem.cost)

    loaded = pickle.loads(pickle.dumps(model))
    assert_allclose(loaded.predict_cost(problem.X), model.predict_cost(problem.X))
    again = clone(loaded).fit(problem.X, problem.y, cost=problem.cost)
    assert_allclose(again.mean_cost_path_, model.mean_cost_path_)


def test_splits_of_an_iterator_serve_every_fit(mlp_cv, problem):
    folds = list(StratifiedKFold(3).split(problem.X, problem.y))
    expected = mlp_cv(cv=folds).fit(problem.X, problem.y, cost=problem.cost).mean_cost_path_
    model = mlp_cv(cv=(fold for fold in folds))

    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.fit(problem.X, problem.y[:-1])
    for _ in range(2):
        assert_allclose(
            model.fit(problem.X, problem.y, cost=problem.cost).mean_cost_path_, expected
        )
    loaded = pickle.loads(pickle.dumps(model))
    assert_allclose(loaded.fit(problem.X, problem.y, cost=problem.cost).mean_cost_path_, expected)
    with pytest.raises(ValueError, match="gave no split; .* pass a list"):
        mlp_cv(cv=model.cv).fit(problem.X, problem.y, cost=problem.cost)


class ByLabelAndDay:
    """A splitter of the user, which needs the table and the labels as they are."""

    def split(self, X, y, groups=None):
        self.labels = set(y)
        yield tuple(np.flatnonzero(X["day"] < 40)), tuple(np.flatnonzero(X["day"] >= 40))

    def get_n_splits(self, X=None, y=None, groups=None):
        return 1


def test_a_splitter_receives_the_table_and_the_labels_of_the_user(mlp_cv, problem):
    X = pd.DataFrame(problem.X).assign(day=np.arange(60)).rename(columns=str)
    y = np.array(["ant", "bee", "cat"])[problem.y]
    splitter = ByLabelAndDay()
    model = mlp_cv(cv=splitter).fit(X, y, cost=problem.cost)
    assert splitter.labels == {"ant", "bee", "cat"}
    by_hand = mlp_cv(cv=[(np.arange(40), np.arange(40, 60))]).fit(X, y, cost=problem.cost)
    assert_allclose(model.mean_cost_path_, by_hand.mean_cost_path_)


@pytest.mark.parametrize(
    ("fold", "message"),
    [
        (([0, 1], []), "Fold 1 of cv has no test rows"),
        (([], [0, 1]), "Fold 1 of cv has no training rows"),
        (([0, 1], [60]), "Fold 1 of cv has test rows that are not among the 60 of X"),
        ((np.ones(59, bool), [0, 1]), "Fold 1 of cv has training rows that are not among"),
    ],
)
def test_folds_of_other_rows_are_refused_before_training(mlp_cv, problem, fold, message):
    first = (np.arange(30), np.arange(30, 60))
    with pytest.raises(ValueError, match=message):
        mlp_cv(cv=[first, fold], learning_rate=1e30).fit(problem.X, problem.y, cost=problem.cost)


def test_whole_groups_are_left_out(mlp_cv, problem):
    groups = np.arange(60) // 7
    folds = list(GroupKFold(3).split(problem.X, groups=groups))
    expected = mlp_cv(cv=folds).fit(problem.X, problem.y, cost=problem.cost, groups=groups)

    model = mlp_cv(cv=GroupKFold(3)).fit(problem.X, problem.y, cost=problem.cost, groups=groups)

    assert_allclose(model.mean_cost_path_, expected.mean_cost_path_)
    with pytest.raises(ValueError, match="groups"):
        model.fit(problem.X, problem.y, cost=problem.cost)


def test_groups_in_a_search_by_groups(mlp_cv, problem, routing):
    search = GridSearchCV(
        *(
            make_pipeline(mlp_cv(cv=GroupKFold(2), n_networks=2, validation_fraction=0.5)),
            {"costsensitiveauxmlpcv__width": [4, 8]},
        ),
        scoring=cost_scorer,
        cv=GroupKFold(2),
        error_score="raise",
    ).fit(problem.X, problem.y, cost=problem.cost, groups=np.arange(60) // 7)

    assert search.best_estimator_[-1].mean_cost_path_.shape == (3, 2)


def test_parameters_are_those_of_the_network():
    parameters = CostSensitiveAuxMLPCV(n_networks=3).get_params()

    expected = CostSensitiveAuxMLP(n_networks=3).get_params()
    for name in ("alpha", "warm_start", "store_held_out_proba"):
        del expected[name]
        with pytest.raises(TypeError, match=name):
            CostSensitiveAuxMLPCV(**{name: 0})
    assert parameters == {**expected, "alphas": mlp_cv_module.ALPHAS, "cv": None}


class Budget(Callback):
    """Ends a training after two epochs in all."""

    def initialize(self):
        self.n_ = 0
        return self

    def on_epoch_end(self, net, **kwargs):
        self.n_ += 1
        if self.n_ >= 2:
            raise KeyboardInterrupt


def test_alphas_share_no_callback(problem, monkeypatch):
    lengths, fit = [], mlp_cv_module.fit_together

    def note(owner, models, *args):
        trainings = fit(owner, models, *args)
        lengths.extend(len(model.history_) for model in models)
        return trainings

    monkeypatch.setattr(mlp_cv_module, "fit_together", note)
    model = CostSensitiveAuxMLPCV(
        [0, 0.5, 1], depth=2, width=4, n_networks=1, max_epochs=4, callbacks=[Budget()]
    )
    model.set_params(random_state=0, device="cpu").fit(problem.X, problem.y)

    assert lengths == [2, 2, 2]


def test_a_validation_set_chooses_alpha_without_early_stopping(problem):
    paper = {name: value for name, value in PAPER.items() if name != "alpha"}
    model = CostSensitiveAuxMLPCV(
        [0, 0.2], depth=2, width=8, max_epochs=2, random_state=0, device="cpu", **paper
    )
    X, y, _ = problem
    model.fit(X[:40], y[:40], X_val=X[40:], y_val=y[40:])

    expected = []
    for alpha in (0, 0.2):
        network = CostSensitiveAuxMLP(2, 8, random_state=0, device="cpu", **PAPER)
        network.set_params(alpha=alpha, max_epochs=2).fit(X[:40], y[:40])
        expected.append(mean_cost(y[40:], network.predict(X[40:]), cost_matrix=1 - np.eye(3)))
    np.testing.assert_allclose(model.mean_cost_path_.mean(axis=1), expected)
    with pytest.raises(ValueError, match="X_val has no use here"):
        network.fit(X, y, X_val=X, y_val=y)
