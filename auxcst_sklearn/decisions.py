"""Decisions under limits, and under class frequencies other than those of the training."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.utils import check_array

from ._checks.docs import described_like

__all__ = ["adjust_prior", "assign", "capacity_prices", "estimate_prior"]


def __dir__() -> list[str]:
    return __all__


Capacity = Mapping[Hashable, "int | float"]

# Rows of the first linear programme; costs that differ by less than this share of the largest are
# equal.
FIRST_ROWS, TOLERANCE = 3000, 1e-9


def assign(
    expected_cost: ArrayLike, capacity: Capacity, *, decisions: ArrayLike | None = None
) -> NDArray[np.intp]:
    """Assign a decision to each row at the least total cost, with limited decisions.

    The result is exact: no other assignment within the limits costs less. Of rows to which a place
    is worth the same, the first ones get it.

    Parameters
    ----------
    expected_cost : array-like of shape (n_samples, n_decisions)
        Expected cost of each decision for each sample, in currency, as from `predict_cost`.
    capacity : mapping of labels to int or float
        How many samples a decision can have: an int for a number, a float for a share of the
        samples, rounded down. Decisions that are not named have no limit.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the columns; None for their positions.

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
    capacity_prices : What one more place is worth.

    Examples
    --------
    >>> from auxcst_sklearn.decisions import assign
    >>> expected_cost = [[9.0, 5.0], [4.0, 5.0], [20.0, 5.0]]  # pass, review
    >>> assign(expected_cost, {"review": 1}, decisions=["pass", "review"])
    array([0, 0, 1])
    """
    cost, limit = _checked(expected_cost, capacity, decisions)
    return _solve(cost, limit)[0]


@described_like(assign)
def capacity_prices(
    expected_cost: ArrayLike, capacity: Capacity, *, decisions: ArrayLike | None = None
) -> dict[Hashable, float]:
    """Compute what one more place of each limited decision would save.

    A row for which a decision saves more than its price should have it. So the prices of one batch
    are a rule for single rows of the next ones: ``decide(X, prices=prices)`` adds them to the
    costs.

    Parameters
    ----------
    As of :func:`assign`.

    Returns
    -------
    dict
        Price of each decision in `capacity`, in currency; 0 if a place is left over.

    Raises
    ------
    ValueError
        As `assign`.

    Examples
    --------
    >>> from auxcst_sklearn.decisions import capacity_prices
    >>> expected_cost = [[9.0, 5.0], [4.0, 5.0], [20.0, 5.0]]  # pass, review
    >>> capacity_prices(expected_cost, {"review": 1}, decisions=["pass", "review"])
    {'review': 4.0}
    """
    cost, limit = _checked(expected_cost, capacity, decisions)
    rows = np.arange(len(cost))
    choice, price = _solve(cost, limit)
    total = cost[rows, choice].sum()
    labels = list(range(cost.shape[1])) if decisions is None else np.asarray(decisions).tolist()
    prices: dict[Hashable, float] = {}
    for label in capacity:
        j = labels.index(label)
        prices[label] = 0.0
        if price[j] > 0:
            more = limit + (np.arange(len(limit)) == j)
            saved = total - cost[rows, _solve(cost, more, price)[0]].sum()
            prices[label] = max(float(saved), 0.0)
    return prices


def adjust_prior(
    probability: ArrayLike, class_prior: ArrayLike, prior: ArrayLike
) -> NDArray[np.float64]:
    """Convert class probabilities to other class frequencies.

    Probabilities are multiplied by the ratio of the frequencies, and normalised. This is exact if
    the probabilities are calibrated, and the classes themselves look as they did in the training.

    Parameters
    ----------
    probability : array-like of shape (n_samples, n_classes)
        Class probabilities.
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
        If frequencies are negative or do not sum to 1, or a class without training rows has some.

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
    p = check_array(probability, dtype=np.float64, input_name="probability")
    before, now = (np.asarray(one, dtype=np.float64) for one in (class_prior, prior))
    for name, one in (("class_prior", before), ("prior", now)):
        if one.shape != (p.shape[1],) or not (one >= 0).all() or abs(one.sum() - 1) > 1e-6:
            raise ValueError(
                f"{name}={one.tolist()}; expected {p.shape[1]} frequencies of classes that are not "
                "negative and sum to 1."
            )
    if ((now > 0) & (before == 0)).any():
        raise ValueError(
            f"prior={now.tolist()} has a class of which the training had no rows, with "
            f"class_prior={before.tolist()}; its probability is not known."
        )
    adjusted = p * np.divide(now, before, out=np.zeros_like(now), where=before > 0)
    total = adjusted.sum(axis=1, keepdims=True)
    normalised: NDArray[np.float64] = np.where(
        total > 0, adjusted / np.where(total > 0, total, 1), now
    )
    return normalised


