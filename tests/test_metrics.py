import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.stats import ttest_1samp, ttest_rel
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import UndefinedMetricWarning

from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import (
    cost_difference,
    cost_scorer,
    make_cost_scorer,
    mean_cost,
    savings_score,
)

MATRIX = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])
Y_TRUE = np.array(["a", "b", "c", "c"])
Y_PRED = np.array(["a", "c", "a", "c"])


def test_mean_cost_of_a_matrix():
    assert mean_cost(Y_TRUE, Y_PRED, cost_matrix=MATRIX) == (0 + 4 + 5 + 0) / 4


def test_mean_cost_of_cost_vectors_and_weights():
    cost = np.arange(12.0).reshape(4, 3)
    weight = np.array([1, 0, 2, 1])

    found = mean_cost(Y_TRUE, Y_PRED, cost=cost, sample_weight=weight)

    assert found == (1 * 0 + 0 * 5 + 2 * 6 + 1 * 11) / 4


def test_objects_that_are_numbers_are_numbers():
    true, predicted = np.array([0, 1, 1], dtype=object), [0, 0, 1]
    expected = mean_cost(true.astype(int), predicted, cost_matrix=MATRIX[:2, :2])
    assert mean_cost(true, predicted, cost_matrix=MATRIX[:2, :2]) == expected


def test_probabilities_are_not_labels():
    with pytest.raises(ValueError, match=r"y_pred: .*got an array of shape \(4, 3\)"):
        mean_cost(Y_TRUE, np.ones((4, 3)), cost_matrix=MATRIX)


def test_missing_labels_are_named():
    with pytest.raises(ValueError, match="y_true contains NaN or None for 1 of 2 rows"):
        mean_cost(np.array(["a", None], dtype=object), ["a", "b"], cost_matrix=MATRIX[:2, :2])
    pa = pytest.importorskip("pyarrow")
    column = pa.chunked_array([pa.array(["a", "b", None]).dictionary_encode()])
    with pytest.raises(ValueError, match="y_true contains NaN or None for 1 of 3 rows"):
        mean_cost(column, ["a", "b", "b"], cost_matrix=MATRIX[:2, :2])


def test_mean_cost_of_classes_in_any_order():
    matrix = MATRIX[np.ix_([2, 0, 1], [2, 0, 1])]

    assert mean_cost(Y_TRUE, Y_PRED, cost_matrix=matrix, classes=["c", "a", "b"]) == 9 / 4


def test_savings_score():
    cost = MATRIX[[0, 1, 2, 2]]
    constant = cost.mean(axis=0).min()

    assert savings_score(Y_TRUE, Y_PRED, cost_matrix=MATRIX) == pytest.approx(1 - 9 / 4 / constant)
    assert savings_score(Y_TRUE, Y_TRUE, cost=cost) == 1.0


def test_savings_score_is_undefined_where_a_constant_costs_nothing():
    with pytest.warns(UndefinedMetricWarning, match="best constant prediction costs 0"):
        assert np.isnan(savings_score([0, 0], [0, 1], cost_matrix=[[0, 1], [1, 0]]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "neither cost nor cost_matrix"),
        ({"cost": MATRIX, "cost_matrix": MATRIX}, "both cost and cost_matrix"),
        ({"cost": np.ones((2, 3))}, "cost has 2 rows, but there are 4 samples"),
        ({"cost_matrix": MATRIX, "classes": ["a", "b", "d"]}, "labels that are not among"),
        ({"cost_matrix": np.eye(2)}, r"shape \(2, 2\); expected \(3, 3\)"),
        ({"cost_matrix": MATRIX, "sample_weight": [1, 2]}, "sample_weight.shape == "),
        ({"cost_matrix": MATRIX, "sample_weight": np.zeros(len(Y_TRUE))}, "zero"),
        ({"cost_matrix": MATRIX, "sample_weight": np.full(len(Y_TRUE), np.nan)}, "contains NaN"),
        ({"cost_matrix": MATRIX, "sample_weight": -np.ones(len(Y_TRUE))}, "[Nn]egative"),
    ],
)
def test_bad_input(arguments, message):
    for metric in (mean_cost, savings_score):
        with pytest.raises(ValueError, match=message):
            metric(Y_TRUE, Y_PRED, **arguments)


def test_no_samples_have_no_mean():
    for metric in (mean_cost, savings_score):
        with pytest.raises(ValueError, match="y_true contains no samples"):
            metric([], [], cost_matrix=MATRIX, classes=["a", "b", "c"])


def test_make_cost_scorer_with_named_classes():
    estimator = DummyClassifier(strategy="constant", constant="a").fit([[0], [0]], ["a", "c"])

    scorer = make_cost_scorer(cost_matrix=MATRIX, classes=["a", "b", "c"])

    assert scorer(estimator, [[0]], ["c"]) == -5.0


@pytest.mark.parametrize("scorer", [cost_scorer, make_cost_scorer(cost_matrix=MATRIX)], ids=repr)
@pytest.mark.parametrize("routing", [False, True])
def test_scorers_pickle_and_declare_what_they_ask_for(scorer, routing):
    with sklearn.config_context(enable_metadata_routing=routing):
        asked = pickle.loads(pickle.dumps(scorer)).get_metadata_routing().score.requests

    expected = {"cost": True, "sample_weight": True}
    assert asked == (expected if scorer is cost_scorer else {"sample_weight": True})


