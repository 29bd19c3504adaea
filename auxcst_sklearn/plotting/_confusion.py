"""CostConfusionDisplay: the cost of each kind of mistake."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks.calls import described_like
from ..costs._account import Costs, labels_of_rows
from ..costs._evaluation import check_evaluated, decided, decisions_of, evaluated, final_estimator
from ..costs._named import column_names
from ..metrics._measures import mean_cost
from ._drawing import Display, amount, axes, cell_points, thin_out_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class CostConfusionDisplay:
    """Confusion matrix of costs: the total cost of each prediction for each true class.

    Created by :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    cost : ndarray of shape (n_classes, n_decisions)
        Sum of the costs of the samples of each true class (row) and prediction or decision
        (column).
    counts : ndarray of shape (n_classes, n_decisions)
        Number of these samples, or the sum of their weights.
    display_labels : array-like of shape (n_classes,), default=None
        Names of the classes; None for their numbers.
    decisions : array-like of shape (n_decisions,), default=None
        Names of the columns, if they are decisions other than the classes.

    Attributes
    ----------
    total_cost, mean_cost : float
        Sum of all costs, and the mean as in :func:`auxcst_sklearn.metrics.mean_cost`.
    ax_, figure_, im_ : matplotlib Axes, Figure and AxesImage
        What is drawn.
    text_ : ndarray of shape (n_rows, n_columns) or None
        The matplotlib Text in each cell that is drawn, None in cells without; None if the numbers
        would not be legible.

    Notes
    -----
    For other names of the classes, use ``display.ax_.set(xticklabels=names, yticklabels=names)``.
    To draw the costliest of many classes, make a display of a part::

        top = np.sort(np.argsort(display.cost.sum(axis=1))[-20:])
        part = display.cost[np.ix_(top, top)], display.counts[np.ix_(top, top)]
        CostConfusionDisplay(*part, display_labels=display.display_labels[top]).plot()

    Examples
    --------
    >>> from auxcst_sklearn.plotting import CostConfusionDisplay
    >>> display = CostConfusionDisplay.from_predictions(
    ...     ["bad", "bad", "ok", "ok"], ["bad", "ok", "ok", "bad"], cost_matrix=[[0, 9], [1, 0]])
    >>> display.cost
    array([[0., 9.],
           [1., 0.]])
    >>> display.ax_.get_title()
    'total cost 10, mean 2.5'
    """

    cost: NDArray[Any]
    counts: NDArray[Any]
    _: KW_ONLY
    display_labels: Collection[Any] | None = None
    decisions: Collection[Any] | None = None

    def __post_init__(self) -> None:
        if self.display_labels is not None and len(self.display_labels) != len(self.cost):
            raise ValueError(
                f"display_labels has {len(self.display_labels)} names; expected one for each of "
                f"the {len(self.cost)} classes."
            )
        self.total_cost = float(np.sum(self.cost))
        self.mean_cost = self.total_cost / float(np.sum(self.counts))

    @classmethod
    @described_like(Display)
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **plot_kw: Any,
    ) -> CostConfusionDisplay:
        """Draw the costs of a classifier; of its decisions, if they are not the classes.

        Axes have the order of the labels of a DataFrame of costs, otherwise that of `classes_`.

        Parameters
        ----------
        cost, cost_matrix : array-like or DataFrame, default=None
            As in :meth:`from_predictions`, in the order of `classes_` and `decisions_`; without
            either, the `cost_matrix` of the estimator. Matrices of samples are known when deciding.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.

        Raises
        ------
        ValueError
            As in :meth:`from_predictions`.
        """
        check_is_fitted(estimator)
        if cost is None and cost_matrix is None:
            cost_matrix = getattr(final_estimator(estimator), "cost_matrix", None)
        check_evaluated(X, y, cost, cost_matrix, sample_weight)
        classes = np.asarray(estimator.classes_)
        costs = cost if cost_matrix is None else cost_matrix
        named = labels_of_rows(costs, classes)
        if named is None:
            named = column_names(costs, like=classes)
        if named is not None and np.array_equal(np.sort(named), classes):
            classes = named  # such as grades in their order
        given = {"y_true": y, "y_pred": decided(estimator, X, cost)}
        shared = classes, decisions_of(estimator), sample_weight
        found = evaluated(given, cost, cost_matrix, *shared, of_model=True)
        return cls._of(*found).plot(**plot_kw)

    @classmethod
    @described_like(Display, mean_cost)
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        decisions: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **plot_kw: Any,
    ) -> CostConfusionDisplay:
        """Draw the costs of predictions. Axes have the order of `classes`.

        Parameters
        ----------
        As of :func:`auxcst_sklearn.metrics.mean_cost`.

        Raises
        ------
        ValueError
            If costs are missing or do not fit, as in :func:`auxcst_sklearn.metrics.mean_cost`.
        """
        given = {"y_true": y_true, "y_pred": y_pred}
        found = evaluated(given, cost, cost_matrix, classes, decisions, sample_weight)
        return cls._of(*found).plot(**plot_kw)

    @classmethod
    def _of(
        cls, costs: Costs, chosen: list[NDArray[np.intp]], weight: NDArray[np.float64] | None
    ) -> CostConfusionDisplay:
        (pred,), shape = chosen, (len(costs.classes), len(costs.decisions))
        weight = np.ones(len(pred)) if weight is None else weight
        cell = np.ravel_multi_index((costs.label, pred), shape)
        cost, counts = (
            np.bincount(cell, values, minlength=np.prod(shape)).reshape(shape)
            for values in (weight * costs.paid(pred), weight)
        )
        return cls(cost, counts, display_labels=costs.classes, decisions=costs.other_decisions)

    @described_like(Display)
    def plot(
        self,
        ax: Axes | None = None,
        *,
        colorbar: bool = True,
        unit: str | None = None,
    ) -> CostConfusionDisplay:
        """Draw the matrix.

        Parameters
        ----------
        colorbar : bool, default=True
            Whether to draw a colour bar.
        """
        shown = self.cost
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        limit, signed = np.abs(shown).max(), shown.min() < 0
        self.im_ = ax.imshow(
            shown,
            cmap="RdBu_r" if signed else "Blues",
            vmin=-limit if signed else 0,
            vmax=limit or 1,
            interpolation="nearest",
        )
        if colorbar:
            label = f"cost paid ({unit})" if unit else "cost paid"
            self.figure_.colorbar(self.im_, ax=ax, label=label)
        of = f" {unit}" if unit else ""
        title = f"total cost {amount(self.total_cost)}{of}, mean {amount(self.mean_cost)}{of}"
        ax.set_title(title, fontsize="medium")
        ax.set(ylabel="true label", xlabel="predicted label")
        labels = range(len(self.cost)) if self.display_labels is None else self.display_labels
        if self.decisions is not None:
            ax.set(xlabel="decision")
        columns = labels if self.decisions is None else self.decisions
        thin_out_ticks(ax, list(map(str, labels)), list(map(str, columns)))
        self.text_ = self._write_values()
        return self

    def _write_values(self) -> NDArray[Any] | None:
        """Texts in the cells, as large as possible; none if they would be too small."""
        shown = self.cost
        for with_counts in (True, False):
            texts = _cell_texts(shown, self.counts, with_counts)
            lines = [text.split("\n") for text in texts.values()] or [[""]]
            width = max(0.6 * len(line) for text in lines for line in text)
            room = cell_points(self.ax_, max(shown.shape)) / max(width, 1.2 * len(lines[0]))
            if (size := min(10.0, 0.9 * room)) >= 6:
                break
        if size < 6:
            return None
        written = np.full(shown.shape, None, dtype=object)
        for (i, j), text in texts.items():
            red, green, blue, _ = self.im_.cmap(self.im_.norm(shown[i, j]))
            color = "k" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "w"
            written[i, j] = self.ax_.text(
                j, i, text, ha="center", va="center", size=size, color=color
            )
        return written


def _cell_texts(
    shown: NDArray[Any], counts: NDArray[Any], with_counts: bool
) -> dict[tuple[int, int], str]:
    """Texts of the cells with costs; with counts, of the cells with samples."""
    largest = np.abs(shown).max() or 1
    whole = np.array_equal(shown, np.round(shown))
    decimals = 0 if whole else max(0, 2 - int(np.floor(np.log10(largest))))
    texts = {}
    for i, j in np.argwhere(counts if with_counts else shown).tolist():
        n = float(counts[i, j])
        count = f"\nn = {f'{n:,.0f}' if n.is_integer() else amount(n)}"
        texts[i, j] = f"{shown[i, j]:,.{decimals}f}" + (count if with_counts else "")
    return texts
