"""CostCapacityDisplay: the expected cost against the capacity of one decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_array

from .._checks.calls import inherit_docs
from ..costs._assignment import capacity_count
from ._drawing import COLORS, Display, amount, axes, draw_legend, tidy

if TYPE_CHECKING:
    from collections.abc import Hashable

    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class CostCapacityDisplay:
    """Expected cost against the capacity of a limited decision, and what one more unit is worth.

    Created by :meth:`from_predictions`. The slope of the curve is the shadow price of
    :func:`auxcst_sklearn.decisions.shadow_prices`.

    Parameters
    ----------
    total_cost : ndarray of shape (n_samples + 1,)
        Expected cost of all samples with a capacity of 0, 1, ..., which goes to the samples that
        save most.
    decision : str or number
        The limited decision.

    Attributes
    ----------
    enough_ : int
        The capacity from which on one more unit is worth nothing.
    ax_, figure_, line_ : matplotlib Axes, Figure and Line2D
        What is drawn.

    Examples
    --------
    >>> from auxcst_sklearn.plotting import CostCapacityDisplay
    >>> expected_cost = [[9.0, 5.0], [4.0, 5.0], [20.0, 5.0]]  # pass, review
    >>> display = CostCapacityDisplay.from_predictions(
    ...     expected_cost, "review", decisions=["pass", "review"])
    >>> display.total_cost
    array([33., 18., 14., 14.])
    >>> display.enough_
    2
    """

    total_cost: NDArray[Any]
    decision: Hashable

    def __post_init__(self) -> None:
        self.enough_ = int(np.count_nonzero(np.diff(self.total_cost) < 0))

    @classmethod
    @inherit_docs(Display)
    def from_predictions(
        cls,
        expected_cost: ArrayLike,
        decision: Hashable,
        *,
        decisions: ArrayLike | None = None,
        **plot_kw: Any,
    ) -> CostCapacityDisplay:
        """Draw the expected cost of the best assignment with each capacity.

        Parameters
        ----------
        expected_cost : array-like of shape (n_samples, n_decisions)
            Expected cost of each decision for each sample, in currency, as from `predict_cost`.
        decision : str or number
            The limited decision; the others have no limit.
        decisions : array-like of shape (n_decisions,), default=None
            Labels of the columns; None for their positions.

        Raises
        ------
        ValueError
            If `decision` is no column, or the only one.
        """
        cost = check_array(
            expected_cost, dtype=np.float64, ensure_min_features=2, input_name="expected_cost"
        )
        labels = list(range(cost.shape[1])) if decisions is None else np.asarray(decisions).tolist()
        if decision not in labels or len(labels) != cost.shape[1]:
            raise ValueError(
                f"decision={decision!r}; expected one of the {cost.shape[1]} columns of "
                f"expected_cost, with the labels {labels}."
            )
        j = labels.index(decision)
        without = np.delete(cost, j, axis=1).min(axis=1)
        gain = np.maximum(np.sort(without - cost[:, j])[::-1], 0)
        total = without.sum() - np.concatenate([[0], gain.cumsum()])
        return cls(total, decision).plot(**plot_kw)

    @inherit_docs(Display)
    def plot(
        self, ax: Axes | None = None, *, capacity: float | None = None, unit: str | None = None
    ) -> CostCapacityDisplay:
        """Draw the curve.

        Parameters
        ----------
        capacity : int or float, default=None
            Capacity to mark, as a number or, as a float, a share of the samples, with what one more
            unit is worth.

        Raises
        ------
        ValueError
            If `capacity` is neither a number of samples nor a share of them.
        """
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        total, of = self.total_cost, f" {unit}" if unit else ""
        k = 0 if capacity is None else capacity_count("capacity", capacity, len(total) - 1)
        shown = min(len(total), max(int(1.2 * self.enough_), k) + 2)
        (self.line_,) = ax.plot(np.arange(shown), total[:shown], color=COLORS[0])
        label = f"{self.enough_:,}: one more is worth nothing"
        ax.axvline(self.enough_, ls="--", color=COLORS[1], label=label)
        if capacity is not None:
            worth = total[k] - total[min(k + 1, len(total) - 1)]
            label = f"{k:,}: one more saves {amount(worth)}{of}"
            ax.plot(k, total[k], "o", color=COLORS[2], label=label)
        ax.set(
            xlabel=f"capacity of {self.decision}",
            ylabel=f"expected cost ({unit})" if unit else "expected cost",
        )
        tidy(ax)
        draw_legend(ax)
        return self
