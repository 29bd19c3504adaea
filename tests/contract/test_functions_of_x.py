"""cost_matrix as a function of X: the same as passing its result, in every tool."""

from __future__ import annotations

import importlib
import subprocess
import sys
import warnings
from functools import partial

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier, StackingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    StratifiedKFold,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveEnsembleClassifier,
    CSAEPretrainedMLP,
)
from auxcst_sklearn._estimators import decision
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.decisions import decide
from auxcst_sklearn.metrics import compare_costs, cost_scorer, make_cost_scorer, mean_cost
from auxcst_sklearn.plotting import CostConfusionDisplay, CostThresholdDisplay
from tests.contract.costs_of_rows import of_amount
from tests.factories import dense, small_cnn, small_mlp, small_net

N = 120
CLASSES = np.array(["fraud", "ok"])
FOLDS = StratifiedKFold(2)


def payments():
    """Three features, and the amount of each payment, which is a feature, too."""
    X, label = make_classification(N, 3, n_informative=3, n_redundant=0, flip_y=0.2, random_state=0)
    amount = np.random.default_rng(0).lognormal(2, 1, N)
    return np.column_stack([X, amount]), CLASSES[label]


def costs_of(amount):
    terms = {"fp_cost": 5, "tp_cost": 5, "fn_cost": np.asarray(amount)}
    return binary_cost_matrices(**terms, classes=CLASSES, pos_label="fraud")


def of_last_column(X):
    return costs_of(X[:, -1])


def of_column(X):
    return costs_of(X["amount"])


def of_texts(X):
    return costs_of([float(text.split()[0]) for text in X])


def of_pixels(X):
    return costs_of(X.reshape(len(X), -1).astype(float).sum(axis=1))


def frame(X):
    return pd.DataFrame(X, columns=["a", "b", "c", "amount"])


rule = partial(BayesMinimumRiskClassifier, LogisticRegression())
ENSEMBLE = [("logistic", LogisticRegression()), ("network", small_mlp(max_epochs=2))]
MODELS = {
    "rule": rule,
    "temperature": partial(rule, calibration="temperature"),
    "network": small_mlp,
    "cross-entropy": partial(small_mlp, loss="cross_entropy"),
    "one-sided": partial(small_mlp, loss="one_sided"),
    "pretrained": partial(
        CSAEPretrainedMLP, 1, 8, loss="bayes_risk", pretrain_epochs=1, max_epochs=2, random_state=0
    ),
    "module": partial(small_net, dense(4, 8, 8, 2)),
    "ensemble": partial(CostSensitiveEnsembleClassifier, ENSEMBLE, cv=2, random_state=0),
    "rule around a network": partial(BayesMinimumRiskClassifier, small_mlp()),
}


def assert_same(make, X, y, function):
    """All methods with a function equal the same calls with its result, to the bit."""
    C = function(X)
    own, passed = make(cost_matrix=function).fit(X, y), make().fit(X, y, cost=C)
    known = {"cost": C} if hasattr(passed, "predict_proba") else {}
    np.testing.assert_array_equal(own.predict_cost(X), passed.predict_cost(X, **known))
    np.testing.assert_array_equal(own.predict(X), passed.predict(X, **known))
    limit = {"capacity": {"fraud": 9}}
    np.testing.assert_array_equal(own.decide(X, **limit), passed.decide(X, **known, **limit))
    if known:
        np.testing.assert_array_equal(own.predict_proba(X), passed.predict_proba(X))
        prior = {"fraud": 0.2, "ok": 0.8}
        found = own.predict_cost(X, prior=prior)
        np.testing.assert_array_equal(found, passed.predict_cost(X, C, prior=prior))
    score = passed.score(X, y, cost=C)
    assert own.score(X, y) == score == cost_scorer(own, X, y)
    assert score == make_cost_scorer(cost_matrix=function)(own, X, y)
    assert score == -mean_cost(y, own.predict(X), cost=C)


@pytest.mark.parametrize("kind", MODELS)
def test_a_function_equals_its_result(kind):
    assert_same(MODELS[kind], *payments(), of_last_column)