def estimate_prior(
    probability: ArrayLike, class_prior: ArrayLike, *, max_iter: int = 1000, tol: float = 1e-8
) -> NDArray[np.float64]:
    """Estimate the class frequencies of unlabelled samples by expectation maximisation.

    It trusts the probabilities: where they are not calibrated, the estimate is biased.

    Parameters
    ----------
    probability : array-like of shape (n_samples, n_classes)
        Class probabilities of the samples, at the frequencies of the training.
    class_prior : array-like of shape (n_classes,)
        Class frequencies of the training.
    max_iter : int, default=1000
        Maximum number of steps.
    tol : float, default=1e-8
        The estimate is returned when no frequency changes by more.

    Returns
    -------
    ndarray of shape (n_classes,)
        Class frequencies of the samples.

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
    prior = np.asarray(class_prior, dtype=np.float64)
    for _ in range(max_iter):
        before, prior = prior, adjust_prior(probability, class_prior, prior).mean(axis=0)
        prior = prior / prior.sum()
        if np.abs(prior - before).max() <= tol:
            break
    return prior


def price_vector(prices: Mapping[Hashable, float], decisions: NDArray[Any]) -> NDArray[np.float64]:
    """Prices of the decisions in their order, 0 for those without one."""
    labels, vector = decisions.tolist(), np.zeros(len(decisions))
    for label, price in prices.items():
        if label not in labels:
            raise ValueError(f"prices names {label!r}; expected some of {labels}.")
        if not isinstance(price, Real) or not 0 <= float(price) < np.inf:
            raise ValueError(f"prices[{label!r}]={price!r}; expected a finite amount from 0 on.")
        vector[labels.index(label)] = float(price)
    return vector


def _checked(
    expected_cost: ArrayLike, capacity: Capacity, decisions: ArrayLike | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Costs, and the largest number of rows of each column."""
    cost: NDArray[np.float64] = check_array(
        expected_cost, dtype=np.float64, input_name="expected_cost"
    )
    n, n_decisions = cost.shape
    labels = list(range(n_decisions)) if decisions is None else np.asarray(decisions).tolist()
    if len(labels) != n_decisions:
        raise ValueError(
            f"decisions names {len(labels)} columns, but expected_cost has {n_decisions}; expected "
            "a label for each."
        )
    if not isinstance(capacity, Mapping):
        raise TypeError(
            f"capacity={capacity!r}; expected a mapping of decisions to their largest number or "
            "share, such as {'review': 200}."
        )
    limit = np.full(n_decisions, np.inf)
    for label, value in capacity.items():
        if label not in labels:
            raise ValueError(f"capacity names {label!r}; expected some of {labels}.")
        limit[labels.index(label)] = _places(label, value, n)
    if limit.sum() < n:
        given = {label: int(limit[labels.index(label)]) for label in capacity}
        raise ValueError(
            f"capacity limits all decisions, to {given}, which leaves {n - int(limit.sum())} of "
            f"{n} samples without any. Raise a limit, or leave one decision without."
        )
    return cost, limit


def _places(label: Any, value: Any, n: int) -> int:
    """A limit as a number of rows."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if is_number and int(value) >= 0:
        return int(value)
    if isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1:
        return int(np.floor(float(value) * n + TOLERANCE))
    raise ValueError(
        f"capacity[{label!r}]={value!r}; expected a number of samples as a non-negative int, or a "
        "share of them as a float from 0 to 1."
    )


def _solve(
    cost: NDArray[np.float64], limit: NDArray[np.float64], price: NDArray[np.float64] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The cheapest assignment, and the prices that lead to it row by row."""
    choice = cost.argmin(axis=1)
    limited = np.flatnonzero(np.isfinite(limit))
    if (np.bincount(choice, minlength=len(limit)) <= limit).all():
        return choice, np.zeros(len(limit))
    if len(limited) == 1:
        return _solve_one(cost, limit, int(limited[0]))
    return _sift(cost, limit, price)


