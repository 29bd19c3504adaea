"""Decisions under limits, and under class frequencies that differ from the training."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from sklearn.utils.validation import check_is_fitted

from .._checks.classifiers import check_frequencies, check_probability
from .._checks.nesting import final_estimator, last_step
from ..costs._evaluation import function_of
from ._assignment import Capacity, assignment

__all__ = ["adjust_prior", "assign", "decide", "estimate_prior", "shadow_prices"]
__dir__ = __all__.copy  # without imported names


def decide(
    model: Any,
    X: ArrayLike,
    cost: ArrayLike | None = None,
    *,
    capacity: Capacity | None = None,
    shadow_prices: Mapping[Any, float] | None = None,
    prior: Mapping[Any, float] | Literal["estimate"] | None = None,
) -> NDArray[Any]:
    """Return the labels that the estimator at the end of a fitted pipeline or search decides on.

    Parameters
    ----------
    model : estimator
        An estimator of this package, or a pipeline or search around it, even nested.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Samples.
    cost : array-like or DataFrame of shape (n_classes, n_decisions), or array-like of shape \
            (n_samples, n_classes, n_decisions), default=None
        Costs for this decision: one matrix for all samples, or a matrix for each. Two dimensions
        always mean one matrix. If None, the costs of `fit`, or those of a function of X.
    capacity : mapping of decisions to int or float, default=None
        How many of these samples a decision can have: an int for a number, a float for a share
        (:func:`auxcst_sklearn.decisions.assign`).
    shadow_prices : mapping of decisions to float, default=None
        Shadow prices of limited decisions, in currency, from an earlier batch
        (:func:`auxcst_sklearn.decisions.shadow_prices`). They are added to the costs of the
        decisions. Use them for single samples whose batch is not known.
    prior : mapping of classes to float, or "estimate", default=None
        Class frequencies of these samples, if they differ from the training.

    Returns
    -------
    ndarray of shape (n_samples,)
        Labels of the decisions.

    Raises
    ------
    NotFittedError
        If `model` is not fitted.
    TypeError
        If its last estimator has no `decide`, or it is a search with ``refit=False``.

    Examples
    --------
    Malignant tumours (class 0) are operated on, and others are watched:

    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from auxcst_sklearn import BayesMinimumRiskClassifier
    >>> from auxcst_sklearn.costs import cost_matrices
    >>> from auxcst_sklearn.decisions import decide
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> costs = cost_matrices({0: {"wait": 50, "operate": 5}, 1: {"wait": 0, "operate": 5}})
    >>> model = make_pipeline(StandardScaler(), BayesMinimumRiskClassifier(cost_matrix=costs))
    >>> decide(model.fit(X, y), X[[0, 19, 20]])
    array(['operate', 'wait', 'wait'], dtype='<U7')

    At most one of three malignant tumours can be operated on:

    >>> decide(model, X[:3], capacity={"operate": 1})
    array(['operate', 'wait', 'wait'], dtype='<U7')
    """
    check_is_fitted(model)
    last = final_estimator(model)
    if not hasattr(last, "decide"):
        raise TypeError(
            f"model ends with {last!r}, which has no decide; expected an estimator of "
            "auxcst_sklearn. Wrap other classifiers in BayesMinimumRiskClassifier(estimator)."
        )
    if cost is None:
        function_of(model)  # for its warning of an X that a pipeline changes
    last, X = last_step(model, X)
    return np.asarray(
        last.decide(X, cost, capacity=capacity, shadow_prices=shadow_prices, prior=prior)
    )


def assign(
    expected_cost: ArrayLike, capacity: Capacity, *, decisions: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Return the column of the decision of each sample, at the lowest total cost within limits.

    The result is exact: no other assignment within the limits is cheaper. Limited capacity goes to
    the first of equal samples.

    Parameters
    ----------
    expected_cost : array-like of shape (n_samples, n_decisions)
        Expected cost of each decision for each sample, in currency, as from `predict_cost`.
    capacity : mapping of labels to int or float
        How many samples a decision can have: an int for a number, a float for a share of the
        samples, rounded down. Decisions that are not named have no limit.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the columns. If None, their positions are used.

    Returns
    -------
    ndarray of shape (n_samples,)
        Column of the decision for each sample.

    Raises
    ------
    ValueError
        If the limits of all decisions leave samples without one, or an argument is not as
        described.

    See Also
    --------
    shadow_prices : The cost saved per unit of extra capacity.

    Examples
    --------
    >>> from auxcst_sklearn.decisions import assign
    >>> expected_cost = [[9.0, 5.0], [4.0, 5.0], [20.0, 5.0]]  # pass, review
    >>> assign(expected_cost, {"review": 1}, decisions=["pass", "review"])
    array([0, 0, 1])
    """
    return assignment(expected_cost, capacity, decisions, False)[0]


