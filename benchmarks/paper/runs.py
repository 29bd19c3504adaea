"""What the experiments of the paper share: how one configuration is run, kept and summed up.

A :class:`Configuration` holds all that determines a result. Each one is run once: its result is a
small JSON file of its own, written in one piece when the run ends, so that an interrupted
experiment goes on where it stopped, and experiments with the same `--out` share their runs.

The seed draws the training examples, which classes are thinned out, the costs and the initial
weights. All methods meet the same examples and costs, so their results are paired by seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, StratifiedShuffleSplit
from sklearn.utils import resample
from threadpoolctl import threadpool_limits
from tqdm import tqdm  # comes with skorch

from auxcst_sklearn import CostSensitiveAuxMLP, CSAEPretrainedMLP, __version__
from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from auxcst_sklearn.datasets import fetch_cifar10, fetch_cifar100, fetch_mnist, make_imbalanced
from auxcst_sklearn.losses import LOSSES
from auxcst_sklearn.metrics import make_cost_scorer, mean_cost, savings_score
from benchmarks.common.json_files import write_json

FETCH = {"mnist": fetch_mnist, "cifar10": fetch_cifar10, "cifar100": fetch_cifar100}
IMBALANCED = "-imb"
DATASETS = [name + variant for name in FETCH for variant in ("", IMBALANCED)]
VALIDATION_FRACTION = 0.2

# The networks of the paper have neither dropout nor a schedule; CSAEPretrainedMLP has not either.
PLAIN = {
    "dropout": 0.0,
    "schedule": "constant",
    "learning_rate": 1e-3,
    "standardize": False,
    "calibration_fraction": 0.0,
}


@dataclass(frozen=True)
class Configuration:
    """All that determines the result of one run.

    `method` is "aux" (CostSensitiveAuxMLP), "csae" (CSAEPretrainedMLP) or "blind" (the former
    without costs). `alpha` is None where there are no auxiliary heads; a tuple stands for the
    best of its values on a validation part of the training set. `train_size` counts examples
    before classes are thinned out, None for all. With `early_stopping`, `epochs` is the largest
    number, and a validation part of the training set chooses.
    """

    dataset: str
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
    ) -> Configuration:
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
    def file_name(self) -> str:
        name = f"{self.dataset}_{self.method}_depth{self.depth}_seed{self.seed}"
        return f"{name}_{digest(self)}.json"


def digest(configuration: Any) -> str:
    """Tell configurations, and versions of the package, apart in 16 characters."""
    identity = json.dumps({"version": __version__, **asdict(configuration)}, sort_keys=True)
    return hashlib.sha256(identity.encode()).hexdigest()[:16]


# ------------------------------------------------------------------- one run


class Dataset(NamedTuple):
    """Flattened images, scaled to [0, 1] by the training part, which comes first."""

    X: NDArray[np.float32]
    y: NDArray[np.int64]
    n_train: int


class Task(NamedTuple):
    """What a method is given to learn, and what it is judged by."""

    X_train: NDArray[np.float32]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.float32]
    y_test: NDArray[np.int64]
    cost_matrix: NDArray[np.float64]


def load(dataset: str, data_home: Path | None) -> Dataset:
    bunch = FETCH[dataset.removesuffix(IMBALANCED)](data_home, scaled=True)
    return Dataset(bunch.data, bunch.target, bunch.n_train)


def draw_task(configuration: Configuration, data: Dataset) -> Task:
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
    return Task(data.X[rows], y, data.X[test], data.y[test], cost_matrix)


def make_estimator(
    configuration: Configuration, cost_matrix: NDArray, device: str
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


def run(
    configuration: Configuration, data: Dataset, device: str
) -> tuple[Configuration, dict[str, Any]]:
    """Train one network and test it."""
    task = draw_task(configuration, data)
    estimator = make_estimator(configuration, task.cost_matrix, device)
    start = time.perf_counter()
    with threadpool_limits(1):
        estimator.fit(task.X_train, task.y_train)
        seconds = time.perf_counter() - start
        y_pred = estimator.predict(task.X_test)
    costs = {"cost_matrix": task.cost_matrix, "classes": estimator.classes_}
    network = getattr(estimator, "best_estimator_", estimator)
    layers = [*network.hidden_layers_, "output"]
    return configuration, {
        **asdict(configuration),
        **getattr(estimator, "best_params_", {}),
        "test_cost": mean_cost(task.y_test, y_pred, **costs),
        "savings": savings_score(task.y_test, y_pred, **costs),
        "accuracy": accuracy_score(task.y_test, y_pred),
        "seconds": round(seconds, 2),
        "layer_losses": {
            layer: [round(epoch[f"train_loss_{layer}"], 6) for epoch in network.history_]
            for layer in layers
        },
    }


# ------------------------------------------------------------------ all runs


def run_all(
    configurations: Sequence[Any],
    options: argparse.Namespace,
    *,
    load: Callable[[str, Path | None], Any] = load,
    run: Callable[[Any, Any, str], tuple[Any, dict[str, Any]]] = run,
) -> list[dict[str, Any]]:
    """Run what has not been run, in parallel, and give the results of all configurations.

    `load` takes the name of a data set and the folder, `run` a configuration, what was loaded and
    the device; a configuration has a `dataset` and a `file_name`.
    """
    folder = options.out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    known = {path.name for path in folder.glob("*.json")}
    todo = [c for c in dict.fromkeys(configurations) if c.file_name not in known]
    print(f"{len(set(configurations)) - len(todo)} runs are done, {len(todo)} are left.")
    with tqdm(total=len(todo), unit="run", disable=not todo) as progress:
        for name, group in groupby(sorted(todo, key=_data_name), key=_data_name):
            data = load(name, options.data_home)
            results = Parallel(options.n_jobs, return_as="generator_unordered")(
                delayed(run)(configuration, data, options.device) for configuration in group
            )
            for configuration, record in results:
                write_json(folder / configuration.file_name, record)
                progress.update()
    return [json.loads((folder / c.file_name).read_text()) for c in configurations]


def _data_name(configuration: Any) -> str:
    return configuration.dataset.removesuffix(IMBALANCED)


# ------------------------------------------------------------------- options


def make_parser(description: str) -> argparse.ArgumentParser:
    """The options that all experiments on fully connected networks have."""
    parser = make_common_parser(description)
    add = parser.add_argument
    add("--datasets", nargs="+", choices=DATASETS, default=DATASETS, metavar="NAME")
    add("--train-size", type=int, help="training examples, before thinning out; None for all")
    add("--width", type=int, default=1024, help="neurons of each hidden layer")
    return parser


def make_common_parser(description: str) -> argparse.ArgumentParser:
    """The options that all experiments have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    add = parser.add_argument
    add("--data-home", type=Path, help="folder of the data sets, None for scikit-learn's")
    add("--epochs", type=int, default=20, help="passes over the training set, at most")
    add("--loss", choices=list(LOSSES), default="one_sided")
    add("--seeds", nargs="+", type=int, default=[0, 1, 2])
    add("--n-jobs", type=int, default=os.cpu_count(), help="processes, one thread each")
    add("--device", default="auto", help="cpu, cuda ...; auto takes a GPU if there is one")
    add("--out", type=Path, default=Path("out"), help="folder for results and finished runs")
    return parser


def add_grid_options(parser: argparse.ArgumentParser) -> None:
    """The options of experiments over a grid of networks."""
    parser.add_argument("--depths", nargs="+", type=int, default=[1, 2, 3, 4, 5])
    parser.add_argument(
        "--early-stopping",
        action="store_true",
        help="keep the epoch that costs least on a fifth of the training set",
    )
