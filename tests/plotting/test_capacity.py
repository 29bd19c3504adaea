from __future__ import annotations

import re

import numpy as np
import pytest

from auxcst_sklearn.decisions import assign, shadow_prices
from auxcst_sklearn.plotting import CostCapacityDisplay

COST = np.random.default_rng(0).uniform(0, 10, size=(30, 3))


def test_the_curve_is_the_cost_of_the_best_assignments():
    display = CostCapacityDisplay.from_predictions(COST, 1)

    for k, total in enumerate(display.total_cost):
        chosen = assign(COST, {1: k})
        assert total == pytest.approx(COST[np.arange(30), chosen].sum())
        price = shadow_prices(COST, {1: k})[1]
        assert (price == 0) == (k >= display.enough_)
    x, y = display.line_.get_data()
    np.testing.assert_array_equal(y, display.total_cost[: len(x)])
    assert len(x) > display.enough_


def test_a_capacity_is_marked_with_its_price():
    display = CostCapacityDisplay.from_predictions(
        COST, "refer", decisions=["go", "refer", "hold"], capacity=4, unit="EUR"
    )

    price = shadow_prices(COST, {1: 4})[1]
    _, marked = display.ax_.get_legend().get_texts()
    assert marked.get_text() == f"4: one more saves {price:.3g} EUR"
    assert display.ax_.get_xlabel() == "capacity of refer"
    assert display.plot(ax=display.ax_, capacity=99).ax_ is display.ax_
    share = CostCapacityDisplay.from_predictions(COST, 1, capacity=0.15)
    assert share.ax_.get_legend().get_texts()[1].get_text() == f"4: one more saves {price:.3g}"


@pytest.mark.parametrize("capacity", [-1, 1.5, float("nan"), True, "3", [3]])
def test_a_capacity_that_is_no_number_of_places_is_named(capacity):
    with pytest.raises(ValueError, match=rf"capacity={re.escape(repr(capacity))}; expected a nu"):
        CostCapacityDisplay.from_predictions(COST, 1, capacity=capacity)


def test_a_decision_that_never_helps_is_worth_nothing():
    display = CostCapacityDisplay.from_predictions([[1.0, 2.0], [0.0, 2.0]], 1)

    np.testing.assert_array_equal(display.total_cost, [1, 1, 1])
    assert display.enough_ == 0


@pytest.mark.parametrize(("decision", "decisions"), [("c", ["a", "b", "d"]), ("a", ["a", "b"])])
def test_labels_must_fit(decision, decisions):
    with pytest.raises(ValueError, match="expected one of the 3 columns"):
        CostCapacityDisplay.from_predictions(COST, decision, decisions=decisions)
