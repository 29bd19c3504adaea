"""The kinds of costs of `bench_cost`, and how a seed draws them for rows and labels.

Costs are of two kinds. Where a cost matrix holds for every example up to a positive factor, which
changes no decision, the methods get the matrix. Where each example has costs of its own they get
none: what a mistake will cost is then as unknown at prediction as the class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn.costs import (
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)


class Costs(NamedTuple):
    """Cost matrices (n, K, K) of examples X, and the matrix that they are multiples of, if any."""

    matrices: Callable[[NDArray], NDArray]
    cost_matrix: NDArray | None


def by_class(cost_matrix: NDArray) -> Costs:
    """The same matrix for all examples."""
    return Costs(lambda X: np.broadcast_to(cost_matrix, (len(X), *cost_matrix.shape)), cost_matrix)


def proportional(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    return by_class(randomized_proportional_cost_matrix(y, random_state=rng).values)


def lognormal(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    """Heavy-tailed costs, each drawn on its own."""
    n_classes = y.max() + 1
    return by_class(rng.lognormal(0, 1.5, (n_classes, n_classes)) * (1 - np.eye(n_classes)))


def tree(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    """Edges between the classes in a random tree."""
    paths = draw_tree(rng.permutation(y.max() + 1), rng)
    return by_class(tree_distance_cost_matrix([paths[k] for k in range(len(paths))]))


def draw_tree(classes: NDArray, rng: RandomState, path: tuple[str, ...] = ()) -> dict[int, tuple]:
    """Cut the classes into two to four branches at random, and these again, down to one class."""
    if len(classes) == 1:
        return {int(classes[0]): path}
    n_cuts = min(rng.randint(1, 4), len(classes) - 1)
    cuts = np.sort(1 + rng.choice(len(classes) - 1, n_cuts, replace=False))
    paths = {}
    for i, branch in enumerate(np.split(classes, cuts)):
        paths.update(draw_tree(branch, rng, (*path, str(i))))
    return paths


def absolute(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    return by_class(ordinal_cost_matrix(y.max() + 1))


def squared(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    return by_class(ordinal_cost_matrix(y.max() + 1, power=2))


def scaled(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    """A proportional matrix times exp of a random direction of x."""
    cost_matrix = randomized_proportional_cost_matrix(y, random_state=rng).values
    stake = _random_directions(X, 1, rng)
    return Costs(lambda X: np.exp(stake(X))[:, np.newaxis] * cost_matrix, cost_matrix)


def individual(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    """Each prediction, where wrong, costs exp of a random direction of its own, and 30 % noise."""
    price = _random_directions(X, y.max() + 1, rng)
    wrong = 1 - np.eye(y.max() + 1)

    def matrices(X: NDArray) -> NDArray:
        prices = np.exp(price(X)) * rng.lognormal(0, 0.3, (len(X), len(wrong)))
        return prices[:, np.newaxis] * wrong

    return Costs(matrices, None)


def tumour(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    """Breast cancer: a needless biopsy costs 1, a missed tumour the more, the larger it is."""

    def matrices(X: NDArray) -> NDArray:
        cost = np.zeros((len(X), 2, 2))  # class 0 is malignant
        cost[:, 0, 1] = 5 + X[:, 3] / 100  # column 3 is the mean area
        cost[:, 1, 0] = 1
        return cost

    return Costs(matrices, None)


def _random_directions(X: NDArray, n: int, rng: RandomState) -> Callable[[NDArray], NDArray]:
    """Projections of rows to `n` directions, with mean 0 and deviation 1 over `X`."""
    scaler = StandardScaler().fit(X)
    direction = rng.normal(size=(X.shape[1], n))
    direction /= (scaler.transform(X) @ direction).std(axis=0)
    return lambda X: np.clip(scaler.transform(X) @ direction, -3, 3)


COSTS: dict[str, Callable[[NDArray, NDArray, RandomState], Costs]] = {
    cost.__name__: cost
    for cost in (proportional, lognormal, tree, absolute, squared, scaled, individual, tumour)
}