def shadow_prices(
    expected_cost: ArrayLike, capacity: Capacity, *, decisions: ArrayLike | None = None
) -> dict[Hashable, float]:
    """Compute the cost saved per unit of extra capacity of each limited decision.

    A row should get a limited decision if it saves more than the shadow price of this decision.
    So the shadow prices of one batch are a rule for single rows of the next batches:
    ``decide(X, shadow_prices=...)`` adds them to the costs.

    Parameters
    ----------
    expected_cost : array-like of shape (n_samples, n_decisions)
        Expected cost of each decision for each sample, in currency, as from `predict_cost`.
    capacity : mapping of labels to int or float
        How many samples a decision can have: an int for a number, a float for a share of the
        samples, rounded down. Decisions that are not named have no limit.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the columns. If None, their positions are used.

    Returns
    -------
    dict
        Shadow price of each decision in `capacity`, in currency; 0 if capacity is left over.

    Raises
    ------
    ValueError
        As `assign`.

    Examples
    --------
    >>> from auxcst_sklearn.decisions import shadow_prices
    >>> expected_cost = [[9.0, 5.0], [4.0, 5.0], [20.0, 5.0]]  # pass, review
    >>> shadow_prices(expected_cost, {"review": 1}, decisions=["pass", "review"])
    {'review': 4.0}
    """
    return assignment(expected_cost, capacity, decisions, True)[1]


def adjust_prior(
    probability: ArrayLike, class_prior: ArrayLike, prior: ArrayLike
) -> NDArray[np.float64]:
    """Convert class probabilities to other class frequencies.

    Probabilities are multiplied by the ratio of the frequencies, and normalised. This is exact if
    the probabilities are calibrated, and the classes themselves look as they did in the training.

    Parameters
    ----------
    probability : array-like of shape (n_samples, n_classes)
        Class probabilities of the samples, at the frequencies of the training.
    class_prior : array-like of shape (n_classes,)
        Class frequencies of the training.
    prior : array-like of shape (n_classes,)
        Class frequencies now, with a sum of 1.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        Class probabilities at these frequencies.

    Raises
    ------
    ValueError
        If frequencies are negative or do not sum to 1, a class without training rows has some, or
        `probability` contains no probabilities, such as logits or percent.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
    Probabilities: A Simple Procedure", Neural Computation 14(1), 2002, eq. 4.

    Examples
    --------
    >>> from auxcst_sklearn.decisions import adjust_prior
    >>> adjust_prior([[0.5, 0.5]], class_prior=[0.5, 0.5], prior=[0.9, 0.1])
    array([[0.9, 0.1]])
    """
    n_classes = np.size(class_prior)
    before = check_frequencies(class_prior, n_classes, "class_prior")
    now = check_frequencies(prior, n_classes, "prior")
    p = check_probability(probability, "probability", (*np.shape(probability)[:1], n_classes))
    if ((now > 0) & (before == 0)).any():
        raise ValueError(
            f"prior={now.tolist()} has a class of which the training had no rows, with "
            f"class_prior={before.tolist()}; its probability is not known."
        )
    adjusted = p * np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    total = adjusted.sum(axis=1, keepdims=True)
    return np.where(total > 0, adjusted / np.where(total > 0, total, 1), now)


def estimate_prior(probability: ArrayLike, class_prior: ArrayLike) -> NDArray[np.float64]:
    """Estimate the class frequencies of unlabelled samples by maximum likelihood.

    If the probabilities are not calibrated, the estimate is biased.

    Parameters
    ----------
    probability : array-like of shape (n_samples, n_classes)
        Class probabilities of the samples, at the frequencies of the training.
    class_prior : array-like of shape (n_classes,)
        Class frequencies of the training.

    Returns
    -------
    ndarray of shape (n_classes,)
        Class frequencies of the samples.

    Notes
    -----
    Expectation maximisation (Saerens et al.) finds the same maximum. Because the log likelihood
    is concave, L-BFGS-B finds it in few iterations, also if classes are hard to separate.

    References
    ----------
    M. Saerens, P. Latinne, C. Decaestecker, "Adjusting the Outputs of a Classifier to New a Priori
    Probabilities: A Simple Procedure", Neural Computation 14(1), 2002, eq. 8 to 11.

    Examples
    --------
    >>> from auxcst_sklearn.decisions import estimate_prior
    >>> probability = [[0.9, 0.1]] * 9 + [[0.1, 0.9]]
    >>> print(estimate_prior(probability, class_prior=[0.5, 0.5]).round(2))
    [1. 0.]
    """
    before = check_frequencies(class_prior, np.size(class_prior), "class_prior")
    p = check_probability(probability, "probability", (*np.shape(probability)[:1], len(before)))
    ratio = np.divide(p, before, out=np.zeros_like(p), where=before > 0)
    # Rows of classes without training rows have no evidence for any frequency.
    ratio[~ratio.any(axis=1)] = before > 0

    def loss(prior: NDArray[Any]) -> tuple[float, NDArray[Any]]:
        """Negative mean log likelihood, and a term that makes the sum 1 at the minimum."""
        seen = np.maximum(ratio @ prior, np.finfo(np.float64).tiny)
        return prior.sum() - np.log(seen).mean(), 1 - (ratio / seen[:, None]).mean(axis=0)

    options = {"maxiter": 1000, "ftol": 0, "gtol": 1e-10}
    bounds = [(0, None)] * len(before)
    weights = minimize(loss, before, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return weights / weights.sum()
