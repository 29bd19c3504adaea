"""Rows of two labelled objects that do not belong together are refused wherever they meet."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, permutation_test_score, train_test_split
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import (
    cost_difference,
    cost_scorer,
    make_cost_scorer,
    mean_cost,
    savings_score,
)
from tests.factories import small_mlp

N = 60


@pytest.fixture(scope="module")
def rows():
    """Rows with an index of their own: X, y, costs, weights, groups."""
    rng = np.random.default_rng(0)
    index = pd.Index(1000 + rng.permutation(N))
    X = pd.DataFrame(rng.normal(size=(N, 3)), index, list("abc"))
    y = (X.a > 0).astype(int)
    cost = pd.DataFrame({0: 5.0 * y, 1: 1.0 * (1 - y)})
    weight, group = pd.Series(rng.uniform(1, 2, N), index), pd.Series(np.arange(N) // 4, index)
    return X, y, cost, weight, group


def reordered(part):
    return part.sort_index()


def of_another_split(part):
    """Most of the same rows, at other positions, and some others."""
    shifted = part.iloc[np.roll(np.arange(N), 7)]
    return shifted.set_axis([*shifted.index[:-3], -1, -2, -3])


RULE = BayesMinimumRiskClassifier(GaussianNB())
ENSEMBLE = CostSensitiveEnsembleClassifier([("a", GaussianNB())])
TRAINING = {"X": np.eye(N, 3), "y": [0, 1] * (N // 2), "cost": np.ones((N, 2))}
FITS = {
    "network": lambda groups, **rows: small_mlp().fit(**rows, groups=groups),
    "partial_fit": lambda groups, **rows: small_mlp().partial_fit(**rows, classes=[0, 1]),
    "validation set": lambda groups, **rows: small_mlp().fit(
        **TRAINING, **{f"{name}_val": part for name, part in rows.items()}
    ),
    "rule": lambda groups, **rows: RULE.fit(**rows),
    "ensemble": lambda groups, **rows: ENSEMBLE.fit(**rows, groups=groups),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
@pytest.mark.parametrize("changed", ["y", "cost", "sample_weight", "groups"])
@pytest.mark.parametrize("change", [reordered, of_another_split])
def test_in_every_fit(rows, fit, changed, change):
    given = dict(zip(["X", "y", "cost", "sample_weight", "groups"], rows))
    given[changed] = change(given[changed])
    if changed == "groups" and fit not in (FITS["network"], FITS["ensemble"]):
        pytest.skip("takes no groups")
    with pytest.raises(ValueError, match=r"The index of \w+ has labels of that of \w+ (in|at)"):
        fit(**given)


@pytest.mark.parametrize("change", [reordered, of_another_split])
def test_labels_of_another_order_alone_are_a_warning(rows, change):
    """permutation_test_score of scikit-learn permutes y with its index."""
    X, y, *_ = rows
    for fit in (RULE.fit, ENSEMBLE.fit, small_mlp().fit):
        with pytest.warns(UserWarning, match="The index of y has labels of that of X (in|at)"):
            fit(X, change(y))
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=[[0, 1], [5, 0]])
    with pytest.warns(UserWarning, match="The index of y has labels"):
        permutation_test_score(model, X, y, cv=2, n_permutations=2)


def metrics_of(X, y, predicted, cost, weight):
    model = BayesMinimumRiskClassifier(GaussianNB()).fit(np.asarray(X), np.arange(N) % 2)
    evaluated = {"cost": cost, "sample_weight": weight}
    return [
        lambda: mean_cost(y, predicted, **evaluated),
        lambda: savings_score(y, predicted, **evaluated),
        lambda: cost_difference(y, y, predicted, **evaluated),
        lambda: cost_scorer(model, predicted.to_frame(), y, **evaluated),
        lambda: model.score(predicted.to_frame(), y, **evaluated),
    ]


@pytest.mark.parametrize("changed", range(4))
@pytest.mark.parametrize("change", [reordered, of_another_split])
def test_in_metrics_and_scorers(rows, changed, change):
    X, y, cost, weight, _ = rows
    given = [y, y.copy(), cost, weight]
    given[changed] = change(given[changed])
    for call in metrics_of(X, *given):
        with pytest.raises(ValueError, match="has labels of that of"):
            call()
    scorer = make_cost_scorer(cost_matrix=[[0, 1], [5, 0]])
    if changed in (0, 3):
        with pytest.raises(ValueError, match="has labels of that of [Xy]"):
            scorer(LogisticRegression().fit(X, y), X, given[0], sample_weight=given[3])


def test_in_displays(rows):
    pytest.importorskip("matplotlib")
    from auxcst_sklearn.plotting import CostConfusionDisplay, CostThresholdDisplay

    X, y, cost, weight, _ = rows
    model, wrong = LogisticRegression().fit(X, y), reordered
    p = pd.Series(model.predict_proba(X)[:, 1], X.index)
    for call in (
        lambda: CostConfusionDisplay.from_estimator(model, wrong(X), y, cost=cost),
        lambda: CostConfusionDisplay.from_predictions(y, wrong(y), cost=cost),
        lambda: CostConfusionDisplay.from_predictions(y, y, cost=cost, sample_weight=wrong(weight)),
        lambda: CostThresholdDisplay.from_estimator(model, X, y, cost=wrong(cost)),
        lambda: CostThresholdDisplay.from_predictions(y, wrong(p), cost=cost),
    ):
        with pytest.raises(ValueError, match="has labels of that of"):
            call()


def test_in_folds_and_helpers(rows):
    X, y, cost, weight, _ = rows
    with sklearn.config_context(enable_metadata_routing=True):
        how = {"params": {"cost": reordered(cost)}, "scoring": cost_scorer, "cv": 3}
        with pytest.raises(ValueError, match="index of cost has labels of that of X"):
            cross_val_score(LogisticRegression(), X, y, error_score="raise", **how)
    known = {"fp_cost": 1, "fn_cost": weight, "classes": [0, 1], "pos_label": 1}
    for other in (reordered(weight), of_another_split(weight)):
        with pytest.raises(ValueError, match="has labels of that of"):
            binary_cost_matrices(**known, tp_cost=other)


RIGHT = {
    "the same index": lambda part, index: part,
    "a default index": lambda part, index: part.reset_index(drop=True),
    "other labels": lambda part, index: part.set_axis([f"row {i}" for i in range(N)]),
    "no index": lambda part, index: part.to_numpy(),
    "some other labels": lambda part, index: part.set_axis([*index[:-1], -1]),
}


@pytest.mark.parametrize("made", RIGHT.values(), ids=RIGHT)
def test_without_evidence_rows_belong_together_by_position(rows, made):
    X, y, cost, weight, _ = rows
    expected = small_mlp().fit(X, y, cost=cost, sample_weight=weight).predict_cost(X)
    for changed in range(4):
        given = [X, y, cost, weight]
        given[changed] = made(given[changed], X.index)
        X_, y_, cost_, weight_ = given
        model = small_mlp()
        X_ = X_ if isinstance(X_, pd.DataFrame) else pd.DataFrame(X_, X.index, X.columns)
        found = model.fit(X_, y_, cost=cost_, sample_weight=weight_).predict_cost(X)
        np.testing.assert_array_equal(found, expected)


def test_a_new_frame_of_costs_fits_a_part_of_a_table():
    """X_train has labels out of 0 .. N-1, and costs that were computed for it 0 .. n-1."""
    table = pd.DataFrame({"a": np.arange(100.0)})
    part, _ = train_test_split(table, random_state=0)
    y, cost = np.arange(len(part)) % 2, pd.DataFrame(np.ones((len(part), 2)))
    assert RULE.fit(part, y, cost=cost).cost_matrix_.tolist() == [[1, 1], [1, 1]]


def test_gaps_repeats_and_types_in_an_index():
    index = pd.Index(["a", np.nan, "a", 3], dtype=object)
    dates = pd.date_range("2026-01-01", periods=4)
    pairs = pd.MultiIndex.from_product([["x", "y"], [0, 1]])
    for own in (index, dates, pairs, pd.CategoricalIndex(list("abca"))):
        X = pd.DataFrame({"x": range(4)}, own)
        weight = pd.Series(np.ones(4), own)
        RULE.fit(X, pd.Series([0, 1, 0, 1]), sample_weight=weight)
        with pytest.raises(ValueError, match="row 0 of sample_weight, but row [123] of X"):
            RULE.fit(X, [0, 1, 0, 1], sample_weight=weight.iloc[[1, 0, 3, 2]])
    X, weight = pd.DataFrame({"x": 1}, [5, 1, 7]), pd.Series(1, [1.0, 9.0, 3.0])
    with pytest.raises(
        ValueError, match="positions: 1.0 is row 0 of sample_weight, but row 1 of X"
    ):
        RULE.fit(X, [0, 1, 0], sample_weight=weight)