def test_any_form_of_x(tmp_path):
    X, y = payments()
    memory = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", shape=X.shape)
    memory[:] = X
    assert_same(small_mlp, frame(X), y, of_column)
    assert_same(small_mlp, pl.DataFrame(frame(X)), y, of_column)
    assert_same(rule, frame(X), y, of_column)
    assert_same(small_mlp, memory, y, of_last_column)
    images = np.random.default_rng(0).integers(0, 9, (N, 1, 8, 8)).astype(np.uint8)
    assert_same(partial(small_cnn, channels=(2, 2)), images, y, of_pixels)
    named = {"x": X[:, :3].astype(np.float32), "amount": X[:, 3]}
    assert_same(partial(small_net, make_named), named, y, of_column)


def make_named():
    from torch import nn

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = dense(3, 4, 4, 2)

        def forward(self, x, amount):
            return self.layers(x)

    return Named()


def test_texts():
    from sklearn.feature_extraction.text import TfidfVectorizer

    X, y = payments()
    texts = [f"{row[3]:.2f} {'high' if row[0] > 0 else 'low'} word" for row in X]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression())
    assert_same(partial(BayesMinimumRiskClassifier, model), texts, y, of_texts)


def test_many_samples_are_priced_in_parts(monkeypatch):
    X, y = payments()
    sizes = []

    def counted(X):
        costs = of_column(X)
        sizes.append(len(costs))
        return costs

    for rows in (frame(X), {"x": X[:, :3].astype(np.float32), "amount": X[:, 3]}):
        make = rule if isinstance(rows, pd.DataFrame) else partial(small_net, make_named)
        model = make(cost_matrix=counted).fit(rows, y)
        whole = model.predict_cost(rows)
        assert sizes == [N, N]
        monkeypatch.setattr(decision, "MATRICES_BYTES", 50 * 8 * 4)
        np.testing.assert_array_equal(model.predict_cost(rows), whole)
        assert sizes[2:] == [50, 50, 20]
        model.predict_proba(rows)
        model.score(rows, y)
        assert sizes[5:] == [N]
        sizes.clear()
        monkeypatch.undo()


def test_validation_sets_streams_and_checkpoints(tmp_path):
    X, y = payments()
    C, held = of_last_column(X), {"X_val": X[:40], "y_val": y[:40]}
    own = small_mlp(cost_matrix=of_last_column).fit(X, y, **held)
    passed = small_mlp().fit(X, y, cost=C, cost_val=C[:40], **held)
    assert own.history_[0]["valid_cost"] == passed.history_[0]["valid_cost"]
    own, passed = small_mlp(cost_matrix=of_last_column, classes=CLASSES), small_mlp(classes=CLASSES)
    for rows in (slice(60), slice(60, N)):
        own.partial_fit(X[rows], y[rows])
        passed.partial_fit(X[rows], y[rows], cost=C[rows])
    np.testing.assert_array_equal(own.predict_cost(X), passed.predict_cost(X, C))
    with pytest.raises(ValueError, match="In the validation set .*Got both cost and cost_matrix"):
        small_mlp(cost_matrix=of_last_column).fit(X, y, **held, cost_val=C[:40])
    # The key of a checkpoint contains the costs, so a lambda is no obstacle.
    for factor, fits in ((1, True), (1.0, True), (2, False)):
        function = lambda X, f=factor: of_last_column(X).values * f  # noqa: E731
        model = small_mlp(cost_matrix=function, checkpoint_dir=str(tmp_path), classes=CLASSES)
        if fits:
            model.fit(X, y)
        else:
            with pytest.raises(ValueError, match="another fit, which differs in cost"):
                model.fit(X, y)


def test_heads_decide_by_the_function():
    X, y = payments()
    model = small_mlp(alpha=0.5, cost_matrix=of_last_column).fit(X, y)
    first, last = model.staged_predict_cost(X)
    np.testing.assert_array_equal(last, model.predict_cost(X))
    p = model.net_.staged_proba(model._rows_of(X))[0]
    assert not np.array_equal(first, last)
    np.testing.assert_allclose(first, np.einsum("nk,nkj->nj", p, of_last_column(X).values))
    early, late = model.staged_predict(X)
    assert set(early) <= set(CLASSES)
    np.testing.assert_array_equal(late, model.predict(X))

    mixed = small_mlp(loss="cross_entropy", aux_loss="one_sided", alpha=0.5)
    mixed.set_params(cost_matrix=of_last_column).fit(X, y)
    with pytest.raises(ValueError, match="aux_loss=OneSided.* has none"):
        next(mixed.staged_predict_cost(X))


