"""The fully connected networks of the paper: what determines a run, and how it is run.

The seed draws the training examples, which classes are thinned out, the costs and the initial
weights. All methods meet the same examples and costs, so their results are paired by seed.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.utils import resample

from auxcst_sklearn import CostSensitiveAuxMLP, CSAEPretrainedMLP
from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from auxcst_sklearn.datasets import fetch_cifar10, fetch_cifar100, fetch_mnist, make_imbalanced
from auxcst_sklearn.metrics import make_cost_scorer, mean_cost, savings_score
from benchmarks.common.engine import Result
from benchmarks.paper.runs import IMBALANCED, Configuration

FETCH = {"mnist": fetch_mnist, "cifar10": fetch_cifar10, "cifar100": fetch_cifar100}
DATASETS = [name + variant for name in FETCH for variant in ("", IMBALANCED)]
VALIDATION_FRACTION = 0.2

# The networks of the paper have neither dropout nor a schedule; CSAEPretrainedMLP has not either.
PLAIN = {
    "dropout": 0.0,
    "activation": "relu",
    "schedule": "constant",
    "learning_rate": 1e-3,
    "standardize": False,
    "n_networks": 1,
    "averaging": 0,
    "temperature": 1.0,
}


@dataclass(frozen=True)
class DenseConfiguration(Configuration):
    """All that determines the result of one run.

    `method` is "aux" (CostSensitiveAuxMLP), "csae" (CSAEPretrainedMLP) or "blind" (the former
    without costs). `alpha` is None where there are no auxiliary heads; a tuple stands for the
    best of its values on a validation part of the training set. `train_size` counts examples
    before classes are thinned out, None for all. With `early_stopping`, `epochs` is the largest
    number, and a validation part of the training set chooses.
    """

    train_size: int | None
    seed: int
    method: str
    depth: int
    width: int
    epochs: int
    loss: str
    alpha: float | tuple[float, ...] | None = None
    early_stopping: bool = False

    @classmethod
    def of(
        cls,
        options: argparse.Namespace,
        dataset: str,
        seed: int,
        depth: int,
        *,
        method: str = "aux",
        loss: str | None = None,
        alpha: float | tuple[float, ...] | None = None,
    ) -> DenseConfiguration:
        """Complete a configuration by the options; with one hidden layer alpha means nothing."""
        return cls(
            dataset=dataset,
            train_size=options.train_size,
            seed=seed,
            method=method,
            depth=depth,
            width=options.width,
            epochs=options.epochs,
            loss=loss or options.loss,
            alpha=alpha if depth > 1 else None,
            early_stopping=options.early_stopping,
        )

    @property
    def name(self) -> str:
        return f"{self.dataset}_{self.method}_depth{self.depth}_seed{self.seed}"


class Dataset(NamedTuple):
    """Flattened images, scaled to [0, 1] by the training part, which comes first."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    n_train: int


class Draw(NamedTuple):
    """What a seed draws: what a method learns from, and what it is judged by."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    cost_matrix: NDArray[np.float64]


def load(dataset: str, data_home: Path | None) -> Dataset:
    bunch = FETCH[dataset.removesuffix(IMBALANCED)](data_home, scaled=True)
    return Dataset(bunch.data, bunch.target, bunch.n_train)


def draw(configuration: DenseConfiguration, data: Dataset) -> Draw:
    """Draw training examples and costs by the seed, whatever the method.

    Only the training part is thinned out; the test part stays as it is. The costs are drawn from
    the class counts of what is left for training.
    """
    seeds = np.random.SeedSequence(configuration.seed).generate_state(3)
    train, test = slice(data.n_train), slice(data.n_train, None)
    rows, y = np.arange(data.n_train), data.y[train]
    if configuration.train_size is not None:
        if not 0 < configuration.train_size <= data.n_train:
            raise ValueError(
                f"--train-size is {configuration.train_size}; expected 1 to {data.n_train}, the "
                f"number of training examples of {configuration.dataset}."
            )
        rows, y = resample(
            rows,
            y,
            replace=False,
            n_samples=configuration.train_size,
            stratify=y,
            random_state=seeds[0],
        )
    if configuration.dataset.endswith(IMBALANCED):
        rows, y = make_imbalanced(rows, y, random_state=seeds[1])
    if len(np.unique(y)) < len(np.unique(data.y)):
        raise ValueError(
            f"--train-size {configuration.train_size} leaves some of the {len(np.unique(data.y))} "
            f"classes of {configuration.dataset} without an example; use a larger one."
        )
    cost_matrix = randomized_proportional_cost_matrix(y, random_state=seeds[2])
    return Draw(data.X[rows], y, data.X[test], data.y[test], cost_matrix)


def make_estimator(
    configuration: DenseConfiguration, cost_matrix: NDArray, device: str
) -> BaseEstimator:
    parameters = {
        "depth": configuration.depth,
        "width": configuration.width,
        "loss": configuration.loss,
        "cost_matrix": None if configuration.method == "blind" else cost_matrix,
        "max_epochs": configuration.epochs,
        "early_stopping": configuration.early_stopping,
        "validation_fraction": VALIDATION_FRACTION,
        "device": device,
        "random_state": configuration.seed,
    }
    if configuration.method == "csae":
        return CSAEPretrainedMLP(**parameters)
    parameters |= PLAIN
    if isinstance(configuration.alpha, tuple):
        return GridSearchCV(
            CostSensitiveAuxMLP(**parameters),
            {"alpha": configuration.alpha},
            scoring=make_cost_scorer(cost_matrix),
            cv=StratifiedShuffleSplit(
                1, test_size=VALIDATION_FRACTION, random_state=configuration.seed
            ),
            error_score="raise",
        )
    return CostSensitiveAuxMLP(alpha=configuration.alpha or 0.0, **parameters)


def run(configuration: DenseConfiguration, data: Dataset, device: str) -> Result:
    """Train one network and test it."""
    drawn = draw(configuration, data)
    estimator = make_estimator(configuration, drawn.cost_matrix, device)
    start = time.perf_counter()
    estimator.fit(drawn.X_train, drawn.y_train)
    seconds = time.perf_counter() - start
    y_pred = estimator.predict(drawn.X_test)
    costs = {"cost_matrix": drawn.cost_matrix, "classes": estimator.classes_}
    network = getattr(estimator, "best_estimator_", estimator)
    layers = [*network.hidden_layers_, "output"]
    return {
        **getattr(estimator, "best_params_", {}),
        "test_cost": mean_cost(drawn.y_test, y_pred, **costs),
        "savings": savings_score(drawn.y_test, y_pred, **costs),
        "accuracy": accuracy_score(drawn.y_test, y_pred),
        "seconds": round(seconds, 2),
        "layer_losses": {
            layer: [round(epoch[f"train_loss_{layer}"], 6) for epoch in network.history_]
            for layer in layers
        },
    }
