"""CostThresholdDisplay: mean cost of a binary decision against its threshold."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted

from .._checks.classifiers import check_probability, probabilities
from .._checks.data import check_row_order
from .._checks.labels import shorten
from ..costs._evaluation import decisions_of, read_of_model, read_predictions
from ..costs._problem import expected_cost
from ._drawing import COLORS, amount, axes, draw_legend, share, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(eq=False, repr=False)
class CostThresholdDisplay:
    """Mean cost of a binary decision against the threshold on the positive class's probability.

    The positive class is predicted if its probability is at least the threshold. Created by
    :meth:`from_estimator` or :meth:`from_predictions`.

    Parameters
    ----------
    thresholds : ndarray of shape (n_thresholds,)
        The distinct probabilities in ascending order, and infinity. At infinity, nothing is
        predicted positive. Between two thresholds, decisions are as at the upper threshold.
    mean_cost : ndarray of shape (n_thresholds,)
        Mean cost of the decisions at each threshold, in the currency of the costs.
    alert_rate : ndarray of shape (n_thresholds,)
        Fraction of the samples, or of their weights, that is predicted positive.
    bayes_threshold, bayes_cost, bayes_alert_rate : float, default=None
        Threshold of the Bayes decision, its mean cost, and the fraction that it predicts positive.
        The threshold is None if each sample has its own. All three are None if the Bayes decision
        is unknown.
    pos_label : label, default=None
        The positive class, for the axis labels.

    Attributes
    ----------
    best_threshold, best_cost, best_alert_rate : float
        Threshold with the lowest mean cost, its mean cost, and the fraction that it predicts
        positive. Of several such thresholds it is the smallest.
    ax_, figure_, legend_ : matplotlib Axes, Figure and Legend
        What is drawn.
    line_, best_point_ : matplotlib Line2D
        The curve, a step function, and the marker at the threshold with the lowest cost.
    bayes_line_ : matplotlib Line2D or None
        A vertical line at the Bayes threshold. If each sample has its own threshold, a horizontal
        line at the cost of the Bayes decision.
    rate_axis_ : matplotlib Axes
        The axis on top. It shows the fraction predicted positive at the thresholds below.

    Notes
    -----
    With one cost matrix for all samples, the expected cost is minimised by predicting positive if
    the probability is above ``(fp - tn) / (fp - tn + fn - tp)``, the Bayes threshold. Here fp, fn,
    tp and tn are the costs of the four outcomes. At the threshold, both decisions have the same
    expected cost. `bayes_cost` and `bayes_alert_rate` are then those of the first decision, which
    is what `predict` and `decide` take. This is optimal for true probabilities. If the
    threshold with the lowest cost is far from it, the estimated probabilities are not calibrated.
    If each sample has its own matrix, it has its own Bayes threshold. A single threshold may then
    be more expensive.

    The cost of the best threshold is optimistic, because it is chosen on the plotted samples.
    Choose it on validation samples, or with
    :class:`~sklearn.model_selection.TunedThresholdClassifierCV`. Report the cost on other samples.

    Examples
    --------
    >>> from auxcst_sklearn.plotting import CostThresholdDisplay
    >>> display = CostThresholdDisplay.from_predictions(
    ...     [0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.6, 0.9], cost_matrix=[[0, 1], [4, 0]])
    >>> display.thresholds
    array([0.1, 0.2, 0.3, 0.6, 0.9, inf])
    >>> display.mean_cost
    array([0.6, 0.4, 0.2, 1. , 0.8, 1.6])
    >>> display.best_threshold, display.best_alert_rate, display.bayes_threshold
    (0.3, 0.6, 0.2)
    """

    thresholds: NDArray[Any]
    mean_cost: NDArray[Any]
    alert_rate: NDArray[Any]
    _: KW_ONLY
    bayes_threshold: float | None = None
    bayes_cost: float | None = None
    bayes_alert_rate: float | None = None
    pos_label: Any = None

    def __post_init__(self) -> None:
        best = int(np.argmin(self.mean_cost))
        self.best_threshold = float(self.thresholds[best])
        self.best_cost = float(self.mean_cost[best])
        self.best_alert_rate = float(self.alert_rate[best])

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        **plot_kw: Any,
    ) -> CostThresholdDisplay:
        """Draw the cost of a classifier's probabilities against the threshold.

        Parameters
        ----------
        estimator : estimator
            Fitted binary classifier with `predict_proba`, or a pipeline or search that ends with
            such a classifier.
        X, y : array-like of shape (n_samples, n_features) and (n_samples,)
            Samples and their true labels.
        cost, cost_matrix : array-like or DataFrame, default=None
            Same as in :meth:`from_predictions`, in the order of `classes_`. Without costs, the
            `cost_matrix` of the estimator is used.
        pos_label, sample_weight : label and array-like of shape (n_samples,), default=None
            Same as in :meth:`from_predictions`.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        display : object
            The drawn display.

        Raises
        ------
        AttributeError
            If the estimator has no `predict_proba`.
        ValueError
            If it has more than two decisions, and as in :meth:`from_predictions`. Of two decisions
            that are not the classes, the one that is cheaper for the positive class is taken above
            the threshold. The positive class is then ``classes_[1]`` by default.
        """
        check_is_fitted(estimator)
        given = cost, cost_matrix, sample_weight, cls.__name__
        estimator, X, read = read_of_model(estimator, X, y, *given)
        axes_of_costs = estimator.classes_, decisions_of(estimator)
        costs = _BinaryCosts.of(y, read, None, *axes_of_costs, pos_label, sample_weight)
        p = probabilities(estimator, X, np.asarray(estimator.classes_))
        return cls._of(p, costs).plot(**plot_kw)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        classes: ArrayLike | None = None,
        pos_label: Any = None,
        sample_weight: ArrayLike | None = None,
        **plot_kw: Any,
    ) -> CostThresholdDisplay:
        """Draw the cost of given probabilities against the threshold.

        Parameters
        ----------
        y_true, y_proba : array-like of shape (n_samples,)
            True labels, and probabilities of the positive class.
        cost : array-like of shape (n_samples, 2, 2) or (n_samples, 2), or DataFrame, default=None
            Cost matrix of each sample, or the row of its true class. The Bayes decision is only
            known for matrices. Pass either `cost` or `cost_matrix`.
        cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), default=None
            Cost of each prediction (column) for each true class (row).
        classes : array-like of shape (2,), default=None
            Labels of the cost columns, in their order. If None, the labels of a DataFrame,
            otherwise the sorted labels of `y_true`.
        pos_label : label, default=None
            The positive class. If None, the greater label, which must be a number.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        display : object
            The drawn display.

        Raises
        ------
        ValueError
            If there are not two classes, if `pos_label` is missing or is not a class, if `y_proba`
            does not contain probabilities, or if costs do not fit, as in
            :func:`auxcst_sklearn.metrics.mean_cost`.
        """
        check_row_order(y_true=y_true, y_proba=y_proba, cost=cost)
        costs = _BinaryCosts.of(y_true, cost, cost_matrix, classes, None, pos_label, sample_weight)
        check_consistent_length(costs.costs, y_proba)
        positive = check_probability(y_proba, "y_proba", (len(costs.costs),))
        p = np.column_stack([1 - positive, positive])
        return cls._of(p if costs.positive else p[:, ::-1], costs).plot(**plot_kw)

    @classmethod
    def _of(cls, p: NDArray[np.float64], costs: _BinaryCosts) -> CostThresholdDisplay:
        bayes: dict[str, Any] = {**costs.bayes(p), "pos_label": costs.classes[costs.positive]}
        return cls(*costs.curve(p[:, costs.positive]), **bayes)

    def plot(
        self, ax: Axes | None = None, *, xscale: Literal["linear", "log"] = "linear"
    ) -> CostThresholdDisplay:
        """Draw the curve.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. If None, a new figure is created.
        xscale : {"linear", "log"}, default="linear"
            Scale of the thresholds. A logarithmic scale shows more detail if positives are rare.

        Returns
        -------
        display : object
            The drawn display.
        """
        lowest = 0.0 if xscale == "linear" else min(self.thresholds[self.thresholds > 0][0], 0.5)
        self.ax_ = ax = axes(ax)
        self.figure_ = ax.figure
        # From the lowest threshold, where everything is positive, to 1, where nothing is.
        x = np.concatenate([[lowest], np.clip(self.thresholds, lowest, 1)])
        y = np.concatenate([self.mean_cost[:1], self.mean_cost])
        (self.line_,) = ax.plot(x, y, color=COLORS[0], drawstyle="steps-pre")
        ax.set_xscale(xscale)
        ax.set_xlim(lowest, 1)
        self.bayes_line_ = self._draw_bayes(lowest)
        at = "above all" if np.isinf(self.best_threshold) else amount(self.best_threshold)
        (self.best_point_,) = ax.plot(
            [np.clip(self.best_threshold, lowest, 1)],
            [self.best_cost],
            color=COLORS[0],
            marker="o",
            linestyle="none",
            clip_on=False,
            label=f"lowest cost, threshold {at}:\n{_paid(self.best_cost, self.best_alert_rate)}",
        )
        of = "" if self.pos_label is None else f" of {self.pos_label}"
        ax.set(xlabel=f"threshold on the probability{of}", ylabel="mean cost")
        tidy(ax)
        self.rate_axis_ = self._draw_rates()
        self.legend_ = draw_legend(ax)
        return self

    def _draw_bayes(self, lowest: float) -> Any:
        """The Bayes threshold as a vertical line, or the Bayes decision as a horizontal one."""
        if self.bayes_cost is None:
            return None
        paid = _paid(self.bayes_cost, self.bayes_alert_rate)
        style: dict[str, Any] = {"color": COLORS[1], "linestyle": "--"}
        if self.bayes_threshold is None:
            label = f"Bayes decision for each sample:\n{paid}"
            return self.ax_.axhline(self.bayes_cost, label=label, **style)
        label = f"Bayes threshold {amount(self.bayes_threshold)}:\n{paid}"
        return self.ax_.axvline(np.clip(self.bayes_threshold, lowest, 1), label=label, **style)

    def _draw_rates(self) -> Any:
        """An axis on top with the fraction predicted positive at the thresholds below."""

        def rate(threshold: float, _: float) -> str:
            at = int(np.searchsorted(self.thresholds, threshold))
            return share(self.alert_rate[min(at, len(self.alert_rate) - 1)])

        top = self.ax_.secondary_xaxis("top")
        top.xaxis.set_major_formatter(rate)
        top.set_xlabel("fraction predicted positive")
        return top


def _paid(cost: float, alert_rate: float | None) -> str:
    """Mean cost and fraction predicted positive, as text for the legend."""
    positive = "" if alert_rate is None else f", {share(alert_rate)} positive"
    return f"costs {amount(cost)}{positive}"


class _BinaryCosts(NamedTuple):
    """Costs of both decisions for each sample (n, 2), and the matrices of the Bayes decision.

    `positive` is the place of the positive class in `classes`, and `alert` the column of the
    decision above the threshold. `matrix` is one matrix for all samples, or one for each sample (n,
    2, 2). It is None if only the costs of the true class are known.
    """

    costs: NDArray[np.float64]
    weight: NDArray[np.float64]
    classes: NDArray[Any]
    positive: int
    alert: int
    matrix: NDArray[np.float64] | None

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        cost: Any,
        cost_matrix: Any,
        classes: Any,
        decisions: Any,
        pos_label: Any,
        weight: Any,
    ) -> _BinaryCosts:
        """Check what the caller passes."""
        named = classes, decisions, weight
        data, _ = read_predictions({"y_true": y}, cost, cost_matrix, *named)
        labels = data.classes
        if len(labels) != 2 or len(data.decisions) != 2:
            raise ValueError(
                f"A threshold decides between two decisions for two classes, but there are "
                f"{shorten(data.decisions)}. If y_true lacks one of the two, name both in "
                "classes=."
            )
        if pos_label is None and data.other_decisions is not None:
            pos_label = labels[1]  # The decisions name what is above and below the threshold.
        positive = _positive_class(pos_label, labels)
        matrix = None if data.kind == "vectors" else data.costs
        vectors = data.vectors()
        weights = np.ones(len(data)) if data.weight is None else data.weight
        alert = positive
        if data.other_decisions is not None:
            means = [np.average(vectors[data.label == k], axis=0) for k in (0, 1)]
            if matrix is not None:
                means = [*matrix.reshape(-1, 2, 2).mean(axis=0)]
            cheaper = np.argmin(means, axis=1)
            if cheaper[0] == cheaper[1]:
                raise ValueError(
                    f"{data.decisions.tolist()[cheaper[0]]!r} is the cheaper decision for "
                    "both classes on average; expected costs of which each class has its own "
                    "best decision."
                )
            alert = int(cheaper[positive])
        return cls(vectors, weights, labels, positive, alert, matrix)

    def curve(self, probability: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Thresholds, and for each the mean cost and the fraction predicted positive.

        The thresholds are the distinct probabilities in ascending order, and infinity.
        """
        thresholds, place = np.unique(probability, return_inverse=True)
        negative, positive = (self.weight * self.costs[:, k] for k in (1 - self.alert, self.alert))

        def of_those_above(values: NDArray[Any]) -> NDArray[Any]:
            of_each = np.bincount(place, values, minlength=len(thresholds))
            return np.append(np.cumsum(of_each[::-1])[::-1], 0.0)

        weight = of_those_above(self.weight)
        total = negative.sum() + of_those_above(positive - negative)
        return np.append(thresholds, np.inf), total / weight[0], weight / weight[0]

    def bayes(self, probability: NDArray[np.float64]) -> dict[str, float | None]:
        """Threshold (if there is a single one), mean cost and alert rate of the Bayes decision."""
        if self.matrix is None:
            return {}
        more = self.matrix[..., self.alert] - self.matrix[..., 1 - self.alert]  # of an alert
        alarm, miss = more[..., 1 - self.positive], -more[..., self.positive]
        has_threshold = self.matrix.ndim == 2 and alarm + miss > 0
        chosen = expected_cost(probability, self.matrix).argmin(axis=1)  # as models decide
        paid = self.costs[np.arange(len(chosen)), chosen]
        return {
            "bayes_threshold": float(alarm / (alarm + miss)) if has_threshold else None,
            "bayes_cost": float(np.average(paid, weights=self.weight)),
            "bayes_alert_rate": float(np.average(chosen == self.alert, weights=self.weight)),
        }


def _positive_class(pos_label: Any, classes: NDArray[Any]) -> int:
    labels = classes.tolist()
    if pos_label is None:
        if classes.dtype.kind not in "biuf":
            raise ValueError(
                f"pos_label=None, but the classes {labels} are not numbers. Name the class whose "
                "probability has the threshold in pos_label=."
            )
        return int(np.argmax(classes))
    if np.ndim(pos_label) or pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels}.")
    return int(labels.index(pos_label))
