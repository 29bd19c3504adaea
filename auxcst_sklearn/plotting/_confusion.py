"""CostConfusionDisplay: the cost of each kind of mistake."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import ConfusionMatrixDisplay

from .._checks.labels import as_labels, label_index
from ..costs._evaluation import decisions_of, predict_by_costs, read_of_model, read_predictions
from ..costs._labels import own_classes
from ._drawing import amount


class CostConfusionDisplay(ConfusionMatrixDisplay):
    """Confusion matrix of costs: the cost of each prediction for each true class.

    It has the attributes of :class:`sklearn.metrics.ConfusionMatrixDisplay`.

    Parameters
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_decisions)
        Costs of each true class (row) and prediction or decision (column).
    display_labels : array-like of shape (n_classes,), default=None
        Names of the classes. If None, the classes are numbered.
    decisions : array-like of shape (n_decisions,), default=None
        Names of the columns, if they are decisions other than the classes.

    Examples
    --------
    >>> from auxcst_sklearn.plotting import CostConfusionDisplay
    >>> display = CostConfusionDisplay.from_predictions(
    ...     ["bad", "bad", "ok", "ok"], ["bad", "ok", "ok", "bad"], cost_matrix=[[0, 9], [1, 0]])
    >>> display.confusion_matrix.tolist()
    [[0.0, 9.0], [1.0, 0.0]]
    """

    def __init__(
        self,
        confusion_matrix: NDArray[Any],
        *,
        display_labels: Collection[Any] | None = None,
        decisions: Collection[Any] | None = None,
    ) -> None:
        super().__init__(confusion_matrix, display_labels=display_labels)
        self.decisions = decisions

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        cost_matrix: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        **kwargs: Any,
    ) -> CostConfusionDisplay:
        """Draw the costs of a classifier's predictions, or of its decisions.

        Parameters
        ----------
        estimator : estimator
            Fitted classifier, or a pipeline or search that ends with a classifier.
        X, y : array-like of shape (n_samples, n_features) and (n_samples,)
            Samples and their true labels.
        cost, cost_matrix, sample_weight : array-like or DataFrame, default=None
            Same as in :meth:`from_predictions`, in the order of `classes_` and `decisions_`.
            Without costs, the `cost_matrix` of the estimator is used. Cost matrices of samples are
            also used for the decisions.
        **kwargs : dict
            Other arguments of :meth:`from_predictions` and :meth:`plot`.

        Returns
        -------
        display : object
            The drawn display.

        Raises
        ------
        TypeError
            If `y_pred`, `classes` or `decisions` are passed, which the estimator determines.
        """
        given = cost, cost_matrix, sample_weight, cls.__name__
        estimator, X, costs = read_of_model(estimator, X, y, *given)
        of_samples: Any = {"cost": costs, "sample_weight": sample_weight}
        y_pred = predict_by_costs(estimator, X, costs if costs.is_known else None)
        labels: Any = {"classes": estimator.classes_, "decisions": decisions_of(estimator)}
        own = own_classes(costs, named=labels["decisions"] is not None)
        if own is not None:  # grades have the order of the costs instead of the alphabet
            known = set(estimator.classes_.tolist())
            kwargs = {"labels": [label for label in own.tolist() if label in known]} | kwargs
        return cls.from_predictions(y, y_pred=y_pred, **labels, **of_samples, **kwargs)

    @classmethod
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
        normalize: Literal["true", "pred", "all"] | None = None,
        display_labels: Collection[Any] | None = None,
        **plot_kw: Any,
    ) -> CostConfusionDisplay:
        """Draw the costs of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
                (n_samples, n_classes, n_classes), default=None
            Cost of each prediction for each sample, or each sample's cost matrix, of which the row
            of the true class is used. Pass either `cost` or `cost_matrix`.
        cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), default=None
            Cost of each prediction (column) for each true class (row).
        classes : array-like of shape (n_classes,), default=None
            Labels of the cost columns, in their order. By default the labels of a DataFrame,
            otherwise the sorted labels in `y_true` and `y_pred`.
        decisions : array-like of shape (n_decisions,), default=None
            Labels of the cost columns, if predictions are decisions other than the classes;
            `classes` then names the rows. By default the names of the costs, from
            :func:`~auxcst_sklearn.costs.cost_matrices` or from the columns of a DataFrame whose
            index contains the classes. Costs with labels are matched by their labels, while plain
            arrays must be in this order.
        labels : array-like, default=None
            The classes to draw, in the order of the axes. If None, all classes, in the order of the
            labels of the costs, otherwise in the order of `classes`.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.
        normalize : {"true", "pred", "all"}, default=None
            Divide costs by the number of samples of the true class (row), of the prediction
            (column), or of the whole matrix. With "all", the matrix adds up to the mean cost.
        display_labels : array-like, default=None
            Names on the axes, in the order of `labels`. If None, `labels` themselves.
        **plot_kw : dict
            Arguments of :meth:`plot`, such as `ax`.

        Returns
        -------
        display : object
            The drawn display.
        """
        named = classes, decisions, sample_weight
        predictions = {"y_true": y_true, "y_pred": y_pred}
        data, (pred,) = read_predictions(predictions, cost, cost_matrix, *named)
        labels = data.classes if labels is None else as_labels(labels, "labels")
        rows, other = label_index(labels, data.classes, name="labels"), data.other_decisions
        cells = np.ix_(rows, rows if other is None else np.arange(len(other)))
        paid, n_samples = np.zeros((2, len(data.classes), len(data.decisions)))
        weight = np.ones(len(pred)) if data.weight is None else data.weight
        np.add.at(paid, (data.label, pred), weight * data.paid(pred))
        np.add.at(n_samples, (data.label, pred), weight)
        paid, axis = paid[cells], {"true": 1, "pred": 0, "all": None}
        if normalize is not None:
            if normalize not in axis:
                raise ValueError(f"normalize={normalize!r}; expected None or one of {[*axis]}.")
            n = n_samples[cells].sum(axis=axis[normalize], keepdims=True)
            paid /= np.where(n > 0, n, 1)
        display_labels = labels if display_labels is None else display_labels
        return cls(paid, display_labels=display_labels, decisions=other).plot(**plot_kw)

    def plot(self, *, include_values: bool = True, **kwargs: Any) -> CostConfusionDisplay:
        """Draw the matrix, as in :meth:`sklearn.metrics.ConfusionMatrixDisplay.plot`."""
        text_kw, values_format = kwargs.get("text_kw") or {}, kwargs.get("values_format")
        style: dict[str, Any] = {"cmap": "Blues"}
        if (self.confusion_matrix < 0).any():  # benefits and costs differ in colour
            largest = np.abs(self.confusion_matrix).max()
            style = {"cmap": "RdBu_r", "im_kw": {"vmin": -largest, "vmax": largest}}
        super().plot(include_values=False, **{**style, **kwargs})
        if self.im_.colorbar is not None:
            self.im_.colorbar.set_label("cost")
        if self.decisions is not None:
            angle = kwargs.get("xticks_rotation")
            self.ax_.set_xticks(range(len(self.decisions)), self.decisions, rotation=angle)
            self.ax_.set_xlabel("Decision")
        if include_values:  # scikit-learn writes in square matrices only
            self.text_ = np.empty(self.confusion_matrix.shape, dtype=object)
            for (i, j), cost in np.ndenumerate(self.confusion_matrix):
                red, green, blue, _ = self.im_.cmap(self.im_.norm(cost))
                color = "k" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "w"
                style = {"ha": "center", "va": "center", "color": color, **text_kw}
                text = format(cost, values_format) if values_format else amount(cost)
                self.text_[i, j] = self.ax_.text(j, i, text, **style)
        return self
