"""CostComparisonDisplay: intervals of the differences from a baseline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ._drawing import COLORS, amount, axes, tidy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class CostComparisonDisplay:
    """Mean costs of models minus the cost of a baseline, with intervals of the differences.

    Created by :meth:`from_comparison`. Blue models have a lower cost than the baseline, and orange
    models a higher cost. The intervals of grey models include zero.

    Parameters
    ----------
    comparison : DataFrame or mapping
        The result of :func:`auxcst_sklearn.metrics.compare_costs`.

    Attributes
    ----------
    ax_, figure_, bars_ : matplotlib Axes, Figure and BarContainer
        What is drawn.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from auxcst_sklearn.metrics import compare_costs
    >>> from auxcst_sklearn.plotting import CostComparisonDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> models = {"logistic regression": LogisticRegression(max_iter=500)}
    >>> table = compare_costs(models, X, y, cost_matrix=[[0, 1, 1], [1, 0, 1], [1, 10, 0]])
    >>> display = CostComparisonDisplay.from_comparison(table)
    >>> display.ax_.get_xlabel()
    'cost minus the cost of logistic regression, 0.167 (95 % intervals)'
    """

    comparison: Any

    @classmethod
    def from_comparison(cls, comparison: Any, **plot_kw: Any) -> CostComparisonDisplay:
        """Draw the differences of a comparison.

        Parameters
        ----------
        comparison : DataFrame or mapping
            The result of :func:`auxcst_sklearn.metrics.compare_costs`.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        display : object
            The drawn display.
        """
        return cls(comparison).plot(**plot_kw)

    def plot(
        self, ax: Axes | None = None, *, rows: Sequence[str] | None = None, unit: str | None = None
    ) -> CostComparisonDisplay:
        """Draw a bar and an interval for each row but the baseline.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created.
        rows : sequence of str, default=None
            Names of the rows to draw. If None, all rows are drawn.
        unit : str, default=None
            Unit of the costs, such as "EUR".

        Returns
        -------
        display : object
            The drawn display.

        Raises
        ------
        ValueError
            If the comparison lacks one of the rows, or the baseline.
        """
        table, names = self.comparison, list(self.comparison.index)
        columns = ("cost", "difference", "low", "high")
        cost, mean, low, high = (np.asarray(table[name]) for name in columns)
        wanted = names if rows is None else list(rows)
        if not np.isnan(mean).any() or not set(wanted) <= set(names):
            raise ValueError(
                f"The comparison has the rows {names}. Expected {wanted} among them, and a "
                "baseline, whose difference is NaN."
            )
        base = int(np.isnan(mean).argmax())
        shown = [i for i, name in enumerate(names) if name in wanted and i != base]
        mean, low, high = mean[shown], low[shown], high[shown]
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        colors = np.select([high < 0, low > 0], COLORS[:2], "0.6")
        places = np.arange(len(mean))
        self.bars_ = ax.barh(places, mean, height=0.6, color=colors, alpha=0.75)
        ax.errorbar(mean, places, xerr=[mean - low, high - mean], fmt="none", color="k", capsize=4)
        largest = np.abs(mean).max(initial=0) or 1.0
        digits = max(0, 3 - int(np.ceil(np.log10(largest))))  # the largest has three digits
        for place, end, difference in zip(places, np.maximum(high, 0), mean):
            text = f"{difference:+,.{digits}f}"
            ax.annotate(text, (end, place), (6, 0), textcoords="offset points", va="center")
        ax.axvline(0, color="k", linewidth=1)
        ax.set_yticks(places, [names[i] for i in shown])
        ax.invert_yaxis()
        ax.margins(x=0.12)
        theirs = f"{names[base]}, {amount(cost[base])}"
        theirs += f" {unit}" if unit else ""
        ax.set_xlabel(f"cost minus the cost of {theirs} (95 % intervals)")
        tidy(ax)
        ax.grid(visible=False)
        return self
