"""Scorers of the mean cost, for searches and cross-validation."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from .._checks.data import check_row_order
from ..costs._evaluation import (
    mean_paid,
    predict_by_costs,
    read_scored,
    score_by_costs,
    with_own_costs,
)
from ..costs._labels import find_labels
from ..costs._reading import CostFunction
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

    # Metadata that routers pass on: True, False, or the name under which they are passed.
    requests: dict[str, Any] = {"sample_weight": True}

    def get_metadata_routing(self) -> MetadataRequest:
        """Metadata that routers should pass on."""
        request = MetadataRequest(owner=self)
        for name, alias in self.requests.items():
            request.score.add_request(param=name, alias=alias)
        return request

    def set_score_request(self, **requests: Any) -> Self:
        """Return a scorer with other requests of metadata; this one stays as it is.

        Parameters
        ----------
        **requests : bool, str or None
            Whether routers pass an argument of the scorer on, or under which name.

        Returns
        -------
        scorer : callable
            A copy of the scorer with these requests.
        """
        if unknown := sorted({*requests} - {*self.requests}):
            raise TypeError(f"{self!r} takes no {unknown}; expected some of {[*self.requests]}.")
        scorer = copy(self)
        scorer.requests = {**self.requests, **requests}
        return scorer

    # The name that scikit-learn 1.6 reads.
    _get_metadata_request = get_metadata_routing


class _CostScorer(_Scorer):
    """Scorer for the costs of samples: minus the mean cost.

    Costs that are not passed are computed by the `cost_matrix` of the model, if it is a function
    of X; otherwise an error is raised. With metadata routing, the scorer receives the ``cost`` and
    the ``sample_weight`` that are passed to the `fit` or `score` of a search, for the samples of
    each fold. It requests both. ``cost_scorer.set_score_request(sample_weight=False)`` returns a
    scorer that does not. A direct call ``cost_scorer(estimator, X, y, cost=C)`` needs no routing.
    """

    requests = {"cost": True, "sample_weight": True}

    def __call__(
        self,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        check_row_order(X=X, y=y, cost=cost, sample_weight=sample_weight)
        source: Any = cost
        if cost is None:
            estimator, X, source = with_own_costs(estimator, X, y)
        if source is None:
            raise ValueError(
                "No costs reached cost_scorer; it never falls back to 0/1 costs. For per-sample "
                "costs call sklearn.set_config(enable_metadata_routing=True) and pass cost= to "
                "the fit of the search; for class-level costs use make_cost_scorer(cost_matrix=), "
                "or leave out scoring= if the model has a cost_matrix. Where costs cannot be "
                "passed on, use functools.partial(cost_scorer, cost=C). If the costs are a "
                "function of X, put the rule around the model, where it finds them: "
                "BayesMinimumRiskClassifier(model, cost_matrix=function)."
            )
        costs = read_scored(None, y, source, None, sample_weight, owner="cost_scorer")
        return score_by_costs(estimator, X, y, costs, sample_weight, decides=costs.is_known)

    def __repr__(self) -> str:
        return "cost_scorer"


class _MatrixScorer(_Scorer):
    """The scorer for a cost matrix, or a function of X."""

    def __init__(self, cost_matrix: ArrayLike | CostFunction, classes: ArrayLike | None) -> None:
        self._kwargs = {"cost_matrix": cost_matrix, "classes": classes}

    def __call__(
        self, estimator: Any, X: ArrayLike, y: ArrayLike, *, sample_weight: ArrayLike | None = None
    ) -> float:
        cost_matrix, classes = self._kwargs["cost_matrix"], self._kwargs["classes"]
        costs = read_scored(X, y, None, cost_matrix, sample_weight, classes, owner=repr(self))
        known = np.asarray(estimator.classes_)
        labels, decisions = find_labels(costs, known)
        y_pred = (
            estimator.predict(X) if decisions is labels else predict_by_costs(estimator, X, None)
        )
        if classes is None and costs.decisions is None:
            classes = known
        predictions = {"y_true": y, "y_pred": y_pred}
        return -mean_paid(predictions, costs, None, classes, None, sample_weight)

    def __repr__(self) -> str:
        return "make_cost_scorer(cost_matrix=)"


cost_scorer = _CostScorer()


def make_cost_scorer(
    *, cost_matrix: ArrayLike | CostFunction, classes: ArrayLike | None = None
) -> _MatrixScorer:
    """Make a scorer for class-level costs; it works with metadata routing off and on.

    Parameters
    ----------
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), or callable
        Cost of each prediction (column) for each true class (row). A function gets the X of the
        scorer and returns a cost matrix for each sample, which prices what the model predicts.
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