# ----------------------------------------------------------------- scikit-learn's tools


@pytest.mark.parametrize("kind", ["rule", "network"])
def test_cross_validation_equals_a_loop(kind):
    X, y = payments()
    C, model = of_last_column(X), MODELS[kind](cost_matrix=of_last_column)
    chosen, scores = np.empty(N, dtype=CLASSES.dtype), []
    for train, test in FOLDS.split(X, y):
        part = MODELS[kind]().fit(X[train], y[train], cost=C[train])
        chosen[test] = part.predict(X[test], cost=C[test])
        scores.append(-mean_cost(y[test], chosen[test], cost=C[test]))

    np.testing.assert_array_equal(cross_val_predict(model, X, y, cv=FOLDS), chosen)
    scoring = {"own": cost_scorer, "matrix": make_cost_scorer(cost_matrix=of_last_column)}
    found = cross_validate(model, X, y, cv=FOLDS, scoring=scoring, error_score="raise")
    for scorer in scoring:
        np.testing.assert_array_equal(found[f"test_{scorer}"], scores)
    np.testing.assert_array_equal(cross_validate(model, X, y, cv=FOLDS)["test_score"], scores)
    sizes = {"train_sizes": [1.0], "cv": FOLDS}
    np.testing.assert_array_equal(learning_curve(model, X, y, **sizes)[2][0], scores)


