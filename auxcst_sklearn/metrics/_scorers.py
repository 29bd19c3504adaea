"""Scorers of the cost of predictions, for scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from ..costs._account import find_decisions
from ..costs._evaluation import check_evaluated, decided, decisions_of, mean_paid
from ..costs._matching import column_names, same_label_kind
from ._measures import mean_cost


class _Scorer:
    """Minus the mean cost of ``estimator.predict(X)``.

    Columns have the order of the estimator's `classes_`, not of y, because a fold may lack a
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
    """Scorer for per-sample costs: minus the mean cost. It requests ``cost`` by default.

    With metadata routing enabled it receives the ``cost`` that is passed to the search's ``fit`` or
    ``score``, split to the rows of each fold. A direct call ``cost_scorer(estimator, X, y,
    cost=C)`` needs no routing. Without costs it raises an error.
    """

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
                "the fit of the search; for class-level costs use make_cost_scorer(cost_matrix=). "
                "Where costs cannot be passed on, use functools.partial(cost_scorer, cost=C)."
            )
        check_evaluated(X, y, cost, None, sample_weight)
        given = {"y_true": y, "y_pred": decided(estimator, X, cost)}
        labels = (estimator.classes_, decisions_of(estimator))
        return -mean_paid(given, cost, None, *labels, sample_weight, of_model=True)

    def __repr__(self) -> str:
        return "cost_scorer"


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
            labels, classes = column_names(costs["cost_matrix"]), np.asarray(estimator.classes_)
            # As in fit, column names match labels that are not strings by their string.
            if labels is None or not same_label_kind(labels, classes):
                costs["classes"] = classes
        found = find_decisions(None, costs["cost_matrix"], None, np.asarray(estimator.classes_))
        y_pred = estimator.predict(X) if found is None else decided(estimator, X, None)
        return -mean_cost(y, y_pred, sample_weight=sample_weight, **costs)

    def __repr__(self) -> str:
        return "make_cost_scorer(cost_matrix=)"


cost_scorer = _CostScorer()


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
