"""scikit-learn's tools for choosing and combining models: every cost must arrive with its row.

Most tests run twice: with per-sample costs, which metadata routing carries, and with the
constructor's cost matrix, without routing. What a tool finds is compared with fits by hand.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    HalvingGridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
    validation_curve,
)
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import cost_scorer, make_cost_scorer

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
MATRIX = np.array([[0.0, 1, 5], [3, 0.2, 1], [2, 7, 0]])
NAMES = np.array(["ant", "bee", "cat"])
FOLDS = StratifiedKFold(3)
GRID = {"alpha": [0.0, 0.5], "learning_rate": [1e-3, 0.1]}
RAISE = {"error_score": "raise"}


def cost_of(X):
    """Costs that give their row away: a function of the last feature."""
    return np.abs(2 * X[:, -1:] - np.array([-1.0, 0.0, 1.0])) * [1.0, 2.0, 3.0] + 0.1


class RowCheckingMLP(CostSensitiveAuxMLP):
    """Refuses costs that belong to other rows than those of X."""

    def fit(self, X, y, cost=None, sample_weight=None):
        if self.cost_matrix is None:
            np.testing.assert_allclose(cost, cost_of(X), rtol=1e-12)
        return super().fit(X, y, cost=cost, sample_weight=sample_weight)


@dataclass
class Setting:
    """A problem, the way its costs reach an estimator, and the computation by hand."""

    X: np.ndarray
    y: np.ndarray
    cost: np.ndarray
    scorer: Any
    params: dict = field(default_factory=dict)
    cost_matrix: np.ndarray | None = None

    def mlp(self, kind=CostSensitiveAuxMLP, **parameters):
        """A small network; `kind=RowCheckingMLP` where the tool leaves the features as they are."""
        defaults = {"depth": 2, "width": 8, "max_epochs": 3, "learning_rate": 0.02}
        quick = {"loss": "one_sided", "dropout": 0.0, "schedule": "constant"}
        fixed = {"cost_matrix": self.cost_matrix, "random_state": 0, "device": "cpu"}
        return kind(**{**defaults, **quick, **fixed, **parameters})

    @property
    def how(self):
        return {"cv": FOLDS, "scoring": self.scorer, **RAISE}

    def fit(self, model, rows=slice(None), method="fit"):
        params = {name: value[rows] for name, value in self.params.items()}
        return getattr(model, method)(self.X[rows], self.y[rows], **params)

    def score(self, labels, rows=slice(None)):
        columns = np.asarray(labels).astype(int)
        return -self.cost[rows][np.arange(len(columns)), columns].mean()

    def fold_scores(self, model, splits=None):
        splits = FOLDS.split(self.X, self.y) if splits is None else splits
        return [
            self.score(self.fit(clone(model), train).predict(self.X[test]), test)
            for train, test in splits
        ]


@pytest.fixture
def per_sample():
    """Costs per sample; the test says whether metadata routing is on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(72, 4))
    cost = cost_of(X)
    y = np.where(rng.random(72) < 0.8, cost.argmin(axis=1), rng.integers(0, 3, size=72))
    return Setting(X, y, cost, cost_scorer, {"cost": cost})


def by_matrix(setting, matrix):
    costs = {"cost": matrix[setting.y], "cost_matrix": matrix, "params": {}}
    return replace(setting, scorer=make_cost_scorer(matrix), **costs)


@pytest.fixture(params=["cost", "cost_matrix"])
def setting(request, per_sample):
    """Per-sample costs and routing, or a cost matrix and no routing."""
    with sklearn.config_context(enable_metadata_routing=request.param == "cost"):
        yield per_sample if request.param == "cost" else by_matrix(per_sample, MATRIX)


@pytest.fixture
def binary(setting):
    """The setting with two classes."""
    setting = replace(setting, y=(setting.y > 0).astype(int))
    if setting.cost_matrix is not None:
        return by_matrix(setting, np.array([[0.0, 1], [6, 0.5]]))
    return replace(setting, cost=setting.cost[:, :2], params={"cost": setting.cost[:, :2]})


def test_the_row_checking_network_sees_a_shifted_row(per_sample):
    network = per_sample.fit(per_sample.mlp(RowCheckingMLP))
    with pytest.raises(AssertionError):
        network.fit(per_sample.X, per_sample.y, cost=np.roll(per_sample.cost, 1, axis=0))


# ----------------------------------------------------------- searches and cross-validation