def _solve_one(
    cost: NDArray[np.float64], limit: NDArray[np.float64], j: int
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """With one limited decision, those rows get it that gain most."""
    others = cost.copy()
    others[:, j] = np.inf
    choice = others.argmin(axis=1)
    gain = others.min(axis=1) - cost[:, j]
    order = np.argsort(-gain, kind="stable")
    n = int(limit[j])
    choice[order[:n]] = j
    price = np.zeros(len(limit))
    price[j] = max(gain[order[n]], 0.0)
    return choice, price


def _sift(
    cost: NDArray[np.float64], limit: NDArray[np.float64], price: NDArray[np.float64] | None
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """With several limited decisions, a linear programme of the rows that the prices leave open.

    Prices of the programme are those of all rows if no other row prefers another decision at them,
    because its assignment and prices then meet the conditions of the programme of all rows.
    """
    n, rows = len(cost), np.arange(len(cost))
    limited = np.isfinite(limit)
    smallest = TOLERANCE * max(float(np.abs(cost).max()), 1e-300)
    ordered = cost + np.outer(rows * (smallest / n), limited)  # of equal rows, the first ones
    price = _first_prices(ordered, limit) if price is None else price
    n_open = min(FIRST_ROWS, n)
    while True:
        at = ordered + price
        choice = at.argmin(axis=1)
        margin = np.partition(at, 1, axis=1)[:, 1] - at[rows, choice]
        is_open = np.zeros(n, dtype=bool)
        is_open[np.argpartition(margin, n_open - 1)[:n_open]] = True
        left = limit - np.bincount(choice[~is_open], minlength=len(limit))
        if (left >= 0).all() and left.sum() >= n_open:
            choice[is_open], price = _programme(cost[is_open], left)
            at = cost + price
            if (at.min(axis=1) >= at[rows, choice] - 10 * smallest).all():
                break
        n_open = min(2 * n_open, n)
    tied = (at <= at.min(axis=1, keepdims=True) + smallest) & is_open[:, None]
    return _first_rows_first(choice, tied, limit, price > smallest), price


def _first_prices(cost: NDArray[np.float64], limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Prices that are nearly right: of one decision after the other, given the others.

    Many rounds on some of the rows come before a few on all.
    """
    price, n = np.zeros(len(limit)), len(cost)
    sample = np.random.RandomState(0).permutation(n)[: 10 * FIRST_ROWS]
    for part, n_rounds in ((cost[sample], 200), (cost, 4)):
        for _ in range(n_rounds):
            before = price.copy()
            for j in np.flatnonzero(limit < n).tolist():
                at = part + price
                at[:, j] = np.inf
                gain = at.min(axis=1) - part[:, j]
                kth = min(int((1 - limit[j] / n) * len(gain)), len(gain)) - 1
                price[j] = max(np.partition(gain, kth)[kth], 0.0) if kth >= 0 else 0.0
            if np.abs(price - before).max() <= TOLERANCE * np.abs(price).max():
                break
    return price


def _programme(
    cost: NDArray[np.float64], limit: NDArray[np.float64]
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Solve the linear programme of some rows: decisions, and the prices of the limits."""
    n, n_decisions = cost.shape
    limited = np.flatnonzero(limit < n)
    each = sparse.kron(sparse.eye(n), np.ones((1, n_decisions)), format="csr")
    some = sparse.kron(np.ones((1, n)), sparse.eye(n_decisions, format="csr")[limited])
    solution = linprog(
        cost.ravel(),
        A_ub=some.tocsr() if len(limited) else None,
        b_ub=limit[limited] if len(limited) else None,
        A_eq=each,
        b_eq=np.ones(n),
        method="highs-ds",  # whose solutions are corners, and so whole numbers
    )
    if solution.x is None:
        raise RuntimeError(f"scipy.optimize.linprog found no assignment: {solution.message}")
    price = np.zeros(n_decisions)
    if len(limited):
        price[limited] = np.maximum(-solution.ineqlin.marginals, 0)
    return solution.x.reshape(n, n_decisions).argmax(axis=1), price


def _first_rows_first(
    choice: NDArray[np.intp],
    tied: NDArray[np.bool_],
    limit: NDArray[np.float64],
    is_full: NDArray[np.bool_],
) -> NDArray[np.intp]:
    """Of the cheapest assignments, the one that gives limited places to the first rows."""
    rows = np.flatnonzero(tied.sum(axis=1) > 1)
    if not len(rows) or not is_full.any():
        return choice
    pairs = np.argwhere(tied[rows])
    others = np.bincount(np.delete(choice, rows), minlength=len(limit))
    left = limit - others
    each = sparse.csr_matrix((np.ones(len(pairs)), (pairs[:, 0], np.arange(len(pairs)))))
    some = sparse.csr_matrix(
        (np.ones(len(pairs)), (pairs[:, 1], np.arange(len(pairs)))), (len(limit), len(pairs))
    )
    free = np.isfinite(limit) & ~is_full
    solution = linprog(
        pairs[:, 0] * np.isfinite(limit)[pairs[:, 1]],
        A_ub=some[free] if free.any() else None,
        b_ub=left[free] if free.any() else None,
        A_eq=sparse.vstack([each, some[is_full]]),
        b_eq=np.concatenate([np.ones(len(rows)), left[is_full]]),
        method="highs-ds",
    )
    if solution.x is None:  # only by rounding; the assignment in hand costs the same
        return choice
    picked = pairs[solution.x > 0.5]
    choice = choice.copy()
    choice[rows[picked[:, 0]]] = picked[:, 1]
    return choice
