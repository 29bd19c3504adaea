"""Decisions within limits: the cheapest assignment of rows, and the shadow prices of the limits."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from heapq import heappop, heappush
from itertools import pairwise
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.utils import check_array

from .._checks.data import plain_array
from .._checks.labels import plain_labels

Capacity = Mapping[Hashable, "int | float"]

# Rounds that estimate shadow prices, at most. A power of 2 divides the costs, which is exact, so
# that sums of the largest floats are finite.
N_ROUNDS, SCALE = 30, 2.0**10
# With more decisions and few rows for each, scipy is faster, as long as its table of rows and
# places is not large. Its time grows with the cube of the rows: 3,000 rows with 40 decisions take
# it 15 s instead of 0.2 s.
MANY_DECISIONS, FEW_ROWS, MOST_PLACES = 32, 10, 5e7


def shadow_price_vector(
    prices: Mapping[Hashable, float], decisions: NDArray[Any]
) -> NDArray[np.float64]:
    """Shadow prices of the decisions in their order, 0 for decisions without one."""
    if not isinstance(prices, Mapping):
        raise TypeError(f"shadow_prices={prices!r}; expected a mapping of decisions to amounts.")
    labels, vector = decisions.tolist(), np.zeros(len(decisions))
    for label, price in prices.items():
        if label not in labels:
            raise ValueError(
                f"shadow_prices names {label!r}; expected some of the decisions {labels}."
            )
        if not isinstance(price, Real) or not 0 <= float(price) < np.inf:
            raise ValueError(
                f"shadow_prices[{label!r}]={price!r}; expected a finite amount from 0 on."
            )
        vector[labels.index(label)] = float(price)
    return vector


def assignment(
    expected_cost: ArrayLike, capacity: Capacity, decisions: ArrayLike | None, priced: bool
) -> tuple[NDArray[np.intp], dict[Hashable, float]]:
    """The column of each row, and if `priced`, the shadow prices of the limited decisions."""
    cost: NDArray[np.float64] = check_array(
        plain_array(expected_cost, "expected_cost"), dtype=np.float64, input_name="expected_cost"
    )
    n_decisions = cost.shape[1]
    labels = list(range(n_decisions)) if decisions is None else plain_labels(decisions).tolist()
    if len(labels) != n_decisions or len(set(labels)) < n_decisions:
        raise ValueError(
            f"decisions names {len(set(labels))} columns, but expected_cost has {n_decisions}; "
            "expected a label for each."
        )
    if not isinstance(capacity, Mapping):
        raise TypeError(
            f"capacity={capacity!r}; expected a mapping of decisions to their largest number or "
            "share, such as {'review': 200}."
        )
    choice, price = solve(cost, _limits(capacity, labels, len(cost)), priced)
    return choice, {label: float(price[labels.index(label)]) for label in capacity}


def _limits(capacity: Capacity, labels: list[Any], n: int) -> NDArray[np.float64]:
    """The largest number of rows of each column."""
    limit = np.full(len(labels), np.inf)
    for label, value in capacity.items():
        if label not in labels:
            raise ValueError(f"capacity names {label!r}; expected some of the decisions {labels}.")
        limit[labels.index(label)] = capacity_count(f"capacity[{label!r}]", value, n)
    if limit.sum() < n:
        limits = {label: int(limit[labels.index(label)]) for label in capacity}
        raise ValueError(
            f"capacity limits all decisions, to {limits}, which leaves {n - int(limit.sum())} of "
            f"{n} samples without any. Raise a limit, or leave one decision without."
        )
    return limit


def capacity_count(name: str, value: Any, n: int) -> int:
    """A limit as a number of `n` rows."""
    is_number = isinstance(value, Integral) and not isinstance(value, bool | np.bool_)
    if is_number and int(value) >= 0:
        return min(int(value), n)
    if isinstance(value, Real) and not isinstance(value, Integral) and 0 <= float(value) <= 1:
        share = float(str(value) if isinstance(value, np.floating) else value)  # 0.01 of float32
        return int(np.floor(share * n + 1e-9))
    raise ValueError(
        f"{name}={value!r}; expected a number of samples as a non-negative int, or a "
        "share of them as a float from 0 to 1."
    )


def solve(
    cost: NDArray[np.float64], limit: NDArray[np.float64], priced: bool
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """The cheapest assignment, and what a unit of extra capacity of each decision would save.

    Unless the second is needed, scipy assigns rows to the places of many decisions.
    """
    choice = cost.argmin(axis=1)
    if (np.bincount(choice, minlength=len(limit)) <= limit).all():
        return choice, np.zeros(len(limit))
    cost = cost / SCALE
    order = np.lexsort(cost.T)  # equal rows side by side, in their order
    is_new = np.append(True, (cost[order[1:]] != cost[order[:-1]]).any(axis=1))
    count = np.diff(np.append(np.flatnonzero(is_new), len(cost)))
    n_places = np.minimum(limit, len(cost)).astype(np.intp)
    is_small = n_places.sum() * len(cost) < MOST_PLACES
    if not priced and is_small and len(limit) > max(MANY_DECISIONS, len(cost) / FEW_ROWS):
        places = np.repeat(np.arange(len(limit)), n_places)
        taken = places[linear_sum_assignment(cost[order][:, places])[1]]
        used, price = np.zeros((len(count), len(limit)), np.intp), np.zeros(len(limit))
        np.add.at(used, (np.cumsum(is_new) - 1, taken), 1)
    else:
        first = _first_prices(cost, limit)
        used, price = _solve_counted(cost[order[is_new]], count, limit, first)
    columns = np.argsort(np.isinf(limit), kind="stable")  # the first of equal rows come first
    choice[order] = np.repeat(np.tile(columns, len(count)), used[:, columns].ravel())
    return choice, price * SCALE


def _first_prices(cost: NDArray[np.float64], limit: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shadow prices that are nearly right: of one decision after the other, given the others."""
    columns, price = np.ascontiguousarray(cost.T), np.zeros(len(limit))
    at = columns.copy()  # with the prices
    for _ in range(N_ROUNDS):
        before = price.copy()
        for j in np.flatnonzero(limit < len(cost)):
            at[j] = np.inf
            gain = at.min(axis=0) - columns[j]
            kth = len(cost) - int(limit[j]) - 1
            price[j] = max(np.partition(gain, kth)[kth], 0.0)
            at[j] = columns[j] + price[j]
        if (price == before).all():
            break
    return price