SEARCHES = {
    "grid": partial(GridSearchCV, param_grid=GRID),
    "randomized": partial(RandomizedSearchCV, param_distributions=GRID, n_iter=3, random_state=0),
    "halving": partial(
        HalvingGridSearchCV,
        param_grid=GRID,
        resource="max_epochs",
        min_resources=2,
        max_resources=6,
    ),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_searches_score_every_fold_by_the_costs_of_its_rows(setting, kind):
    model = setting.mlp(RowCheckingMLP)
    search = setting.fit(SEARCHES[kind](model, **setting.how))
    results = search.cv_results_
    found = np.transpose([results[f"split{k}_test_score"] for k in range(3)])
    for i, params in enumerate(results["params"]):
        if kind == "halving":
            params = {**params, "max_epochs": results["n_resources"][i]}
        expected = setting.fold_scores(clone(model).set_params(**params))
        np.testing.assert_allclose(found[i], expected)
    assert len(np.unique(results["mean_test_score"])) > 1
    refitted = setting.fit(clone(search.best_estimator_)).predict(setting.X)
    np.testing.assert_array_equal(search.predict(setting.X), refitted)
    score = search.score(setting.X, setting.y, **setting.params)
    np.testing.assert_allclose(score, setting.score(refitted))


def test_halving_draws_costs_with_their_rows(setting):
    model = setting.mlp(RowCheckingMLP)
    search = HalvingGridSearchCV(model, GRID, min_resources=24, random_state=0, **setting.how)
    setting.fit(search)
    assert search.n_resources_ == [24, 72]
    refitted = setting.fit(clone(search.best_estimator_))
    np.testing.assert_array_equal(search.predict(setting.X), refitted.predict(setting.X))


def test_searches_score_by_cost_without_being_told(setting):
    search = setting.fit(GridSearchCV(setting.mlp(), {"alpha": [0.5]}, cv=FOLDS, **RAISE))
    expected = np.mean(setting.fold_scores(setting.mlp(alpha=0.5)))
    np.testing.assert_allclose(search.best_score_, expected)


def test_cost_stands_beside_other_metrics(setting):
    how = {**setting.how, "scoring": {"cost": setting.scorer, "accuracy": "accuracy"}}
    found = cross_validate(
        setting.mlp(), setting.X, setting.y, params=setting.params, return_train_score=True, **how
    )
    np.testing.assert_allclose(found["test_cost"], setting.fold_scores(setting.mlp()))
    train = [(train, train) for train, _ in FOLDS.split(setting.X, setting.y)]
    np.testing.assert_allclose(found["train_cost"], setting.fold_scores(setting.mlp(), train))
    accuracy = [
        np.mean(setting.fit(setting.mlp(), train).predict(setting.X[test]) == setting.y[test])
        for train, test in FOLDS.split(setting.X, setting.y)
    ]
    np.testing.assert_allclose(found["test_accuracy"], accuracy)


def test_nested_search(setting):
    model = setting.mlp(RowCheckingMLP)
    inner = GridSearchCV(model, GRID, **{**setting.how, "cv": 2})
    found = cross_val_score(inner, setting.X, setting.y, params=setting.params, **setting.how)
    candidates = [
        clone(model).set_params(alpha=alpha, learning_rate=rate)
        for alpha in GRID["alpha"]
        for rate in GRID["learning_rate"]
    ]
    for score, (train, test) in zip(found, FOLDS.split(setting.X, setting.y), strict=True):
        halves = StratifiedKFold(2).split(setting.X[train], setting.y[train])
        splits = [(train[a], train[b]) for a, b in halves]
        best = max(candidates, key=lambda one: np.mean(setting.fold_scores(one, splits)))
        np.testing.assert_allclose(score, setting.fold_scores(best, [(train, test)])[0])


def test_learning_curve(setting):
    model = setting.mlp(RowCheckingMLP)
    sizes, _, found = learning_curve(
        model, setting.X, setting.y, train_sizes=[24, 48], params=setting.params, **setting.how
    )
    for size, scores in zip(sizes, found, strict=True):
        splits = [(train[:size], test) for train, test in FOLDS.split(setting.X, setting.y)]
        np.testing.assert_allclose(scores, setting.fold_scores(model, splits))


def test_learning_curve_by_partial_fit(setting):
    model = setting.mlp(classes=[0, 1, 2])
    curve = partial(learning_curve, model, setting.X, setting.y, train_sizes=[24, 48])
    curve = partial(curve, exploit_incremental_learning=True, params=setting.params)
    if setting.params and SKLEARN < (1, 9):
        # Older releases cut no parameter of partial_fit to its rows.
        with pytest.raises(ValueError, match="cost has 72 rows, but there are 24 samples"):
            curve(**setting.how)
        return
    _, _, found = curve(**setting.how)
    for k, (train, test) in enumerate(FOLDS.split(setting.X, setting.y)):
        network = clone(model)
        for i, rows in enumerate([train[:24], train[24:48]]):
            setting.fit(network, rows, method="partial_fit")
            score = setting.score(network.predict(setting.X[test]), test)
            np.testing.assert_allclose(found[i, k], score)


def test_validation_curve(setting):
    model, rates = setting.mlp(RowCheckingMLP), GRID["learning_rate"]
    curve = partial(validation_curve, param_name="learning_rate", param_range=rates)
    _, found = curve(model, setting.X, setting.y, params=setting.params, **setting.how)
    for rate, scores in zip(rates, found, strict=True):
        expected = setting.fold_scores(clone(model).set_params(learning_rate=rate))
        np.testing.assert_allclose(scores, expected)


def test_sequential_feature_selection_takes_the_feature_that_saves_most(setting):
    selector = SequentialFeatureSelector(
        setting.mlp(), n_features_to_select=1, cv=FOLDS, scoring=setting.scorer
    )
    setting.fit(selector)
    alone = [replace(setting, X=setting.X[:, [feature]]) for feature in range(4)]
    savings = [np.mean(one.fold_scores(one.mlp())) for one in alone]
    assert selector.get_support(indices=True).tolist() == [np.argmax(savings)]


def test_two_workers_find_what_one_finds(setting):
    searches = [
        setting.fit(GridSearchCV(setting.mlp(), GRID, n_jobs=n_jobs, **setting.how))
        for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_array_equal(*scores)


# ------------------------------------------------------------------------------ pipelines


def test_pipeline_carries_costs_to_fit_and_score(setting):
    fitted = setting.fit(make_pipeline(StandardScaler(), setting.mlp()))
    scaled = replace(setting, X=StandardScaler().fit_transform(setting.X))
    by_hand = scaled.fit(scaled.mlp()).predict(scaled.X)
    np.testing.assert_array_equal(fitted.predict(setting.X), by_hand)
    score = fitted.score(setting.X, setting.y, **setting.params)
    np.testing.assert_allclose(score, setting.score(by_hand))


def test_search_over_a_pipeline(setting):
    model = make_pipeline(StandardScaler(), setting.mlp())
    grid = {"costsensitiveauxmlp__alpha": [0.5]}
    search = setting.fit(GridSearchCV(model, grid, **setting.how))
    expected = np.mean(setting.fold_scores(clone(model).set_params(costsensitiveauxmlp__alpha=0.5)))
    np.testing.assert_allclose(search.best_score_, expected)


def test_pipeline_without_routing_warns_that_score_loses_the_costs(per_sample):
    model = make_pipeline(StandardScaler(), per_sample.mlp())
    X, y, cost = per_sample.X, per_sample.y, per_sample.cost
    predicted = model.fit(X, y, costsensitiveauxmlp__cost=cost).predict(X)
    with sklearn.config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(per_sample.fit(clone(model)).predict(X), predicted)
    with pytest.warns(UserWarning, match="none reached score, which returns the accuracy"):
        assert model.score(X, y, cost=cost) == np.mean(predicted == y)


# ------------------------------------------------------------------------------ ensembles


def test_bagging_trains_every_member_on_the_costs_of_its_draw(setting):
    member = setting.mlp(RowCheckingMLP, classes=[0, 1, 2])
    bagging = setting.fit(BaggingClassifier(member, 3, max_samples=0.7, random_state=0))
    for fitted, rows in zip(bagging.estimators_, bagging.estimators_samples_, strict=True):
        if setting.params:
            by_hand = setting.fit(clone(fitted), rows)
        else:  # without routing, a draw is made of weights
            count = np.bincount(rows, minlength=len(setting.y))
            by_hand = clone(fitted).fit(setting.X, setting.y, sample_weight=count)
        np.testing.assert_array_equal(
            fitted.predict_cost(setting.X), by_hand.predict_cost(setting.X)
        )


def test_voting_trains_every_member_on_the_costs(setting):
    members = [(f"net{seed}", setting.mlp(RowCheckingMLP, random_state=seed)) for seed in range(3)]
    voting = setting.fit(VotingClassifier(members))
    votes = [setting.fit(clone(member)).predict(setting.X) for _, member in members]
    majority = [np.bincount(column, minlength=3).argmax() for column in np.transpose(votes)]
    np.testing.assert_array_equal(voting.predict(setting.X), majority)


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibration_trains_on_the_costs_of_each_fold(setting, ensemble):
    member = setting.mlp(RowCheckingMLP)
    calibrated = setting.fit(CalibratedClassifierCV(member, cv=FOLDS, ensemble=ensemble))
    folds = [train for train, _ in FOLDS.split(setting.X, setting.y)] if ensemble else [slice(None)]
    for fitted, rows in zip(calibrated.calibrated_classifiers_, folds, strict=True):
        np.testing.assert_array_equal(
            fitted.estimator.predict_cost(setting.X),
            setting.fit(clone(member), rows).predict_cost(setting.X),
        )
    np.testing.assert_allclose(calibrated.predict_proba(setting.X).sum(axis=1), 1)


def test_calibration_of_a_fitted_network_needs_no_costs(setting):
    frozen = FrozenEstimator(setting.fit(setting.mlp()))
    calibrated = CalibratedClassifierCV(frozen).fit(setting.X, setting.y)
    np.testing.assert_allclose(calibrated.predict_proba(setting.X).sum(axis=1), 1)


def test_stacking_hands_the_costs_to_its_members_and_to_the_final_network(setting):
    member = setting.mlp(RowCheckingMLP)
    # With passthrough the last feature stays the last, so the final network checks its rows too.
    stacking = StackingClassifier([("net", member)], clone(member), cv=FOLDS, passthrough=True)
    setting.fit(stacking)
    by_hand = setting.fit(clone(member))
    np.testing.assert_array_equal(
        stacking.estimators_[0].predict_cost(setting.X), by_hand.predict_cost(setting.X)
    )


def test_stacking_onto_an_estimator_that_takes_no_costs_is_an_error(per_sample, routing):
    stacking = StackingClassifier([("net", per_sample.mlp())], LogisticRegression())
    with pytest.raises(TypeError, match="cost"):
        per_sample.fit(stacking)


@pytest.mark.parametrize("decompose", [OneVsRestClassifier, OneVsOneClassifier])
def test_binary_subproblems_refuse_the_costs_of_all_classes(setting, decompose):
    with pytest.raises(ValueError, match=r"cost.* 3.* but there are 2 classes: \[0, 1\]"):
        setting.fit(decompose(setting.mlp()))


def test_one_versus_rest_of_two_classes_is_the_network_itself(binary):
    wrapped = binary.fit(OneVsRestClassifier(binary.mlp())).predict(binary.X)
    np.testing.assert_array_equal(wrapped, binary.fit(binary.mlp()).predict(binary.X))


def test_ensembles_that_number_the_labels_need_numbered_classes():
    """Bagging, voting and stacking hand 0 .. K-1 to their members in place of the labels."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), NAMES[np.arange(30) % 3]
    network = CostSensitiveAuxMLP(depth=1, width=4, max_epochs=1, cost_matrix=MATRIX)
    named = clone(network).set_params(classes=NAMES)
    with pytest.raises(ValueError, match=r"not among the classes: \[0, 1, 2\]"):
        BaggingClassifier(named, 2).fit(X, y)
    labelled = clone(network).set_params(cost_matrix=pd.DataFrame(MATRIX, NAMES, NAMES))
    with pytest.raises(ValueError, match=r"columns of cost_matrix are \['ant'.*\[0, 1, 2\]"):
        VotingClassifier([("net", labelled)]).fit(X, y)
    bagging = BaggingClassifier(network.set_params(classes=[0, 1, 2]), 2).fit(X, y)
    assert set(bagging.predict(X)) <= set(NAMES)


def test_labelled_costs_never_go_to_other_classes(routing):
    labels = np.unique(np.arange(11).astype(str))
    y = np.repeat(labels, 10)
    X = (y[:, np.newaxis] == labels).astype(float)
    cost = pd.DataFrame(1 - X, columns=labels)
    network = CostSensitiveAuxMLP(1, 64, max_epochs=60, learning_rate=0.02, random_state=0)
    assert (clone(network).fit(X, y, cost=cost).predict(X) == y).all()
    voting = VotingClassifier([("net", network)])
    try:
        voting.fit(X, y, cost=cost)
    except ValueError:
        return  # a clear refusal is as good
    assert (voting.predict(X) == y).all()


# ---------------------------------------------------------------- thresholds, importances


def test_fixed_threshold_moves_the_decision(binary):
    network = binary.fit(binary.mlp())
    decision = network.decision_function(binary.X)
    threshold = np.median(decision)
    moved = binary.fit(FixedThresholdClassifier(binary.mlp(), threshold=threshold))
    np.testing.assert_array_equal(moved.predict(binary.X), decision >= threshold)
    at_zero = binary.fit(FixedThresholdClassifier(binary.mlp()))
    np.testing.assert_array_equal(at_zero.predict(binary.X), network.predict(binary.X))


def test_tuned_threshold_pays_what_the_rows_say(binary):
    network = binary.fit(binary.mlp())
    decision = network.decision_function(binary.X)
    how = {"cv": "prefit", "refit": False, "store_cv_results": True, "scoring": binary.scorer}
    tuned = binary.fit(TunedThresholdClassifierCV(network, **how))
    thresholds, scores = tuned.cv_results_["thresholds"], tuned.cv_results_["scores"]
    expected = [binary.score(decision >= threshold) for threshold in thresholds]
    np.testing.assert_allclose(scores, expected)
    assert tuned.best_score_ == max(scores) > min(scores)
    np.testing.assert_allclose(tuned.best_score_, binary.score(tuned.predict(binary.X)))


def test_tuned_threshold_by_cross_validation(binary):
    tuned = TunedThresholdClassifierCV(binary.mlp(), cv=FOLDS, scoring=binary.scorer)
    decision = binary.fit(binary.mlp()).decision_function(binary.X)
    expected = decision >= binary.fit(tuned).best_threshold_
    np.testing.assert_array_equal(tuned.predict(binary.X), expected)


def test_permutation_importance_of_the_feature_that_sets_the_costs(per_sample):
    X, y, cost = per_sample.X * [0, 1, 1, 1], per_sample.y, per_sample.cost
    network = per_sample.mlp(max_epochs=30).fit(X, y, cost=cost)
    scorer = partial(cost_scorer, cost=cost)  # permutation_importance routes nothing
    found = permutation_importance(network, X, y, scoring=scorer, random_state=0)
    assert found.importances_mean.argmax() == 3
    np.testing.assert_array_equal(found.importances[0], 0)


def test_permutation_importance_by_a_cost_matrix(per_sample):
    setting = by_matrix(per_sample, MATRIX)
    network = setting.fit(setting.mlp(max_epochs=30))
    how = {"scoring": setting.scorer, "n_repeats": 1, "random_state": 0}
    found = permutation_importance(network, setting.X, setting.y, **how)
    by_costs = {**how, "scoring": partial(cost_scorer, cost=setting.cost)}
    expected = permutation_importance(network, setting.X, setting.y, **by_costs)
    np.testing.assert_allclose(found.importances, expected.importances)
    assert found.importances.any()


# ---------------------------------------------------------- no cost is lost without a word


def test_cost_scorer_works_with_routing_off(per_sample):
    assert not sklearn.get_config()["enable_metadata_routing"]
    network = per_sample.fit(per_sample.mlp())
    expected = per_sample.score(network.predict(per_sample.X))
    for scorer in (cost_scorer, pickle.loads(pickle.dumps(cost_scorer))):
        found = scorer(network, per_sample.X, per_sample.y, cost=per_sample.cost)
        np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize("on", [False, True])
def test_cost_scorer_raises_where_no_costs_reach_it(per_sample, on):
    X, y = per_sample.X, per_sample.y
    network = CostSensitiveAuxMLP(depth=1, width=4, max_epochs=1).fit(X, y)
    search = GridSearchCV(network, {"alpha": [0.1]}, scoring=cost_scorer, **RAISE)
    uses = [
        lambda: cost_scorer(network, X, y),
        lambda: search.fit(X, y),
        lambda: cross_validate(network, X, y, scoring={"cost": cost_scorer}, **RAISE),
        lambda: permutation_importance(network, X, y, scoring=cost_scorer),
    ]
    lost = "No costs reached cost_scorer; it never falls back to 0/1 costs.*enable_metadata_routing"
    for use in uses:
        with (
            sklearn.config_context(enable_metadata_routing=on),
            pytest.raises(ValueError, match=lost),
        ):
            use()


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_search_that_swallows_errors_warns_and_scores_nan(per_sample):
    search = GridSearchCV(per_sample.mlp(), {"alpha": [0.0, 0.5]}, scoring=cost_scorer)
    with pytest.warns(UserWarning, match="Scoring failed"):
        per_sample.fit(search)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


def test_tuned_threshold_without_costs_is_an_error(per_sample):
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=cost_scorer)
    with pytest.raises(ValueError, match="neither cost nor cost_matrix"):
        tuned.fit(per_sample.X, per_sample.y > 0)


def test_search_without_routing_warns_that_it_scores_the_accuracy(per_sample):
    search = GridSearchCV(per_sample.mlp(RowCheckingMLP), {"alpha": [0.5]}, cv=FOLDS, **RAISE)
    with pytest.warns(UserWarning, match="none reached score, which returns the accuracy"):
        per_sample.fit(search)
    assert search.best_score_ >= 0


def test_search_without_routing_refuses_a_cost_matrix_in_fit(per_sample):
    search = GridSearchCV(per_sample.mlp(), {"alpha": [0.5]}, **RAISE)
    with pytest.raises(ValueError, match=r"cost has shape \(3, 3\).*cost_matrix="):
        search.fit(per_sample.X, per_sample.y, cost=MATRIX)


@pytest.mark.parametrize("matrix", [None, MATRIX])
def test_scorers_weigh_the_rows_of_each_fold(per_sample, routing, matrix):
    setting = per_sample if matrix is None else by_matrix(per_sample, matrix)
    weight = np.random.default_rng(1).uniform(0, 5, size=len(setting.y))
    model = setting.mlp().set_fit_request(sample_weight=True)
    setting.params["sample_weight"] = weight
    found = cross_val_score(model, setting.X, setting.y, params=setting.params, **setting.how)
    for score, (train, test) in zip(found, FOLDS.split(setting.X, setting.y), strict=True):
        chosen = setting.fit(clone(model), train).predict(setting.X[test])
        expected = -np.average(setting.cost[test, chosen], weights=weight[test])
        np.testing.assert_allclose(score, expected)


# ----------------------------------------------------------------- the order of the columns


def test_folds_that_lack_a_class_keep_the_columns_apart(setting):
    model = setting.mlp(classes=[0, 1, 2])
    how = {**setting.how, "cv": PredefinedSplit(setting.y)}
    found = cross_val_score(model, setting.X, setting.y, params=setting.params, **how)
    np.testing.assert_allclose(found, setting.fold_scores(model, how["cv"].split()))
    with pytest.raises(ValueError, match=r"there are 2 classes: \[1, 2\].*classes="):
        cross_val_score(setting.mlp(), setting.X, setting.y, params=setting.params, **how)


def test_columns_follow_the_estimator_and_not_the_labels_of_the_fold(setting):
    network = setting.fit(setting.mlp(max_epochs=30))
    rows = np.flatnonzero((setting.y > 0) & (network.predict(setting.X) > 0))
    X, y = setting.X[rows], setting.y[rows]
    chosen = network.predict(X)
    assert set(y) == set(chosen) == {1, 2}
    params = {name: value[rows] for name, value in setting.params.items()}
    found = setting.scorer(network, X, y, **params)
    np.testing.assert_allclose(found, setting.score(chosen, rows))


def test_make_cost_scorer_of_an_estimator_that_lacks_a_class(per_sample):
    X, y, folds = per_sample.X, per_sample.y, PredefinedSplit(per_sample.y)
    score = partial(cross_val_score, LogisticRegression(), X, y, cv=folds, **RAISE)
    with pytest.raises(ValueError, match=r"cost_matrix has shape \(3, 3\), but there are 2"):
        score(scoring=make_cost_scorer(MATRIX))
    expected = [
        -MATRIX[y[test], LogisticRegression().fit(X[train], y[train]).predict(X[test])].mean()
        for train, test in folds.split()
    ]
    for named in (
        make_cost_scorer(MATRIX, classes=range(3)),
        make_cost_scorer(pd.DataFrame(MATRIX)),
    ):
        np.testing.assert_allclose(score(scoring=named), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_labelled_costs_pass_through_folds_that_lack_a_class(per_sample, routing, frame):
    X, y, cost = per_sample.X, NAMES[per_sample.y], per_sample.cost
    labelled = frame({NAMES[k]: cost[:, k] for k in (2, 0, 1)})
    how = {**per_sample.how, "cv": PredefinedSplit(per_sample.y)}
    found = cross_val_score(per_sample.mlp(), X, y, params={"cost": labelled}, **how)
    model = per_sample.mlp(classes=NAMES)
    expected = cross_val_score(model, X, y, params={"cost": cost}, **how)
    np.testing.assert_array_equal(found, expected)
