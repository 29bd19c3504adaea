import numpy as np

from auxcst_sklearn.costs._statistics import CostStatistics

COST = np.array([[0.0, 2.0, 4.0], [1.0, 1.0, 7.0], [3.0, 3.0, 3.0]])


def test_statistics_are_weighted_means():
    label = np.array([0, 1, 0])
    weight = np.array([1.0, 2.0, 3.0])

    found = CostStatistics.of(COST, label, weight)

    np.testing.assert_allclose(found.mean, np.average(COST, axis=0, weights=weight))
    first = np.average(COST[[0, 2]], axis=0, weights=[1, 3])
    np.testing.assert_allclose(found.class_mean, [first, COST[1], found.mean])
    np.testing.assert_allclose(found.prior, [5 / 9, 3 / 9, 1 / 9])


def test_statistics_add_up():
    label = np.array([0, 1, 2])
    whole = CostStatistics.of(COST, label)

    parts = CostStatistics.of(COST[:1], label[:1]).merge(
        CostStatistics.of(COST[1:], label[1:]), replaces=False
    )

    np.testing.assert_array_equal(parts.weight, whole.weight)
    np.testing.assert_array_equal(parts.costs, whole.costs)
    twice = whole.merge(whole, replaces=False)
    np.testing.assert_array_equal(twice.weight, 2 * whole.weight)
    np.testing.assert_allclose(twice.costs, whole.costs)
    replaced = whole.merge(CostStatistics(whole.weight, COST + 1), replaces=True)
    np.testing.assert_array_equal(replaced.weight, 2 * whole.weight)
    np.testing.assert_array_equal(replaced.costs, COST + 1)
