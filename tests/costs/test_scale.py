import numpy as np
import pytest

from auxcst_sklearn.costs._statistics import CostStatistics, unit_of

COST = np.array([[0.0, 2.0, 4.0], [1.0, 1.0, 7.0], [3.0, 3.0, 3.0]])


def scale_of(cost, weight=None):
    return CostStatistics(np.ones(len(cost)), cost, *unit_of(cost, weight))


def test_unit_is_the_mean_above_the_row_minima():
    scale = scale_of(COST)

    assert scale.offset == pytest.approx((0 + 1 + 3) / 3)
    assert scale.unit == pytest.approx((2 + 4 + 6) / 3)


def test_weights_count_rows():
    weighted = scale_of(COST, np.array([2.0, 1.0, 0.0]))
    repeated = scale_of(COST[[0, 0, 1]])

    assert weighted.offset == pytest.approx(repeated.offset)
    assert weighted.unit == pytest.approx(repeated.unit)


@pytest.mark.parametrize("unit", [1e-300, 1e-12, 1.0, 1e12, 1e300])
def test_costs_of_any_unit_come_out_alike_and_go_back(unit):
    scale = scale_of(COST * unit)

    found = scale.to_units(COST * unit)
    np.testing.assert_allclose(found, scale_of(COST).to_units(COST), atol=1e-12)
    np.testing.assert_allclose(scale.to_currency(found) / unit, COST)


def test_a_common_fee_changes_nothing():
    found = scale_of(COST + 1e6).to_units(COST + 1e6)
    np.testing.assert_allclose(found, scale_of(COST).to_units(COST), atol=1e-9)


def test_the_widest_costs_stay_finite():
    cost = np.array([[-1e308, 1e308], [0.0, 1e308]])

    assert np.isfinite(scale_of(cost).to_units(cost)).all()


@pytest.mark.parametrize("cost", [np.zeros((2, 3)), np.full((2, 3), 5.0)])
def test_costs_without_differences(cost):
    scale = scale_of(cost)

    assert scale.unit == 1.0
    np.testing.assert_array_equal(scale.to_units(cost), 0)


@pytest.mark.parametrize("fee", [1e17, 1e300, -1e300])
def test_differences_that_are_lost_beside_what_a_row_costs_anyway_are_refused(fee):
    with pytest.raises(ValueError, match="lost in rounding. Subtract the smallest"):
        scale_of(COST + fee * np.array([[1.0], [0], [0]]))
    scale_of(np.array([[1e300, 1e300], [-1e300, -1e300]]))  # no differences at all