def _solve_counted(
    cost: NDArray[np.float64],
    count: NDArray[np.intp],
    limit: NDArray[np.float64],
    price: NDArray[np.float64],
) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """How many of the different rows, which occur `count` times, get each decision.

    At any shadow prices, the cheapest decision of each row is the cheapest assignment with the
    capacities that it uses. It stays the cheapest if capacity is added, or taken, by successive
    shortest paths.
    """
    assigned = np.zeros(cost.shape, dtype=np.intp)
    assigned[np.arange(len(cost)), (cost + price).argmin(axis=1)] = count
    used, columns = assigned.sum(axis=0), np.arange(len(limit))
    n_moves = np.abs(used - limit)[(price > 0) | (used > limit)].sum()
    moves = _Moves(cost, assigned, int(n_moves) + 1)
    for k in np.flatnonzero((price > 0) & (used < limit)):
        while (n := limit[k] - moves.used[k]) > 0:
            path, length = moves.shortest((moves.used > 0) & (columns != k), columns == k)
            if length >= 0:
                break
            moves.make(path, n)
    for j in np.flatnonzero(used > limit):
        while (n := moves.used[j] - limit[j]) > 0:
            path, _ = moves.shortest(columns == j, moves.used < limit)
            moves.make(path, min(n, limit[path[-1]] - moves.used[path[-1]]))
    saved = np.zeros(len(limit))
    for k in np.flatnonzero(moves.used == limit):
        _, length = moves.shortest((moves.used > 0) & (columns != k), columns == k)
        saved[k] = max(-length, 0.0)
    return assigned, saved


class _Moves:
    """The cheapest moves of rows from one decision to another, while up to `n_moves` are made.

    Each pair of decisions has a queue of rows by the cost of their move. Rows that have left since
    are dropped when they come to its front.
    """

    def __init__(self, cost: NDArray[np.float64], assigned: NDArray[np.intp], n_moves: int) -> None:
        self.cost, self.assigned, self.used = cost, assigned, assigned.sum(axis=0)
        self.queues: dict[tuple[int, int], list[tuple[float, int]]] = {}
        self.length = np.zeros((len(self.used), len(self.used)))
        for j in range(len(self.used)):
            index = np.flatnonzero(assigned[:, j])
            more = np.ascontiguousarray((cost[index] - cost[index, j, None]).T)
            near = np.argsort(more, axis=1, kind="stable")[:, :n_moves]
            parts = np.take_along_axis(more, near, axis=1).tolist(), index[near].tolist()
            self.queues |= {(j, k): [*zip(*queue)] for k, queue in enumerate(zip(*parts))}
            self._update(j)

    def _update(self, j: int) -> None:
        """Find the cheapest moves from a decision whose rows have changed."""
        for k in range(len(self.used)):
            queue = self.queues[j, k]
            while queue and not self.assigned[queue[0][1], j]:
                heappop(queue)
            if k != j:
                self.length[k, j] = queue[0][0] if queue else np.inf

    def shortest(self, start: NDArray[np.bool_], end: NDArray[np.bool_]) -> tuple[list[int], float]:
        """The decisions on the cheapest path of moves between two sets, and what it costs."""
        length, before = np.where(start, 0.0, np.inf), []
        for _ in range(len(length) - 1):
            through = length + self.length
            before.append(through.argmin(axis=1))
            nearest = through.min(axis=1)
            if (nearest == length).all():
                break
            length = nearest
        path = [int(np.where(end, length, np.inf).argmin())]
        for step in reversed(before):
            j = int(step[path[-1]])
            path = path[: path.index(j)] if j in path else path  # a detour of no length
            path.append(j)
        return path[::-1], float(length[path[0]])

    def make(self, path: list[int], n_moves: float) -> None:
        """Move up to `n_moves` of the same rows along a path."""
        moves = [(self.queues[pair][0][1], *pair) for pair in pairwise(path)]
        n = int(min(n_moves, *(self.assigned[i, j] for i, j, _ in moves)))
        for i, j, k in moves:
            self.assigned[i, [j, k]] += [-n, n]
            for m in range(len(self.used)):
                heappush(self.queues[k, m], (self.cost[i, m] - self.cost[i, k], i))
        self.used[path[0]] -= n
        self.used[path[-1]] += n
        for j in path:
            self._update(j)
