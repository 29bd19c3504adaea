"""AlexNet with auxiliary heads, and without costs: what determines a run, and how it is run."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils import gen_batches
from torch import nn

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.costs import tree_distance_cost_matrix
from auxcst_sklearn.metrics import mean_cost, savings_score
from auxcst_sklearn.modules import RandomFlipShift
from benchmarks.common.engine import Result
from benchmarks.paper.alexnet_network import AlexNet
from benchmarks.paper.images import Images, draw_rows
from benchmarks.paper.runs import Configuration

SMALL = 64  # pixels; up to here, AlexNet's first layer must not skip any


@dataclass(frozen=True)
class AlexNetConfiguration(Configuration):
    """All that determines the result of one run.

    `alpha` is None for the cost-blind network. The last three fields are in the keys of stored
    runs.
    """

    image_size: int
    train_size: int | None
    test_size: int | None
    seed: int
    alpha: float | None
    loss: str
    head_input: str
    width: int
    dropout: float
    epochs: int
    batch_size: int
    learning_rate: float
    precision: str
    weights: None = None
    freeze: None = None
    pretrained_lr_factor: float = 1.0


def random_alexnet(**parameters: Any) -> AlexNet:
    """Draw weights that keep the scale of a signal, which torch's own shrink layer by layer."""
    network = AlexNet(**parameters, normalize=True)
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return network


def make_estimator(
    configuration: AlexNetConfiguration, cost_matrix: NDArray, *, device: str, verbose: bool = False
) -> CostSensitiveAuxNet:
    """The cost-blind network has no heads and learns labels; all else is alike."""
    if configuration.alpha is None:
        goal = {"loss": "cross_entropy", "alpha": 0.0}
    else:
        goal = {
            "loss": configuration.loss,
            "alpha": configuration.alpha,
            "cost_matrix": cost_matrix,
            "head_input": configuration.head_input,
        }
    network = partial(
        random_alexnet,
        small=configuration.image_size <= SMALL,
        width=configuration.width,
        dropout=configuration.dropout,
    )
    return CostSensitiveAuxNet(
        network,
        **goal,
        temperature=1.0,
        augmentation=RandomFlipShift(max_shift=configuration.image_size // 8),
        max_epochs=configuration.epochs,
        batch_size=configuration.batch_size,
        learning_rate=configuration.learning_rate,
        schedule="one_cycle",
        precision=configuration.precision,
        device=device,
        random_state=configuration.seed,
        verbose=verbose,
    )


def run(
    configuration: AlexNetConfiguration, data: Images, device: str, *, verbose: bool = False
) -> Result:
    """Train a network, and test its decisions."""
    sizes = configuration.train_size, configuration.test_size
    train, test = draw_rows(data, *sizes, configuration.seed)
    cost_matrix = tree_distance_cost_matrix(data.paths)
    estimator = make_estimator(configuration, cost_matrix, device=device, verbose=verbose)
    pixels = partial(data.resized, size=configuration.image_size)
    start = time.perf_counter()
    estimator.fit(pixels(train), data.target[train])
    seconds = time.perf_counter() - start
    batches = [test[rows] for rows in gen_batches(len(test), 1000)]
    estimates = np.concatenate([estimator.predict_cost(pixels(rows)) for rows in batches])
    return {
        "n_classes": len(data.paths),
        "n_train": len(train),
        "n_test": len(test),
        "train_loss": [round(epoch["train_loss_output"], 6) for epoch in estimator.history_],
        "seconds": round(seconds, 2),
        "results": [
            {"method": method, **judge(data.target[test], y_pred, cost_matrix)}
            for method, y_pred in decide(configuration, estimates, cost_matrix).items()
        ],
    }


def decide(
    configuration: AlexNetConfiguration, estimates: NDArray, cost_matrix: NDArray
) -> dict[str, NDArray[np.int64]]:
    """Predictions of each method that a network serves, from the costs that it estimates."""
    if configuration.alpha is not None:
        return {"AuxAlexNet": estimates.argmin(axis=1)}
    probability = 1 - estimates  # to the cost-blind network, every mistake costs 1
    return {
        "blind": probability.argmax(axis=1),
        "Bayes": (probability @ cost_matrix).argmin(axis=1),
    }


def judge(y_true: NDArray, y_pred: NDArray, cost_matrix: NDArray) -> dict[str, float]:
    costs = {"cost_matrix": cost_matrix, "classes": np.arange(len(cost_matrix))}
    return {
        "test_cost": mean_cost(y_true, y_pred, **costs),
        "savings": savings_score(y_true, y_pred, **costs),
        "accuracy": accuracy_score(y_true, y_pred),
    }
