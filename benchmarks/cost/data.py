"""The kinds of data of `bench_cost`, and how a seed draws rows from them.

Data to develop with never include what the benchmark tests on: the reserved half of a table. The
benchmark trains on any row, and tests on reserved ones alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_wine,
    make_classification,
    make_friedman1,
)
from sklearn.model_selection import train_test_split

N_TEST = 3000  # rows of a synthetic problem that are tested on


class Split(NamedTuple):
    """Rows to learn from and rows to test on."""

    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray


def table(load: Callable, n_train: int | None, seed: int, development: bool) -> Split:
    """Half of a table to learn from; of the other half, what is reserved, to test on."""
    X, y = load(return_X_y=True)
    rows = np.arange(len(y))
    free, reserved = train_test_split(rows, test_size=0.5, stratify=y, random_state=0)
    if development:
        train, test = train_test_split(free, test_size=1 / 3, stratify=y[free], random_state=seed)
    else:
        train, rest = train_test_split(rows, test_size=0.5, stratify=y, random_state=seed)
        test = np.intersect1d(rest, reserved)
    return Split(X[train], y[train], X[test], y[test])


def synthetic(
    n_classes: int, n_train: int, seed: int, development: bool, wrong: float = 0.0, **problem: float
) -> Split:
    """A problem of make_classification; a share `wrong` of the training labels is drawn anew."""
    n_features = 20 if n_classes <= 10 else 30
    X, y = make_classification(
        n_train + N_TEST,
        n_features,
        n_informative=n_features // 2,
        n_redundant=n_features // 4,
        n_classes=n_classes,
        random_state=seed,
        **problem,
    )
    split = _draw_rows(X, y, n_train, seed)
    rng = RandomState(seed)
    chance = rng.randint(n_classes, size=n_train)
    y_train = np.where(rng.uniform(size=n_train) < wrong, chance, split.y_train)
    return split._replace(y_train=y_train)


def ordered(n_classes: int, n_train: int, seed: int, development: bool) -> Split:
    """Grades: a noisy smooth function of the features, cut into classes of equal size."""
    X, score = make_friedman1(n_train + N_TEST, n_features=10, noise=2.0, random_state=seed)
    y = np.argsort(np.argsort(score)) * n_classes // len(score)
    return _draw_rows(X, y, n_train, seed)


def _draw_rows(X: NDArray, y: NDArray, n_train: int, seed: int) -> Split:
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, train_size=n_train, stratify=y, random_state=seed
    )
    return Split(X_train, y_train, X_test, y_test)


class Data(NamedTuple):
    """A kind of data: how a seed draws it, the number of classes, training rows and draws.

    A table so small that a few test rows would decide is drawn `n_draws` times for each seed.
    """

    draw: Callable[..., Split]
    n_classes: int
    n_train: int | None = None
    n_draws: int = 1


_overlap = partial(synthetic, class_sep=0.7, flip_y=0.05)

DATA: dict[str, Data] = {
    "digits": Data(partial(table, load_digits), 10),
    "wine": Data(partial(table, load_wine), 3, n_draws=5),
    "breast-cancer": Data(partial(table, load_breast_cancer), 2, n_draws=2),
    "overlap2": Data(partial(_overlap, 2), 2, 1000),
    "rare2": Data(partial(synthetic, 2, weights=[0.95], class_sep=0.7, flip_y=0.01), 2, 2000),
    "overlap5": Data(partial(_overlap, 5), 5, 1000),
    "noise5": Data(partial(synthetic, 5, class_sep=1.5, flip_y=0.3), 5, 1000),
    "ordered5": Data(partial(ordered, 5), 5, 1000),
    "overlap10": Data(partial(_overlap, 10), 10, 1000),
    "mislabelled10": Data(partial(synthetic, 10, class_sep=1.5, wrong=0.2), 10, 1000),
    "ordered10": Data(partial(ordered, 10), 10, 1000),
    "overlap26": Data(partial(_overlap, 26, n_clusters_per_class=1), 26, 2000),
    "overlap50": Data(partial(_overlap, 50, n_clusters_per_class=1), 50, 2500),
}
