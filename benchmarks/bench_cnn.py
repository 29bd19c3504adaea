"""CostSensitiveAuxCNN on CIFAR-10 against an MLP and against cost-blind CNNs, paired over draws.

Each seed draws 10,000 training images, a randomized proportional cost matrix and the initial
weights. All networks train for the same number of epochs with the same learning rate schedule and,
the CNNs, the same random flips and shifts. The cost-blind CNN has the layers of the other one, but
no heads and no costs; its class probabilities serve two decisions, the most probable class and the
one of least expected cost (Bayes). Writes the mean test costs with versions and seeds as JSON.

The cost-sensitive networks use smoothed cross-entropy and one-sided heads with the default alpha.
With ``--select`` other losses and alphas are compared with it on held-out training images instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import OneCycleLR

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP
from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from auxcst_sklearn.datasets import fetch_cifar10
from auxcst_sklearn.losses import CrossEntropy
from auxcst_sklearn.metrics import mean_cost

HERE = Path(__file__).parent

SMOOTHED = CrossEntropy(smoothing=0.1)
COST_SENSITIVE: dict[str, Any] = {"loss": SMOOTHED, "aux_loss": "one_sided", "alpha": 0.2}
COST_BLIND: dict[str, Any] = {"loss": SMOOTHED, "alpha": 0}

CANDIDATES: dict[str, dict[str, Any]] = {
    "cross-entropy, no heads": COST_BLIND,
    "cross-entropy, one-sided heads, alpha 0.2": COST_SENSITIVE,
    "cross-entropy, one-sided heads, alpha 1": {**COST_SENSITIVE, "alpha": 1.0},
    "cross-entropy, squared heads, alpha 0.3": {
        "loss": SMOOTHED,
        "aux_loss": "squared",
        "alpha": 0.3,
    },
    "cross-entropy throughout, alpha 0.3": {"loss": SMOOTHED, "alpha": 0.3},
    "one-sided throughout, alpha 0.2": {"loss": "one_sided", "alpha": 0.2},
    "softmin throughout, alpha 0.2": {"loss": "softmin", "alpha": 0.2},
    "squared throughout, alpha 0.2": {"loss": "squared", "alpha": 0.2},
}


class Task(NamedTuple):
    """What is learnt from, what is tested on, and what mistakes cost."""

    X_train: NDArray[np.uint8]
    y_train: NDArray[np.int64]
    X_test: NDArray[np.uint8]
    y_test: NDArray[np.int64]
    cost_matrix: NDArray[np.float64]


def draw_task(cifar10: Any, seed: int, options: argparse.Namespace) -> Task:
    """Draw the training images, and for a selection as many training images to test on."""
    order = np.random.RandomState(seed).permutation(cifar10.n_train)
    train, held_out = order[: options.n_rows], order[options.n_rows : 2 * options.n_rows]
    test = held_out if options.select else slice(cifar10.n_train, None)
    X, y = cifar10.images, cifar10.target
    cost_matrix = randomized_proportional_cost_matrix(y[train], random_state=seed)
    return Task(X[train], y[train], X[test], y[test], cost_matrix)


def train(network: type, task: Task, seed: int, n_epochs: int, **parameters: Any) -> Any:
    """Train a network on the schedule that all share."""
    batch_size = 128
    schedule = LRScheduler(
        OneCycleLR,
        max_lr=3e-3,
        total_steps=n_epochs * -(-len(task.y_train) // batch_size),
        step_every="batch",
    )
    if network is CostSensitiveAuxCNN:
        parameters["augmentation"] = "flip_shift"
    else:
        as_the_cnn = {"dropout": 0.0, "standardize": False, "calibration_fraction": 0}
        parameters |= as_the_cnn
    model = network(
        max_epochs=n_epochs,
        batch_size=batch_size,
        callbacks=[schedule],
        schedule="constant",
        learning_rate=1e-3,
        device="cpu",
        random_state=seed,
        **parameters,
    )
    return model.fit(task.X_train, task.y_train)


def flat(task: Task) -> Task:
    """Floats in [0, 1], a row per image."""
    X_train, X_test = (
        images.reshape(len(images), -1) / np.float32(255) for images in (task.X_train, task.X_test)
    )
    return task._replace(X_train=X_train, X_test=X_test)


def compare(task: Task, seed: int, n_epochs: int) -> Iterator[tuple[str, NDArray, float]]:
    """Each method's predictions and the CPU seconds of its training."""
    costs = {**COST_SENSITIVE, "cost_matrix": task.cost_matrix}
    start = time.process_time()
    model = train(CostSensitiveAuxCNN, task, seed, n_epochs, **costs)
    yield "CNN, cost-sensitive", model.predict(task.X_test), time.process_time() - start

    rows = flat(task)
    start = time.process_time()
    model = train(CostSensitiveAuxMLP, rows, seed, n_epochs, **costs)
    yield "MLP, cost-sensitive", model.predict(rows.X_test), time.process_time() - start

    start = time.process_time()
    model = train(CostSensitiveAuxCNN, task, seed, n_epochs, **COST_BLIND)
    probability = 1 - model.predict_cost(task.X_test)  # every mistake costs 1
    seconds = time.process_time() - start
    yield "CNN, cost-blind", probability.argmax(axis=1), seconds
    yield "CNN, Bayes decision", (probability @ task.cost_matrix).argmin(axis=1), seconds


