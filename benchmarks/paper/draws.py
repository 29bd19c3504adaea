"""What a seed draws: training examples, thinned classes, costs, and rows to tune on."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split
from sklearn.utils import resample

from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from benchmarks.common.image_sets import IMAGE_SETS, thin_out
from benchmarks.paper.runs import IMBALANCED

DATASETS = [name + variant for name in IMAGE_SETS for variant in ("", IMBALANCED)]
HELD_OUT_FRACTION = 1 / 6  # 10,000 rows of MNIST


class Drawing(Protocol):
    """What a configuration says of its data."""

    dataset: str
    train_size: int | None
    seed: int
    tuning: bool


class Dataset(NamedTuple):
    """Flattened images, scaled to [0, 1] by the training part, which comes first."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    n_train: int


class Draw(NamedTuple):
    """What a method learns from, and what it is judged by."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    cost_matrix: NDArray[np.float64]


def load(dataset: str, data_home: Path) -> Dataset:
    images = IMAGE_SETS[dataset.removesuffix(IMBALANCED)](data_home)
    return Dataset(images.scaled_rows(), images.target, images.n_train)


def draw(configuration: Drawing, data: Dataset) -> Draw:
    """Draw training examples and costs by the seed, whatever the method.

    Only the training part is thinned out; the test part stays as it is. The costs are drawn from
    the class counts of what is left for training. A tuning run is judged by a part of the
    training rows, which it does not learn from, and never meets the test part.
    """
    seeds = np.random.SeedSequence(configuration.seed).generate_state(4)
    rows, y = np.arange(data.n_train), data.y[: data.n_train]
    if configuration.train_size is not None:
        rows, y = _take(configuration, rows, y, seeds[0])
    if configuration.dataset.endswith(IMBALANCED):
        left = thin_out(y, seeds[1])
        rows, y = rows[left], y[left]
    if len(np.unique(y)) < len(np.unique(data.y)):
        raise ValueError(
            f"--train-size {configuration.train_size} leaves some of the {len(np.unique(data.y))} "
            f"classes of {configuration.dataset} without an example; use a larger one."
        )
    cost_matrix = randomized_proportional_cost_matrix(y, random_state=seeds[2]).values
    test = np.arange(data.n_train, len(data.y))
    if configuration.tuning:
        rows, test = train_test_split(
            rows, test_size=HELD_OUT_FRACTION, stratify=y, random_state=seeds[3]
        )
    return Draw(data.X[rows], data.y[rows], data.X[test], data.y[test], cost_matrix)


def _take(configuration: Drawing, rows: NDArray, y: NDArray, seed: int) -> tuple[NDArray, NDArray]:
    """A stratified part of the training rows."""
    if not 0 < configuration.train_size <= len(rows):
        raise ValueError(
            f"--train-size is {configuration.train_size}; expected 1 to {len(rows)}, the number of "
            f"training examples of {configuration.dataset}."
        )
    return resample(
        rows, y, replace=False, n_samples=configuration.train_size, stratify=y, random_state=seed
    )