@pytest.fixture
def two_models():
    """Labels, two predictions and costs that are known for each row."""
    rng = np.random.default_rng(0)
    y, a, b = rng.integers(2, size=(3, 80))
    amount = rng.lognormal(3, 1, 80)
    costs = binary_cost_matrices(fp_cost=5, fn_cost=amount, classes=[0, 1], pos_label=1)
    return y, a, b, costs.values


@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_the_paired_difference_agrees_with_scipy(two_models, confidence):
    y, a, b, cost = two_models
    paid = [[cost[i, y[i], chosen[i]] for i in range(80)] for chosen in (a, b)]
    interval = ttest_rel(*paid).confidence_interval(confidence)

    found = cost_difference(y, a, b, cost=cost, confidence=confidence)

    assert found.mean == pytest.approx(mean_cost(y, a, cost=cost) - mean_cost(y, b, cost=cost))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))


def test_the_paired_difference_of_weighted_rows(two_models):
    y, a, b, cost = two_models
    weight = np.random.default_rng(1).uniform(0.5, 2, 80)
    costs = {"cost": cost, "sample_weight": weight}
    plain = cost_difference(y, a, b, cost=cost)

    found = cost_difference(y, a, b, **costs)

    assert found.mean == pytest.approx(mean_cost(y, a, **costs) - mean_cost(y, b, **costs))
    draws = np.random.default_rng(2).integers(80, size=(4000, 80))
    d = np.array([cost[i, y[i], a[i]] - cost[i, y[i], b[i]] for i in range(80)])
    resampled = (weight * d)[draws].sum(axis=1) / weight[draws].sum(axis=1)
    assert found.high - found.low == pytest.approx(2 * 1.99 * resampled.std(), rel=0.05)
    for scale in (np.ones(80), np.full(80, 7.0), np.append(np.ones(80), np.zeros(80))):
        rows = np.arange(len(scale)) % 80
        again = cost_difference(y[rows], a[rows], b[rows], cost=cost[rows], sample_weight=scale)
        assert again == pytest.approx(plain)


def test_groups_are_the_independent_units_of_a_paired_difference(two_models):
    y, a, b, cost = two_models
    plain = cost_difference(y, a, b, cost=cost)
    rows = np.repeat(np.arange(80), 3)
    customers = [f"customer {i}" for i in rows]
    repeated = {"y_true": y[rows], "y_pred_a": a[rows], "y_pred_b": b[rows], "cost": cost[rows]}

    assert cost_difference(**repeated, groups=customers) == pytest.approx(plain)
    assert cost_difference(y, a, b, cost=cost, groups=np.arange(80)) == pytest.approx(plain)
    # Of groups of equal weight the interval is that of their means.
    halves = cost_difference(y, a, b, cost=cost, groups=np.arange(80) % 2)
    d = [cost[i, y[i], a[i]] - cost[i, y[i], b[i]] for i in range(80)]
    interval = ttest_1samp([np.mean(d[::2]), np.mean(d[1::2])], 0).confidence_interval()
    assert (halves.low, halves.high) == pytest.approx((interval.low, interval.high))


@pytest.mark.parametrize("unit", [1e-200, 1e200])
def test_the_paired_difference_takes_weights_and_costs_of_any_unit(two_models, unit):
    y, a, b, cost = two_models
    weight = np.random.default_rng(1).uniform(0.5, 2, 80)
    plain = cost_difference(y, a, b, cost=cost, sample_weight=weight)

    by_weight = cost_difference(y, a, b, cost=cost, sample_weight=weight * unit)
    by_cost = cost_difference(y, a, b, cost=cost * unit, sample_weight=weight)

    assert by_weight == pytest.approx(plain)
    assert np.divide(by_cost, unit) == pytest.approx(plain)


def test_the_paired_difference_takes_labels_that_one_model_alone_predicts():
    found = cost_difference(Y_TRUE[:2], ["a", "b"], ["c", "a"], cost_matrix=MATRIX)
    assert found.mean == (0 + 0 - 2 - 3) / 2

    frame = pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc"))
    same = cost_difference(["a", "b"], ["a", "b"], ["a", "b"], cost_matrix=frame)
    assert same == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"confidence": 1}, "confidence=1; expected a number between 0 and 1"),
        ({"confidence": "95%"}, "confidence='95%'; expected a number between 0 and 1"),
        ({"sample_weight": [0, 0, 3, 0]}, "at least two samples that count; got 1"),
        ({"groups": [1, 1, 1, 1]}, "at least two groups that count; got 1"),
        ({"groups": [1, 2, 3, None]}, "groups contains NaN or None"),
    ],
)
def test_mistakes_in_a_paired_comparison(arguments, message):
    with pytest.raises(ValueError, match=message):
        cost_difference(Y_TRUE, Y_PRED, Y_PRED, **{"cost_matrix": MATRIX, **arguments})


def test_rows_of_groups_are_those_of_the_labels():
    groups = pd.Series([1, 1, 2, 2], index=[3, 2, 1, 0])
    with pytest.raises(ValueError, match="index of groups has labels of that of y_true"):
        cost_difference(pd.Series(Y_TRUE), Y_PRED, Y_PRED, cost_matrix=MATRIX, groups=groups)
