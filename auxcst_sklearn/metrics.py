"""Metrics and scorers of the cost of predictions, in the caller's currency."""

from __future__ import annotations

from inspect import signature
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import MetadataRequest

from ._checks.array_api import numpy_arrays
from ._checks.docs import described_like
from ._checks.labels import as_labels, frame_labels, label_index, same_label_kind
from ._checks.rows import check_row_order
from ._checks.warn import warn
from ._checks.weights import check_some_weight, check_weight
from .costs._decisions import find_decisions, labels_of_rows
from .costs._source import column_labels, warn_if_order_is_lost
from .costs._validation import check_cost_matrix, is_per_sample_matrix, sample_costs

__all__ = [
    "CostDifference",
    "cost_difference",
    "cost_scorer",
    "make_cost_scorer",
    "mean_cost",
    "savings_score",
]


def __dir__() -> list[str]:
    return __all__


def mean_cost(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    cost_matrix: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean cost of the predictions; lower is better.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels.
    y_pred : array-like of shape (n_samples,)
        Predicted labels.
    cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
            (n_samples, n_classes, n_classes), default=None
        Cost of each prediction for each sample, or each sample's cost matrix, of which the row of
        the true class is used. Pass either `cost` or `cost_matrix`.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), default=None
        Cost of each prediction (column) for each true class (row).
    classes : array-like of shape (n_classes,), default=None
        Labels of the cost columns, in their order. By default the labels of a DataFrame, otherwise
        the sorted labels in `y_true` and `y_pred`.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the cost columns, if predictions are decisions other than the classes; `classes`
        then names the rows. By default the columns of a DataFrame whose index holds the classes.
    sample_weight : array-like of shape (n_samples,), default=None
        Sample weights.

    Returns
    -------
    float
        Weighted mean of the costs of the predictions, in the currency of the costs.

    Raises
    ------
    ValueError
        If not exactly one of `cost` and `cost_matrix` is given, shapes do not fit, costs are
        not finite, or a label is not among the classes.

    Examples
    --------
    >>> from auxcst_sklearn.metrics import mean_cost
    >>> mean_cost(["ok", "ok", "bad"], ["ok", "bad", "ok"], cost_matrix=[[0, 9], [1, 0]],
    ...           classes=["bad", "ok"])
    3.33...
    """
    expected, chosen, weights = _sample_costs(
        y_true, y_pred, cost, cost_matrix, classes, sample_weight, decisions
    )
    incurred = expected[np.arange(len(chosen)), chosen]
    return float(np.average(incurred, weights=weights))


@described_like(mean_cost)
def savings_score(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    cost_matrix: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Fraction of the cost saved compared with the best constant prediction.

    1 means that nothing is paid, 0 that a constant prediction would have cost the same.

    Parameters
    ----------
    As of :func:`mean_cost`.

    Returns
    -------
    float
        ``1 - mean cost / mean cost of the best constant prediction``. NaN, with an
        ``UndefinedMetricWarning``, if the mean cost of the best constant prediction is zero or
        negative.

    Raises
    ------
    ValueError
        As in :func:`mean_cost`.

    Examples
    --------
    >>> from auxcst_sklearn.metrics import savings_score
    >>> savings_score([0, 0, 0, 1], [0, 0, 1, 1], cost_matrix=[[0, 1], [8, 0]])
    0.66...
    """
    expected, chosen, weights = _sample_costs(
        y_true, y_pred, cost, cost_matrix, classes, sample_weight, decisions
    )
    constant = np.average(expected, axis=0, weights=weights).min()
    if constant <= 0:
        warn(
            f"The best constant prediction costs {constant:g} on average; savings are a share of "
            "a positive cost, so savings_score is NaN here. Compare mean_cost instead.",
            UndefinedMetricWarning,
        )
        return float("nan")
    incurred = expected[np.arange(len(chosen)), chosen]
    return float(1 - np.average(incurred, weights=weights) / constant)


