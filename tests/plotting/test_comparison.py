from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.utils import Bunch

from auxcst_sklearn.metrics import compare_costs
from auxcst_sklearn.plotting import CostComparisonDisplay
from tests.plotting.conftest import COST_MATRIX

TABLE = Bunch(
    index=["base", "cheaper", "dearer", "either"],
    cost=np.array([1234.0, 1111, 1235.5, 1234]),
    difference=np.array([np.nan, -123, 1.5, 0.02]),
    low=np.array([np.nan, -200, 0.5, -1]),
    high=np.array([np.nan, -46, 2.5, 1.04]),
)


def test_bars_and_intervals_are_those_of_the_rows():
    display = CostComparisonDisplay.from_comparison(TABLE, unit="EUR")

    assert display.ax_.get_xlabel() == "cost minus the cost of base, 1,234 EUR (95 % intervals)"
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == TABLE.index[1:]
    bars = display.bars_.patches
    np.testing.assert_allclose([bar.get_width() for bar in bars], TABLE.difference[1:])
    colors = [to_hex(bar.get_facecolor()) for bar in bars]
    assert colors == ["#0072b2", "#d55e00", "#999999"]
    assert [text.get_text() for text in display.ax_.texts] == ["-123", "+2", "+0"]
    segments = display.ax_.collections[0].get_segments()
    ends = [[segment[:, 0].min(), segment[:, 0].max()] for segment in segments]
    np.testing.assert_allclose(ends, np.c_[TABLE.low, TABLE.high][1:])


def test_models_that_decide_alike_differ_by_nothing():
    same = {name: np.zeros(4) for name in ("low", "high")}
    table = Bunch(**{**TABLE, **same, "difference": np.array([np.nan, 0, 0, 0])})

    display = CostComparisonDisplay.from_comparison(table, rows=["cheaper"])

    assert [text.get_text() for text in display.ax_.texts] == ["+0.000"]


def test_some_rows_of_a_comparison_on_given_axes(data):
    models = {"Bayes": GaussianNB(), "logistic": LogisticRegression()}
    table = compare_costs(models, *data, cost_matrix=COST_MATRIX, baseline="logistic", cv=3)
    _, ax = plt.subplots()

    display = CostComparisonDisplay.from_comparison(
        table, ax=ax, rows=["most probable class", "Bayes", "logistic"]
    )

    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["Bayes", "most probable class"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first row is above
    for comparison, rows in ((table.drop("logistic"), None), (table, ["Bayse"])):
        with pytest.raises(ValueError, match="Expected .* among them"):
            CostComparisonDisplay.from_comparison(comparison, rows=rows)