@pytest.mark.slow
def test_searches_choose_by_costs():
    X, y = payments()
    grid, model = {"estimator__C": [1e-6, 1.0]}, rule(cost_matrix=of_last_column)
    search = GridSearchCV(model, grid, cv=FOLDS, n_jobs=2).fit(X, y)
    for C, score in zip(grid["estimator__C"], search.cv_results_["mean_test_score"]):
        model = rule(cost_matrix=of_last_column).set_params(estimator__C=C)
        assert score == np.mean(cross_validate(model, X, y, cv=FOLDS)["test_score"])
    np.testing.assert_array_equal(search.predict(X), search.best_estimator_.predict(X))
    assert cost_scorer(search, X, y) == search.score(X, y)
    assert cost_scorer(FrozenEstimator(search), X, y) == search.score(X, y)
    halving = HalvingGridSearchCV(model, grid, cv=2, random_state=0).fit(X, y)
    assert halving.score(X, y) == halving.best_estimator_.score(X, y)
    importance = permutation_importance(search, X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean[-1] != 0


def test_the_rule_goes_around_composites_that_change_x():
    X, y = payments()
    data = frame(X)
    bagged = BaggingClassifier(LogisticRegression(), 3, max_features=2, random_state=0)
    stack = StackingClassifier([("bagged", bagged)], LogisticRegression(), cv=2)
    # Stacking encodes the labels, which the costs then do not have.
    inside = StackingClassifier([("rule", rule(cost_matrix=of_column))], cv=2)
    with pytest.raises(ValueError, match="labels of of_column.*put the rule around it"):
        inside.fit(data, y)
    model = BayesMinimumRiskClassifier(stack, cost_matrix=of_column).fit(data, y)
    expected = BayesMinimumRiskClassifier(stack).fit(data, y, cost=of_column(data))
    np.testing.assert_array_equal(model.predict(data), expected.predict(data, of_column(data)))
    inner = make_pipeline(StandardScaler(), small_mlp())
    model = BayesMinimumRiskClassifier(inner, cost_matrix=of_column).fit(data, y)
    by_hand = clone(inner).fit(data, y, costsensitiveauxmlp__cost=of_column(data))
    np.testing.assert_array_equal(model.predict_proba(data), by_hand.predict_proba(data))
    with sklearn.config_context(enable_metadata_routing=True):
        routed = clone(model).fit(data, y)
    np.testing.assert_array_equal(routed.predict_proba(data), by_hand.predict_proba(data))


def test_a_pipeline_that_changes_x_warns():
    X, y = payments()
    model = make_pipeline(StandardScaler(), rule(cost_matrix=of_last_column))
    with pytest.warns(UserWarning, match="not the cheapest.*Perhaps the function of X got columns"):
        model.fit(X, y)
    calls = [
        lambda: decide(model, X),
        lambda: cost_scorer(model, X, y),
        lambda: CostConfusionDisplay.from_estimator(model, X, y),
        lambda: CostThresholdDisplay.from_estimator(model, X, y, pos_label="fraud"),
    ]
    for call in calls:
        with pytest.warns(UserWarning, match="after the steps StandardScaler"):
            call()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        decide(make_pipeline("passthrough", rule(cost_matrix=of_last_column)).fit(X, y), X)


def test_displays_and_comparisons():
    X, y = payments()
    C, model = of_last_column(X), rule(cost_matrix=of_last_column).fit(X, y)
    display = CostConfusionDisplay.from_estimator(model, X, y)
    assert display.confusion_matrix.sum() / N == pytest.approx(-model.score(X, y))
    display = CostThresholdDisplay.from_estimator(model, X, y, pos_label="fraud")
    assert display.bayes_cost == pytest.approx(-model.score(X, y))

    grid = {"calibration": ["auto"]}
    models = {
        "rule": rule(),
        "own": rule(cost_matrix=of_last_column),
        "search": GridSearchCV(rule(), grid, cv=2),
        "pipeline": make_pipeline(StandardScaler(), small_mlp()),
    }
    by_function = compare_costs(models, X, y, cost_matrix=of_last_column, cv=FOLDS)["cost"]
    by_costs = compare_costs({k: models[k] for k in ("rule", "pipeline")}, X, y, cost=C, cv=FOLDS)
    for name in ("rule", "pipeline"):
        assert by_function[name] == by_costs["cost"][name]
    assert by_function["own"] == by_function["rule"] == by_function["search"]
    inside = GridSearchCV(make_pipeline(StandardScaler(), rule()), {}, cv=2)
    with pytest.raises(ValueError, match="search and its pipeline pass no costs on"):
        compare_costs({"inside": inside}, X, y, cost_matrix=of_last_column, cv=FOLDS)


def test_a_search_without_scores_is_no_tuned_model():
    X, y = payments()
    search = GridSearchCV(rule(), {"estimator__C": [1e-6, 1.0]}, scoring=cost_scorer, cv=2)
    with pytest.raises(ValueError, match="All scores of the search are NaN.*No costs reached"):
        compare_costs({"search": search}, X, y, cost=of_last_column(X), cv=FOLDS)


# ----------------------------------------------------------------- parameters and files


def test_the_function_of_fit_decides_until_the_next_fit():
    X, y = payments()
    model = rule(cost_matrix=of_last_column).fit(X, y)
    expected = model.predict(X)
    model.set_params(cost_matrix=lambda X: 100 * of_last_column(X).values)
    with pytest.warns(UserWarning, match="cost_matrix has changed since fit"):
        np.testing.assert_array_equal(model.predict(X), expected)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # What if a call cost ten times as much? The costs of a call take precedence.
        dear = binary_cost_matrices(
            fp_cost=50, tp_cost=50, fn_cost=X[:, 3], classes=CLASSES, pos_label="fraud"
        )
        assert (model.predict(X, cost=dear) == "fraud").sum() < (expected == "fraud").sum()


@pytest.mark.slow
def test_a_file_in_another_process_decides_alike(tmp_path):
    X, y = payments()
    expected = []
    for i, model in enumerate([rule(cost_matrix=of_amount), small_mlp(cost_matrix=of_amount)]):
        model.fit(X, y)
        joblib.dump((model, X), tmp_path / f"{i}.joblib")
        expected.append("".join(model.predict(X)))
        assert joblib.load(tmp_path / f"{i}.joblib")[0].score(X, y) == model.score(X, y)
    code = (
        "import sys, joblib\n"
        "for f in sys.argv[1:]:\n"
        "    m, X = joblib.load(f)\n"
        "    print(''.join(m.predict(X)), 'torch' in sys.modules)"
    )
    paths = [str(tmp_path / f"{i}.joblib") for i in range(2)]
    done = subprocess.run(
        [sys.executable, "-c", code, *paths], capture_output=True, text=True, check=True
    )
    # The rule needs no torch, whatever comes after it.
    assert done.stdout.splitlines() == [f"{expected[0]} False", f"{expected[1]} True"]


@pytest.mark.parametrize("kind", ["rule", "network", "ensemble"])
def test_a_file_decides_by_the_costs_that_its_module_has_now(kind, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def edit(divisor):
        text = f"import {__name__} as t\ncosts = lambda X: t.costs_of(X[:, -1] / {divisor})\n"
        text += "costs.__qualname__ = 'costs'\n"
        (tmp_path / "prices.py").write_text(text, encoding="utf-8")
        monkeypatch.delitem(sys.modules, "prices", raising=False)
        return importlib.import_module("prices").costs

    X, y = payments()
    old = edit(1)
    joblib.dump(MODELS[kind](cost_matrix=old).fit(X, y), tmp_path / "model.joblib")
    new = edit(8)
    model = joblib.load(tmp_path / "model.joblib")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alert = model.predict(X)
    np.testing.assert_array_equal(alert, model.predict(X, cost=new(X)))
    assert (alert != model.predict(X, cost=old(X))).any()


@pytest.mark.slow
def test_a_file_for_other_programs_has_costs_as_input():
    onnxruntime = pytest.importorskip("onnxruntime")
    from auxcst_sklearn.onnx import to_onnx

    X, y = payments()
    model = small_mlp(cost_matrix=of_last_column).fit(X, y)
    session = onnxruntime.InferenceSession(to_onnx(model, X).SerializeToString())
    feed = {"X": X, "cost_matrices": of_last_column(X).values}
    (index,) = session.run(["index"], feed)
    np.testing.assert_array_equal(CLASSES[index], model.predict(X))
    with pytest.raises(ValueError, match="cost_input=False.*'cost_matrices'"):
        to_onnx(model, X, cost_input=False)
    with pytest.raises(ValueError, match="output='probability'"):
        model.to_module()
    assert model.to_module("probability") is not None


# ----------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda X: np.ones((len(X), 2)), r"<lambda>\(X\) has shape .*constant matrix itself"),
        (lambda X: np.ones((3, 2, 2)), "has 3 rows, but there are 120 samples"),
        (lambda X: np.full((len(X), 2, 2), np.nan), r"<lambda>\(X\) contains nan"),
        (lambda X: None, r"<lambda>\(X\) has shape \(\); expected \(n_samples, n_classes"),
        (
            of_column,
            r"The function of_column\(X\), the cost_matrix of \w+, raised IndexError.*type ndarray "
            r"and shape \(120, 4\).*put the rule around it",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["rule", "network", "ensemble"])
def test_errors_name_the_function(kind, function, message):
    X, y = payments()
    with pytest.raises(ValueError, match=message) as raised:
        MODELS[kind](cost_matrix=function).fit(X, y)
    if function is of_column:
        assert isinstance(raised.value.__cause__, IndexError)


def test_an_error_in_predict_names_the_columns():
    X, y = payments()
    renamed = []
    model = rule(cost_matrix=lambda X: X["limit"] if renamed else of_column(X)).fit(frame(X), y)
    renamed.append("limit")
    with pytest.raises(ValueError, match=r"columns \['a', 'b', 'c', 'amount'\]"):
        model.predict(frame(X))


def test_an_error_of_a_function_ends_with_one_full_stop():
    X, y = payments()
    with pytest.raises(ValueError, match=r"5 values that are not finite[^.]*[^.]\. Bayes"):
        rule(cost_matrix=lambda X: costs_of([np.nan] * 5)).fit(X, y)


def test_two_sources_are_an_error():
    X, y = payments()
    model = rule(cost_matrix=of_last_column)
    with pytest.raises(ValueError, match="Got both cost and cost_matrix"):
        model.fit(X, y, cost=of_last_column(X))
    with (
        sklearn.config_context(enable_metadata_routing=True),
        pytest.raises(ValueError, match=r"set_fit_request\(cost=False\)"),
    ):
        model.fit(X, y, cost=of_last_column(X))


def test_metrics_have_no_x():
    X, y = payments()
    with pytest.raises(ValueError, match=r"Pass cost=of_last_column\(X\)"):
        mean_cost(y, y, cost_matrix=of_last_column)
    scorer = make_cost_scorer(cost_matrix=of_last_column)
    model = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=2)
    with pytest.raises(ValueError, match="let BayesMinimumRiskClassifier decide"):
        model.fit(X, y == "fraud")
    with pytest.raises(ValueError, match="put the rule around the model"):
        cost_scorer(LogisticRegression().fit(X, y), X, y)
