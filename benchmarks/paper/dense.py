"""The fully connected networks of the paper: what determines a run, and how it is run.

The seed draws the training examples, which classes are thinned out, the costs and the initial
weights. All methods meet the same examples and costs, so their results are paired by seed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.metrics import accuracy_score

from auxcst_sklearn import PAPER, CostSensitiveAuxMLP, CSAEPretrainedMLP
from auxcst_sklearn.metrics import mean_cost, savings_score
from auxcst_sklearn.modules._layers import BatchedLinear
from benchmarks.common.engine import Result
from benchmarks.paper.draws import Dataset, Draw, draw
from benchmarks.paper.related import RELATED
from benchmarks.paper.runs import Configuration


@dataclass(frozen=True)
class DenseConfiguration(Configuration):
    """All that determines the result of one run.

    `method` is "aux" (CostSensitiveAuxMLP), "csae" (CSAEPretrainedMLP), "blind" (the former
    without costs) or a name in `RELATED`. `alpha` is None where there are no auxiliary heads, and
    the pretraining has its rate in CSAEPretrainedMLP alone. `start` names the initial weights of
    the hidden layers, None for those of an ``nn.Linear``. `train_size` counts examples before
    classes are thinned out, None for all. A `tuning` run is judged by held-out training rows. With
    `early_stopping`, `epochs` is the largest number. With `curves` the result has the losses of
    the layers.
    """

    train_size: int | None
    seed: int
    method: str
    depth: int
    width: int
    epochs: int
    loss: str
    activation: str
    optimizer: str
    learning_rate: float
    alpha: float | None = None
    pretrain_learning_rate: float | None = None
    start: str | None = None
    early_stopping: bool = False
    tuning: bool = False
    curves: bool | None = None

    @classmethod
    def of(
        cls,
        options: argparse.Namespace,
        dataset: str,
        depth: int,
        *,
        learning_rate: float,
        method: str = "aux",
        loss: str | None = None,
        alpha: float | None = None,
        pretrain_learning_rate: float | None = None,
    ) -> DenseConfiguration:
        """Complete a configuration by the options; with one hidden layer alpha means nothing."""
        return cls(
            dataset=dataset,
            train_size=options.train_size,
            seed=options.seeds[0],
            method=method,
            depth=depth,
            width=options.width,
            epochs=options.epochs,
            loss=loss or options.loss,
            activation="sigmoid" if method == "csae" else options.activation,
            optimizer=options.optimizer,
            learning_rate=learning_rate,
            alpha=alpha if depth > 1 else None,
            pretrain_learning_rate=pretrain_learning_rate,
            start=None if method == "csae" else options.start,
            early_stopping=options.early_stopping,
        )

    @property
    def score(self) -> str:
        """Name of the mean cost by which the run is judged."""
        return "held_out_cost" if self.tuning else "test_cost"


class LinearStartMLP(CostSensitiveAuxMLP):
    """Sigmoid layers start as an ``nn.Linear`` does, instead of as in the code of the authors."""

    def _make_networks(self, spec: Any, seeds: Sequence[int]) -> Any:
        module, alpha = super()._make_networks(spec, seeds)
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        for linear, *_ in module.hidden.values():
            n_outputs, n_inputs = linear.weight.shape[1:]
            linear.load_state_dict(BatchedLinear(n_inputs, n_outputs, generators).state_dict())
        return module, alpha


def make_estimator(
    configuration: DenseConfiguration, cost_matrix: NDArray, device: str
) -> BaseEstimator:
    parameters = {
        "depth": configuration.depth,
        "width": configuration.width,
        "loss": configuration.loss,
        "cost_matrix": cost_matrix if configuration.method in ("aux", "csae") else None,
        "optimizer": configuration.optimizer,
        "learning_rate": configuration.learning_rate,
        "weight_decay": PAPER["weight_decay"],
        "max_epochs": configuration.epochs,
        "early_stopping": configuration.early_stopping,
        "patience": 10,
        "device": device,
        "random_state": configuration.seed,
    }
    if configuration.method == "csae":
        rate = configuration.pretrain_learning_rate or configuration.learning_rate
        return CSAEPretrainedMLP(**parameters, pretrain_learning_rate=rate)
    parameters |= {"activation": configuration.activation, "alpha": configuration.alpha or 0.0}
    aux_mlp = CostSensitiveAuxMLP if configuration.start == "authors" else LinearStartMLP
    network = aux_mlp(**{**PAPER, **parameters})
    if configuration.method not in RELATED:
        return network
    network.set_params(classes=range(len(cost_matrix)))  # MetaCost may leave some without samples
    return RELATED[configuration.method](network, cost_matrix)


def run(configuration: DenseConfiguration, data: Dataset, device: str) -> Result:
    """Train a network and test it."""
    drawn = draw(configuration, data)
    start = time.perf_counter()
    try:
        network = make_estimator(configuration, drawn.cost_matrix, device).fit(
            drawn.X_train, drawn.y_train
        )
    except ValueError as error:
        if "became infinite or NaN" not in str(error):
            raise
        return {"diverged": True}
    seconds = time.perf_counter() - start
    result = judge(network, drawn, configuration.score)
    if configuration.curves:
        result["layer_losses"] = {
            layer: [round(epoch[f"train_loss_{layer}"], 4) for epoch in network.history_]
            for layer in [*network.hidden_layers_, "output"]
        }
    return {**result, "seconds": round(seconds, 2)}


def judge(network: BaseEstimator, drawn: Draw, score: str = "test_cost") -> Result:
    """Mean cost, savings and accuracy."""
    y_pred = network.predict(drawn.X_test)
    costs = {"cost_matrix": drawn.cost_matrix, "classes": network.classes_}
    return {
        score: mean_cost(drawn.y_test, y_pred, **costs),
        "savings": savings_score(drawn.y_test, y_pred, **costs),
        "accuracy": accuracy_score(drawn.y_test, y_pred),
    }