class CostDifference(NamedTuple):
    """Difference of two mean costs, with a confidence interval, in the currency of the costs.

    Parameters
    ----------
    mean : float
        Mean cost of the first predictions minus that of the second.
    low, high : float
        Bounds of the interval.
    """

    mean: float
    low: float
    high: float


@described_like(mean_cost)
def cost_difference(
    y_true: ArrayLike,
    y_pred_a: ArrayLike,
    y_pred_b: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    cost_matrix: ArrayLike | None = None,
    classes: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    confidence: float = 0.95,
) -> CostDifference:
    """Mean cost of predictions a minus that of b on the same samples, with an interval.

    The interval is Student's t interval of the paired differences: narrow if models mostly agree.

    Parameters
    ----------
    y_pred_a, y_pred_b : array-like of shape (n_samples,)
        Predicted labels of each model.
    classes : array-like of shape (n_classes,), default=None
        As in :func:`mean_cost`; by default all labels that occur.
    confidence : float, default=0.95
        Nominal probability that the interval contains the difference, between 0 and 1.

    Returns
    -------
    CostDifference
        The named tuple ``(mean, low, high)``. Below zero, a costs less.

    Raises
    ------
    ValueError
        As in :func:`mean_cost`, if `confidence` is not between 0 and 1, or if fewer than two
        samples have positive weight.

    Notes
    -----
    Samples must be independent. If a few expensive mistakes dominate, the interval is too narrow:
    with 1 % lognormal and 5 % small differences, 95 % intervals contained the true difference in 92
    % of 300 trials with 2,000 samples, and in 78 % with 500; bootstrap intervals in 90 and 76 %
    (percentile), 86 and 76 % (BCa).

    Examples
    --------
    >>> from auxcst_sklearn.metrics import cost_difference
    >>> cost_difference([0, 0, 1, 1], [0, 0, 1, 0], [0, 1, 0, 0], cost_matrix=[[0, 1], [8, 0]])
    CostDifference(mean=-2.25, low=-8.39..., high=3.89...)
    """
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r}; expected a number between 0 and 1.")
    given = {"y_true": y_true, "y_pred_a": y_pred_a, "y_pred_b": y_pred_b}
    ys = [as_labels(y, name) for name, y in given.items()]
    if decisions is None and labels_of_rows(cost_matrix, ys[0]) is None:
        classes = column_labels(cost, cost_matrix, classes, given, *ys)
    expected, a, weights = _sample_costs(
        y_true, y_pred_a, cost, cost_matrix, classes, sample_weight, decisions
    )
    _, b, _ = _sample_costs(y_true, y_pred_b, cost, cost_matrix, classes, None, decisions)
    weights = np.ones(len(a)) if weights is None else weights
    counted = np.count_nonzero(weights)
    if counted < 2:
        raise ValueError(f"An interval needs at least two samples that count; got {counted}.")
    rows = np.arange(len(a))
    difference = expected[rows, a] - expected[rows, b]
    mean = np.average(difference, weights=weights)
    # Squares of tiny or huge weights and costs would underflow or overflow.
    fraction, unit = weights / weights.sum(), np.abs(difference - mean).max() or 1.0
    error = unit * np.sqrt(np.sum((fraction * ((difference - mean) / unit)) ** 2))
    reach = stdtrit(counted - 1, (1 + confidence) / 2) * error * np.sqrt(counted / (counted - 1))
    return CostDifference(float(mean), float(mean - reach), float(mean + reach))


