import numpy as np
import pytest

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs._statistics import CostStatistics
from auxcst_sklearn.metrics import mean_cost
from tests.factories import small_mlp, training_set

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])
LABEL = np.array([0, 2, 2, 0, 2])


@pytest.mark.parametrize("weight", [None, np.array([1.0, 2, 0.5, 3, 1])])
def test_a_matrix_stands_for_its_rows(weight):
    """Scale and statistics are the same from K rows as from n expanded ones."""
    by_class = training_set(None, LABEL, MATRIX, True, weight)
    by_row = training_set(None, LABEL, MATRIX[LABEL], False, weight)

    found, expected = by_class.statistics(), by_row.statistics()
    assert (found.offset, found.unit) == pytest.approx((expected.offset, expected.unit))
    np.testing.assert_allclose(found.weight, expected.weight)
    np.testing.assert_allclose(found.costs[[0, 2]], expected.costs[[0, 2]], atol=1e-12)


def test_statistics_are_in_units_of_the_costs():
    found = training_set(None, LABEL, MATRIX[LABEL], False, None).statistics()

    expected = CostStatistics.of((MATRIX[LABEL] - found.offset) / found.unit, LABEL)
    np.testing.assert_allclose(found.costs, expected.costs)


def test_a_stream_has_the_unit_and_the_statistics_of_all_its_rows():
    first, second = (
        training_set(None, LABEL, factor * MATRIX[LABEL], False, None) for factor in (1, 10)
    )
    before = first.statistics()

    found = second.statistics_after(before, stream=True)

    assert found.unit == pytest.approx((before.unit + second.statistics().unit) / 2)
    mean = (MATRIX[LABEL] + 10 * MATRIX[LABEL]) / 2
    expected = CostStatistics.of(mean, LABEL).costs
    np.testing.assert_allclose(found.to_currency(found.costs), expected)
    replaced = second.statistics_after(before, stream=False)
    assert replaced.unit == second.statistics().unit


def test_a_class_that_later_rows_lack_keeps_its_costs_in_currency():
    before = training_set(None, np.arange(3), MATRIX, False, None).statistics()
    later = training_set(None, LABEL, 10 * MATRIX[LABEL], False, None)

    found = later.statistics_after(before, stream=False)

    np.testing.assert_allclose(found.to_currency(found.costs)[1], MATRIX[1])


@pytest.mark.parametrize("per_class", [True, False])
def test_rows_without_weight_do_not_count(per_class):
    X = np.arange(5.0)[:, None]
    weight = np.array([1.0, 0, 2, 0, 1])
    cost = MATRIX if per_class else MATRIX[LABEL]

    kept = training_set(X, LABEL, cost, per_class, weight).with_positive_weights()

    assert kept.X.ravel().tolist() == [0, 2, 4]
    assert kept.label.tolist() == [0, 2, 2]
    assert kept.weight.tolist() == [1, 2, 1]
    np.testing.assert_array_equal(kept.values, MATRIX if per_class else MATRIX[[0, 2, 2]])


def test_small_weights_are_raised():
    weight = np.array([0.25, 0, 0.5, 0, 0.25]) / 3

    kept = training_set(np.ones((5, 1)), LABEL, MATRIX, True, weight).with_positive_weights()

    np.testing.assert_allclose(kept.weight, [0.75, 1.5, 0.75])


def test_some_weight_must_be_positive():
    X, y = np.arange(20.0).reshape(-1, 1), np.arange(20) % 2
    zero, refused = np.zeros(20), "zero for every sample|at least one non-zero"  # of scikit-learn
    for fit in (small_mlp().fit, BayesMinimumRiskClassifier().fit, small_mlp().partial_fit):
        with pytest.raises(ValueError, match=refused):
            fit(X, y, sample_weight=zero, **({"classes": [0, 1]} if "partial" in str(fit) else {}))
    with pytest.raises(ValueError, match=refused):
        small_mlp().fit(X, y, X_val=X, y_val=y, sample_weight_val=zero)
    with pytest.raises(ValueError, match=refused):
        mean_cost(y, y, cost_matrix=1 - np.eye(2), sample_weight=zero)


def test_a_class_without_examples_keeps_its_row_of_the_matrix():
    found = training_set(None, LABEL, MATRIX, True, None).statistics()

    assert found.weight[1] == 0
    np.testing.assert_allclose(found.to_currency(found.class_mean), MATRIX)