def select(task: Task, seed: int, n_epochs: int) -> Iterator[tuple[str, NDArray, float]]:
    """Each candidate's predictions and the CPU seconds of its training."""
    for name, parameters in CANDIDATES.items():
        start = time.process_time()
        model = train(
            CostSensitiveAuxCNN, task, seed, n_epochs, cost_matrix=task.cost_matrix, **parameters
        )
        yield name, model.predict(task.X_test), time.process_time() - start


def run(cifar10: Any, seed: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Test all methods on one draw."""
    task = draw_task(cifar10, seed, options)
    rows = []
    for method, y_pred, seconds in (select if options.select else compare)(
        task, seed, options.n_epochs
    ):
        row = {
            "method": method,
            "test_cost": mean_cost(task.y_test, y_pred, cost_matrix=task.cost_matrix),
            "accuracy": float((y_pred == task.y_test).mean()),
            "cpu_seconds": round(seconds, 1),
        }
        print(seed, row, flush=True)
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-home", help="folder with the files of CIFAR-10")
    parser.add_argument("--select", action="store_true", help="compare losses and alphas instead")
    parser.add_argument("--n-rows", type=int, default=10_000, help="training images")
    parser.add_argument("--n-epochs", type=int, default=12)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, help="default: results/cnn.json")
    options = parser.parse_args()
    name = "cnn_selection.json" if options.select else "cnn.json"
    out = options.out or HERE / "results" / name

    torch.set_num_threads(1)
    cifar10 = fetch_cifar10(options.data_home)
    runs = [{"seed": seed, "rows": run(cifar10, seed, options)} for seed in options.seeds]

    cost = np.array([[row["test_cost"] for row in r["rows"]] for r in runs])
    error = cost.std(axis=0, ddof=1) / np.sqrt(len(runs)) if len(runs) > 1 else cost[0] * np.nan
    print(f"\n{'method':45s}{'mean test cost':>15s}{'s.e.':>8s}{'first is lower on':>20s}")
    for j, row in enumerate(runs[0]["rows"]):
        wins = f"{(cost[:, 0] < cost[:, j]).sum()} of {len(runs)}" if j else ""
        print(f"{row['method']:45s}{cost[:, j].mean():15.4f}{error[j]:8.4f}{wins:>20s}")

    out.parent.mkdir(exist_ok=True)
    out.write_text(json.dumps({**provenance(), "runs": runs}, indent=1) + "\n")


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent / "examples"))
    from _provenance import provenance

    main()
