"""CostConfusionDisplay: the cost of each kind of mistake."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .._checks.calls import inherit_docs, validate_params
from .._checks.labels import as_labels, label_index
from ..costs._account import Costs, labels_of_rows
from ..costs._evaluation import check_evaluated, decided, decisions_of, evaluated, final_estimator
from ..costs._named import column_names
from ..metrics._measures import mean_cost
from ._drawing import Display, amount, axes, cell_points, share, thin_out_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_WHOLE = {"all": "the total cost", "true": "the row's cost", "pred": "the column's cost"}


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
        The matplotlib Text in each cell that is drawn, None in cells without; None without numbers.

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
    @inherit_docs(Display)
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        display_labels: Collection[Any] | None = None,
        **plot_kw: Any,
    ) -> CostConfusionDisplay:
        """Draw the costs of a classifier; of its decisions, if they are not the classes.

        Parameters
        ----------
        cost, cost_matrix : array-like or DataFrame, default=None
            As in :meth:`from_predictions`, in the order of `classes_` and `decisions_`; without
            either, the `cost_matrix` of the estimator. Matrices of samples are known when deciding.
        labels, sample_weight, display_labels : array-like, default=None
            As in :meth:`from_predictions`. Without `labels`, axes have the order of the labels of a
            DataFrame of costs, otherwise the order of `classes_`.

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
        return cls._of(*found, labels, display_labels).plot(**plot_kw)

    @classmethod
    @inherit_docs(Display, mean_cost)
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        decisions: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        display_labels: Collection[Any] | None = None,
        **plot_kw: Any,
    ) -> CostConfusionDisplay:
        """Draw the costs of predictions.

        Parameters
        ----------
        As of :func:`auxcst_sklearn.metrics.mean_cost`, and:

        labels : array-like of shape (n_classes,), default=None
            The labels in the order of the axes; None for the order of `classes`. Decisions keep
            the order of their columns.
        display_labels : array-like of shape (n_classes,), default=None
            Names to write at the axes, in the order of the labels; None for the labels.

        Raises
        ------
        ValueError
            If costs are missing or do not fit, as in :func:`auxcst_sklearn.metrics.mean_cost`, if
            `labels` are not the classes, or `display_labels` are the labels in another order.
        """
        given = {"y_true": y_true, "y_pred": y_pred}
        found = evaluated(given, cost, cost_matrix, classes, decisions, sample_weight)
        return cls._of(*found, labels, display_labels).plot(**plot_kw)

    @classmethod
    def _of(
        cls,
        costs: Costs,
        chosen: list[NDArray[np.intp]],
        weight: NDArray[np.float64] | None,
        labels: ArrayLike | None,
        display_labels: Collection[Any] | None,
    ) -> CostConfusionDisplay:
        (pred,), classes, other = chosen, costs.classes, costs.other_decisions
        shape = len(classes), len(costs.decisions)
        weight = np.ones(len(pred)) if weight is None else weight
        order = np.arange(len(classes)) if labels is None else _order(labels, classes)
        if display_labels is not None:
            _check_names(display_labels, classes[order])
        columns = order if other is None else np.arange(len(other))
        cell = np.ravel_multi_index((costs.label, pred), shape)
        cost_and_counts = (
            np.bincount(cell, values, minlength=np.prod(shape)).reshape(shape)[
                np.ix_(order, columns)
            ]
            for values in (weight * costs.paid(pred), weight)
        )
        names = classes[order] if display_labels is None else display_labels
        return cls(*cost_and_counts, display_labels=names, decisions=other)

    @inherit_docs(Display)
    @validate_params(
        {
            "normalize": [StrOptions({"all", "true", "pred"}), None],
            "include_values": ["boolean", StrOptions({"auto"})],
            "max_classes": [Interval(Integral, 2, None, closed="left"), None],
        }
    )
    def plot(
        self,
        ax: Axes | None = None,
        *,
        normalize: Literal["all", "true", "pred"] | None = None,
        include_values: bool | Literal["auto"] = "auto",
        cmap: Any = None,
        colorbar: bool = True,
        max_classes: int | None = 30,
        unit: str | None = None,
    ) -> CostConfusionDisplay:
        """Draw the matrix.

        Parameters
        ----------
        normalize : {"all", "true", "pred"} or None, default=None
            None draws sums of costs. "all" draws percentages of the total cost, "true" percentages
            of the cost of each true class (row), "pred" shares of each prediction (column).
        include_values : bool or "auto", default="auto"
            Whether to write costs in the cells, and below them the number of samples if there is
            room; "auto" if they are legible.
        cmap : str or matplotlib Colormap, default=None
            Colour map. None for "Blues", or "RdBu_r" around zero if some costs are negative.
        colorbar : bool, default=True
            Whether to draw a colour bar.
        max_classes : int or None, default=30
            With more classes or decisions, only the rows and columns of the costliest cells are
            drawn, in their order, and the title has their share of the cost. None draws all.

        Raises
        ------
        ValueError
            If `normalize` is set, but some costs are negative.
        """
        rows, columns = self._costliest(max_classes)
        shown = self._shown(normalize)[np.ix_(rows, columns)]
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        limit, signed = np.abs(shown).max(), shown.min() < 0
        self.im_ = ax.imshow(
            shown,
            cmap=cmap or ("RdBu_r" if signed else "Blues"),
            vmin=-limit if signed else 0,
            vmax=limit or 1,
            interpolation="nearest",
        )
        if colorbar:
            paid = f"cost paid ({unit})" if unit else "cost paid"
            label = f"% of {_WHOLE[normalize]}" if normalize else paid
            self.figure_.colorbar(self.im_, ax=ax, label=label)
        of = f" {unit}" if unit else ""
        title = f"total cost {amount(self.total_cost)}{of}, mean {amount(self.mean_cost)}{of}"
        if shown.size < self.cost.size:
            part = np.abs(self.cost[np.ix_(rows, columns)]).sum() / (np.abs(self.cost).sum() or 1)
            title += f"\n{len(rows)} of {len(self.cost)} classes, with {share(part)} of the cost"
        ax.set_title(title, fontsize="medium")
        ax.set(ylabel="true label", xlabel="predicted label")
        labels = range(len(self.cost)) if self.display_labels is None else self.display_labels
        if self.decisions is not None:
            ax.set(xlabel="decision")
        names = labels, labels if self.decisions is None else self.decisions
        chosen = [[str(list(n)[i]) for i in part] for n, part in zip(names, (rows, columns))]
        thin_out_ticks(ax, *chosen)
        self.text_ = self._write_values(shown, self.counts[np.ix_(rows, columns)], include_values)
        return self

    def _costliest(self, most: int | None) -> tuple[list[int], list[int]]:
        """Rows and columns to draw: all, or the rows and columns of the costliest cells."""
        n_rows, n_columns = self.cost.shape
        if most is None or max(n_rows, n_columns) <= most:
            return list(range(n_rows)), list(range(n_columns))
        rows, columns = set[int](), set[int]()
        for i, j in zip(
            *np.unravel_index(np.abs(self.cost).ravel().argsort()[::-1], self.cost.shape)
        ):
            more = {int(i)}, {int(j)}
            if self.decisions is None:  # the axes have the same labels
                more = ({int(i), int(j)},) * 2
            if len(rows | more[0]) <= most and len(columns | more[1]) <= most:
                rows, columns = rows | more[0], columns | more[1]
            if min(most, n_rows) == len(rows) and min(most, n_columns) == len(columns):
                break
        return sorted(rows), sorted(columns)

    def _shown(self, normalize: str | None) -> NDArray[Any]:
        """Values of the cells: sums, or percentages."""
        if normalize is None:
            return self.cost
        if self.cost.min() < 0:
            raise ValueError(
                f"normalize={normalize!r} asks for shares, but some costs are negative, down to "
                f"{self.cost.min():g}; expected costs of zero or more. Use normalize=None."
            )
        total = self.cost.sum(axis={"all": None, "true": 1, "pred": 0}[normalize], keepdims=True)
        return 100 * self.cost / np.where(total > 0, total, 1)

    def _write_values(
        self, shown: NDArray[Any], counts: NDArray[Any], include_values: bool | str
    ) -> NDArray[Any] | None:
        """Texts in the cells, as large as possible; with "auto" none that are too small."""
        for with_counts in (True, False):
            texts = _cell_texts(shown, counts, with_counts)
            lines = [text.split("\n") for text in texts.values()] or [[""]]
            width = max(0.6 * len(line) for text in lines for line in text)
            room = cell_points(self.ax_, max(shown.shape)) / max(width, 1.2 * len(lines[0]))
            if (size := min(10.0, 0.9 * room)) >= 6:
                break
        if include_values is False or (include_values == "auto" and size < 6):
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


def _order(labels: ArrayLike, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Positions of the labels among the classes."""
    order = label_index(as_labels(labels, "labels"), classes, name="labels")
    if not np.array_equal(np.sort(order), np.arange(len(classes))):
        raise ValueError(
            f"labels={np.asarray(labels).tolist()}; expected each of the classes "
            f"{classes.tolist()} once, in the order of the axes."
        )
    return order


def _check_names(names: Collection[Any], labels: NDArray[Any]) -> None:
    """Raise an error for the labels in another order, which would rename the cells."""
    given, expected = (
        [str(name).strip().casefold() for name in which] for which in (names, labels)
    )
    if given != expected and sorted(given) == sorted(expected):
        raise ValueError(
            f"display_labels={list(names)} are the labels {labels.tolist()} in another order, and "
            "would give cells the names of other classes; expected names in the order of the "
            "labels. To order the axes, pass labels=."
        )
