"""What is learnt in `bench_cost`: data, costs and sizes, and how a seed draws a task from them.

A :class:`Setting` crosses one kind of data with one kind of costs. A seed draws from it which rows
are learnt from and which are tested on (or, where data are synthetic, the whole problem), the
costs, the wrong labels and the random state of the methods, all of which meet the same task.

Seeds from :data:`DEVELOPMENT` on are for choosing defaults. They never see what the benchmark
tests on: the reserved half of a table, the test part of an image data set, or the problems,
cost matrices and class trees that the smaller seeds draw. The benchmark trains on any row, and
tests on reserved ones alone.

Costs are of two kinds. Where a cost matrix holds for every example up to a positive factor, which
changes no decision, the task tells the matrix. Where each example has costs of its own the task
tells none: what a mistake will cost is then as unknown at prediction as the class.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

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
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn.costs import (
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)
from auxcst_sklearn.datasets import fetch_cifar10, fetch_mnist, make_imbalanced

DEVELOPMENT = 100
N_TEST = 3000  # rows of a synthetic problem that are tested on
IMBALANCED = "-imb"


class Task(NamedTuple):
    """What a method may learn from, and what it is judged by.

    `cost_matrix` holds for every example up to a positive factor, or is None; then
    `test_matrices` has one for each test example, for the method that is told the test costs.
    """

    X_train: NDArray
    y_train: NDArray
    cost_train: NDArray
    X_test: NDArray
    y_test: NDArray
    cost_test: NDArray
    cost_matrix: NDArray | None
    test_matrices: NDArray | None
    random_state: int
    pixels: bool


class Split(NamedTuple):
    """Rows to learn from and rows to test on."""

    X_train: NDArray
    y_train: NDArray
    X_test: NDArray
    y_test: NDArray


# ---------------------------------------------------------------------- data


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


@cache
def _load_images(fetch: Callable, data_home: Path | None) -> tuple[NDArray, NDArray, int]:
    bunch = fetch(data_home)
    return bunch.data, bunch.target, bunch.n_train


def images(
    fetch: Callable,
    n_train: int | None,
    seed: int,
    development: bool,
    data_home: Path | None = None,
    imbalanced: bool = False,
) -> Split:
    """Training images, thinned out if imbalanced, and the test part, or others to develop with."""
    X, y, n_all = _load_images(fetch, data_home)
    train, test = np.arange(n_all), np.arange(n_all, len(y))
    if development:
        train, test = train_test_split(
            train, test_size=min(10_000, n_all // 5), stratify=y[train], random_state=seed
        )
    if n_train is not None:
        train, _ = train_test_split(train, train_size=n_train, stratify=y[train], random_state=seed)
    if imbalanced:
        train, _ = make_imbalanced(train, y[train], random_state=seed)
    unit = np.float32(255)
    return Split(X[train] / unit, y[train], X[test] / unit, y[test])


class Data(NamedTuple):
    """A kind of data: how a seed draws it, the number of classes, training rows and draws.

    A table so small that a few test rows would decide is drawn `n_draws` times for each seed.
    """

    draw: Callable[..., Split]
    n_classes: int
    n_train: int | None = None
    n_draws: int = 1
    pixels: bool = False


_overlap = partial(synthetic, class_sep=0.7, flip_y=0.05)
_images = {"mnist": fetch_mnist, "cifar10": fetch_cifar10}

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
    **{
        name + variant: Data(
            partial(images, fetch, imbalanced=variant == IMBALANCED), 10, pixels=True
        )
        for name, fetch in _images.items()
        for variant in ("", IMBALANCED)
    },
}

# --------------------------------------------------------------------- costs


class Costs(NamedTuple):
    """Cost matrices (n, K, K) of examples X, and the matrix that they are multiples of, if any."""

    matrices: Callable[[NDArray], NDArray]
    cost_matrix: NDArray | None


def by_class(cost_matrix: NDArray) -> Costs:
    """The same matrix for all examples."""
    return Costs(lambda X: np.broadcast_to(cost_matrix, (len(X), *cost_matrix.shape)), cost_matrix)


def proportional(X: NDArray, y: NDArray, rng: RandomState) -> Costs:
    return by_class(randomized_proportional_cost_matrix(y, random_state=rng))


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
    cost_matrix = randomized_proportional_cost_matrix(y, random_state=rng)
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
    for cost in (
        *(proportional, lognormal, tree, absolute, squared),
        *(scaled, individual, tumour),
    )
}

# ------------------------------------------------------------------ settings


@dataclass(frozen=True)
class Setting:
    """A kind of data with a kind of costs; of images, also the number of training rows."""

    data: str
    cost: str
    size: int | str | None = None

    @property
    def name(self) -> str:
        return f"{self.data}{'' if self.size is None else f'-{self.size}'}/{self.cost}"

    @property
    def file_name(self) -> str:
        return self.name.replace("/", "_")

    @property
    def n_classes(self) -> int:
        return DATA[self.data].n_classes

    @property
    def pixels(self) -> bool:
        return DATA[self.data].pixels

    @property
    def costs_differ(self) -> bool:
        """Whether examples have costs that are not multiples of one matrix."""
        return self.cost in ("individual", "tumour")

    def draw(self, seed: int, data_home: Path | None = None) -> list[Task]:
        """Draw the tasks of a seed."""
        return [self._draw(seed, i, data_home) for i in range(DATA[self.data].n_draws)]

    def _draw(self, seed: int, draw: int, data_home: Path | None) -> Task:
        entropy = np.random.SeedSequence([seed, draw, crc32(self.name.encode())])
        of_data, of_costs, random_state = map(int, entropy.generate_state(3))
        data = DATA[self.data]
        n_train = data.n_train if self.size in (None, "all") else self.size
        home = {"data_home": data_home} if data.pixels else {}
        split = data.draw(n_train=n_train, seed=of_data, development=seed >= DEVELOPMENT, **home)
        X_train, y_train, X_test, y_test = split
        costs = COSTS[self.cost](X_train, y_train, RandomState(of_costs))
        of_train, of_test = costs.matrices(X_train), costs.matrices(X_test)
        X_train, X_test = standardize(X_train, X_test, data.pixels)
        return Task(
            *(X_train, y_train, of_train[np.arange(len(y_train)), y_train]),
            *(X_test, y_test, of_test[np.arange(len(y_test)), y_test]),
            cost_matrix=costs.cost_matrix,
            test_matrices=of_test if costs.cost_matrix is None else None,
            random_state=random_state,
            pixels=data.pixels,
        )


def standardize(X_train: NDArray, X_test: NDArray, pixels: bool) -> tuple[NDArray, NDArray]:
    """Mean 0 and deviation 1 over the training rows: of each feature, of all pixels together.

    A pixel of the margin that is bright once in the training set would otherwise be huge.
    """
    if pixels:
        mean, deviation = X_train.mean(), X_train.std()
        return (X_train - mean) / deviation, (X_test - mean) / deviation
    scaler = StandardScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test)


IMAGE_SETTINGS = [
    ("mnist", "proportional"),
    ("mnist", "lognormal"),
    ("mnist-imb", "proportional"),
    ("cifar10", "proportional"),
    ("cifar10", "tree"),
    ("cifar10-imb", "proportional"),
]
SETTINGS: list[Setting] = [
    *(Setting("digits", cost) for cost in ("proportional", "tree", "lognormal")),
    *(Setting("wine", cost) for cost in ("proportional", "squared")),
    *(Setting("breast-cancer", cost) for cost in ("proportional", "tumour")),
    Setting("overlap2", "individual"),
    Setting("rare2", "proportional"),
    Setting("rare2", "individual"),
    Setting("overlap5", "scaled"),
    Setting("noise5", "proportional"),
    Setting("ordered5", "absolute"),
    *(Setting("overlap10", cost) for cost in ("proportional", "lognormal", "individual")),
    Setting("mislabelled10", "proportional"),
    Setting("ordered10", "squared"),
    *(Setting("overlap26", cost) for cost in ("proportional", "lognormal")),
    Setting("overlap50", "tree"),
    *(Setting(*setting, size) for size in (2000, 10_000, "all") for setting in IMAGE_SETTINGS),
]
