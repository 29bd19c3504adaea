"""Decisions within limits: the cheapest assignment of rows, and the prices of the limits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.optimize import linprog
from sklearn.utils import check_array

Capacity = Mapping[Hashable, "int | float"]

# Rows of the first linear programme; costs that differ by less than this share of the largest are
# equal.
FIRST_ROWS, TOLERANCE = 3000, 1e-9


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


def check_assignment(
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


def solve(
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