@numpy_arrays()
def _sample_costs(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    cost: ArrayLike | None,
    cost_matrix: ArrayLike | None,
    classes: ArrayLike | None,
    sample_weight: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Cost vectors of the samples, the column of each prediction, and weights."""
    if (cost is None) == (cost_matrix is None):
        given = "both cost and cost_matrix" if cost is not None else "neither cost nor cost_matrix"
        raise ValueError(
            f"Got {given}; expected exactly one: cost= with one row per sample, or cost_matrix= "
            "with one row per class."
        )
    true, predicted = as_labels(y_true, "y_true"), as_labels(y_pred, "y_pred")
    named = {"y_true": y_true, "y_pred": y_pred}
    check_row_order(**named, cost=cost, sample_weight=sample_weight)
    check_consistent_length(true, predicted)
    if not len(true):
        raise ValueError("y_true holds no samples; expected at least one to take the mean of.")
    rows, found = labels_of_costs(cost, cost_matrix, classes, decisions, named)
    columns = rows if found is None else found
    if found is not None and found.dtype.kind == "U" and predicted.dtype.kind in "biu":
        predicted = predicted.astype(str)  # classes among texts
    of_classes = None
    if cost is None:
        of_classes = check_cost_matrix(cost_matrix, classes=rows, decisions=found)
    chosen = label_index(predicted, columns, name="y_pred")
    label = label_index(true, rows, name="y_true")
    if of_classes is None:
        expected = sample_costs(cost, label, rows, found)
    else:
        expected = of_classes[label]
    weights = check_weight(sample_weight, chosen)
    if weights is not None:
        check_some_weight(weights)
    return expected, chosen, weights


def labels_of_costs(
    cost: Any, cost_matrix: Any, classes: Any, decisions: Any, named: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels of rows and columns; None for columns that are the classes.

    `named` are the true labels and predictions.
    """
    labels = [as_labels(y, name) for name, y in named.items()]
    of_rows = labels_of_rows(cost_matrix, labels[0])
    if decisions is None and of_rows is None:
        return column_labels(cost, cost_matrix, classes, named, *labels), None
    rows = np.unique(labels[0]) if of_rows is None else of_rows
    rows = rows if classes is None else np.asarray(classes)
    return rows, find_decisions(cost_matrix, decisions, rows)


def check_evaluated(
    X: Any, y: Any, cost: Any, cost_matrix: Any, sample_weight: Any, classes: Any = None
) -> None:
    """Check that the rows belong together, and that their order of classes is that of the costs."""
    check_row_order(X=X, y=y, cost=cost, sample_weight=sample_weight)
    warn_if_order_is_lost(cost, cost_matrix, classes, y=y)


class _Scorer:
    """Minus the mean cost of ``estimator.predict(X)``.

    The column order is that of the estimator's `classes_`, not of y, because a fold may lack a
    class.
    """

    # Attributes that TunedThresholdClassifierCV reads of scikit-learn's own scorers.
    _score_func = staticmethod(mean_cost)
    _sign = -1
    _kwargs: dict[str, Any] = {}

    metadata: tuple[str, ...] = ("sample_weight",)

    def get_metadata_routing(self) -> MetadataRequest:
        """Metadata that routers should pass on."""
        request = MetadataRequest(owner=self)
        for name in self.metadata:
            request.score.add_request(param=name, alias=True)
        return request

    # The name that scikit-learn 1.6 reads.
    _get_metadata_request = get_metadata_routing


class _CostScorer(_Scorer):
    """The scorer for per-sample costs."""

    metadata = ("cost", "sample_weight")

    def __call__(
        self,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        if cost is None:
            raise ValueError(
                "No costs reached cost_scorer; it never falls back to 0/1 costs. For per-sample "
                "costs call sklearn.set_config(enable_metadata_routing=True) and pass cost= to "
                "the fit of the search (with error_score='raise', so that this is seen). For "
                "class-level costs use make_cost_scorer(cost_matrix=). Where costs cannot be "
                "passed on, as in permutation_importance, use scoring=lambda estimator, X, y: "
                "cost_scorer(estimator, X, y, cost=C)."
            )
        check_evaluated(X, y, cost, None, sample_weight)
        return -mean_cost(
            y,
            _decisions(estimator, X, cost),
            cost=cost,
            classes=estimator.classes_,
            decisions=decisions_of(estimator),
            sample_weight=sample_weight,
        )

    def __repr__(self) -> str:
        return "cost_scorer"


def _decisions(estimator: Any, X: Any, cost: ArrayLike | None) -> Any:
    """Predictions by the costs, where these are matrices of samples, and known when deciding."""
    last = final_estimator(estimator)
    # Without probabilities, costs of each row decide nothing.
    has_use = (
        is_per_sample_matrix(cost)
        and "cost" in signature(last.predict).parameters
        and hasattr(last, "predict_proba")
    )
    of_classes = decisions_of(estimator) is None
    if of_classes and not has_use:
        return estimator.predict(X)
    last, inputs = _last(estimator, X)  # the predict of a search takes no costs
    decide = last.predict if of_classes else last.decide
    return decide(inputs, cost=cost) if has_use else decide(inputs)


def decisions_of(estimator: Any) -> Any:
    """Labels of the decisions of the last step, if they are not the classes."""
    last = final_estimator(estimator)
    decisions = getattr(last, "decisions_", None)
    return None if decisions is None or np.array_equal(decisions, last.classes_) else decisions


def final_estimator(estimator: Any) -> Any:
    """The estimator inside of searches and pipelines."""
    return _last(estimator, None)[0]


def _last(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The same, and its X, unless that is None."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            X = None if X is None else before_last(estimator, X)
            estimator = estimator[-1]
        else:
            return estimator, X


def before_last(pipeline: Any, X: Any) -> Any:
    """X after the steps before the last; steps that resample do nothing when predicting."""
    for _, step in pipeline.steps[:-1]:
        if step not in (None, "passthrough") and not hasattr(step, "fit_resample"):
            X = step.transform(X)
    return X


class _MatrixScorer(_Scorer):
    """The scorer for a cost matrix."""

    def __init__(self, cost_matrix: ArrayLike, classes: ArrayLike | None) -> None:
        self._kwargs = {"cost_matrix": cost_matrix, "classes": classes}

    def __call__(
        self,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        costs = dict(self._kwargs)
        check_evaluated(X, y, None, costs["cost_matrix"], sample_weight, costs["classes"])
        if costs["classes"] is None:
            labels, classes = frame_labels(costs["cost_matrix"]), np.asarray(estimator.classes_)
            # As in fit, column names match labels that are not strings by their string.
            if labels is None or not same_label_kind(labels, classes):
                costs["classes"] = classes
        found = find_decisions(costs["cost_matrix"], None, np.asarray(estimator.classes_))
        y_pred = estimator.predict(X) if found is None else _decisions(estimator, X, None)
        return -mean_cost(y, y_pred, sample_weight=sample_weight, **costs)

    def __repr__(self) -> str:
        return "make_cost_scorer(cost_matrix=)"


cost_scorer = _CostScorer()
"""Scorer for per-sample costs: minus the mean cost. It requests ``cost`` by default.

With metadata routing enabled it receives the ``cost`` that is passed to the search's ``fit`` or
``score``, split to the rows of each fold. A direct call ``cost_scorer(estimator, X, y, cost=C)``
needs no routing. Without costs it raises an error.
"""


def make_cost_scorer(*, cost_matrix: ArrayLike, classes: ArrayLike | None = None) -> _MatrixScorer:
    """Make a scorer for class-level costs; it works with metadata routing off and on.

    Parameters
    ----------
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes)
        Cost of each prediction (column) for each true class (row).
    classes : array-like of shape (n_classes,), default=None
        Labels of the rows and columns. By default the labels of a DataFrame, otherwise `classes_`
        of the scored estimator.

    Returns
    -------
    callable
        A scorer ``(estimator, X, y, sample_weight=None)`` that returns minus the mean cost, for
        the ``scoring`` of any search or cross-validation.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> from auxcst_sklearn.costs import ordinal_cost_matrix
    >>> from auxcst_sklearn.metrics import make_cost_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = make_cost_scorer(cost_matrix=ordinal_cost_matrix(3, power=2))
    >>> scores = cross_val_score(LogisticRegression(max_iter=500), X, y, scoring=scorer)
    >>> print(round(scores.mean(), 2))
    -0.03
    """
    return _MatrixScorer(cost_matrix, classes)
