"""A training: a net, its training rows, and its held-out rows; or several as one stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet

from ..losses._layer_wise import StackedLayerWiseLoss
from ..modules._stacked import slices, stack, unstack
from .callbacks import EarlyStopping
from .loop import Plan, TrainingLoop
from .net import CostNet
from .rows import RowSets
from .stack_net import StackNet


@dataclass
class Training:
    """A net (one network or a stack), its training rows, and its held-out rows.

    Held-out rows are used for early stopping if the plan has a patience, and for the temperature of
    the net. `fold_seed` is the one that drew them, `attributes` are those of pretraining.
    """

    net: CostNet
    rows: RowSets
    held_out: RowSets | None = None
    fold_seed: int | None = None
    attributes: dict[str, Any] = field(default_factory=dict)

    def run(self, plan: Plan) -> None:
        """Train the net."""
        with self.net.thread_limit():
            self.net.fit_rows(self.rows, self.held_out, plan)

    def with_rows_of(self, other: Training) -> Training:
        """The same net on the rows of another training, so that only one copy of them is kept."""
        return Training(self.net, other.rows, other.held_out)


def train_together(
    trainings: Sequence[Training], names: Sequence[str], n_seeds: int, plan: Plan
) -> None:
    """Train nets of one architecture as one stack; those of one seed are `n_seeds` apart."""
    net = JointNet([training.net for training in trainings], names, n_seeds)
    several = trainings[:n_seeds]
    rows = [rows for one in several for rows in one.rows.sets]
    held_out = [rows for one in several if one.held_out for rows in one.held_out.sets]
    Training(net, RowSets(rows), RowSets(held_out) if held_out else None).run(plan)


class JointNet(StackNet):
    """Several nets of one architecture, trained as one stack: each as if trained alone.

    Nets with the same set of rows are `n_seeds` apart. Training sets their weights and histories;
    `names` identify them in errors.
    """

    def __init__(self, nets: Sequence[CostNet], names: Sequence[str], n_seeds: int) -> None:
        first = nets[0]
        module: Any = stack([net.module_ for net in nets])
        self.nets, self.names = list(nets), list(names)
        self._sizes = [net.n_networks for net in nets]
        self.heads = [[module.layers.index(name) for name in net.module_.layers] for net in nets]
        head_weights = torch.zeros(len(module.layers), module.n_networks, dtype=torch.float32)
        for net, heads, part in zip(nets, self.heads, slices(self._sizes)):
            weights = net.criterion_.head_weights.cpu().reshape(len(heads), -1)
            head_weights[heads, part] = weights.expand(-1, net.n_networks)
        objective, n_row_sets = first.criterion_, n_seeds * first.n_networks
        shared = ("lr", "batch_size", "device", "verbose")
        super().__init__(
            module,
            StackedLayerWiseLoss(
                objective.loss, objective.aux_loss, head_weights, n_row_sets=n_row_sets
            ),
            scale=first.scale,
            statistics=first.statistics,
            train_split=None,
            **{
                name: value
                for name, value in first.get_params(deep=False).items()
                if name in shared or name.startswith("optimizer")
            },
        )
        self.initialize()
        of_seeds = self.nets[:n_seeds]
        self._set_generators(
            [*chain.from_iterable(net.generators for net in of_seeds)],
            [*chain.from_iterable(net.dropout_generators for net in of_seeds)],
        )

    @property
    def model_sizes(self) -> list[int]:
        """Numbers of networks of each net, which stop together."""
        return self._sizes

    @property
    def recorded_nets(self) -> list[TrainingLoop]:
        """The stack and the nets of its models."""
        return [self, *self.nets]

    def fit_rows(self, rows: RowSets, held_out: RowSets | None, plan: Plan) -> None:
        """Train all networks; see `CostNet.fit_rows`."""
        super().fit_rows(rows, held_out, plan)
        for net in self.nets:
            for record, of_stack in zip(net.history, self.history):
                record["dur"] = of_stack["dur"]

    def finish(self, rows: RowSets) -> None:
        """Copy the weights of the stack to its nets, and check each."""
        unstack(self.module_, [net.module_ for net in self.nets])
        for i, net in enumerate(self.nets):
            net.module_.eval()
            with named_errors(self.names[i]):
                net.finish(RowSets([rows.sets[sum(self._sizes[:i]) % self.n_row_sets]]))

    def on_epoch_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Begin an epoch in the history of every net that has not stopped."""
        super().on_epoch_begin(net, **kwargs)
        stops = [c for _, c in self.callbacks_ if isinstance(c, EarlyStopping)]
        running = stops[0].running if stops else np.ones(len(self.nets), dtype=bool)
        self._running = np.flatnonzero(running)
        for i in self._running:
            self.nets[i].on_epoch_begin(net, **kwargs)

    def record(self, prefix: str, means: np.ndarray) -> None:
        """Record the losses of the heads of each net, and the values of its held-out rows."""
        n_layers = len(self.module_.layers)
        parts = slices(self._sizes)
        stop_values = getattr(self, "stop_values", np.full(self.n_networks, np.inf)).copy()
        for i in self._running:
            rows = [*self.heads[i], *range(n_layers, len(means))]
            with named_errors(self.names[i]):
                self.nets[i].record(prefix, means[rows][:, parts[i]])
            if prefix == "valid":
                stop_values[parts[i]] = self.nets[i].stop_values
        self.stop_values = stop_values


@contextmanager
def named_errors(name: str) -> Iterator[None]:
    """Name the network whose fit failed."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"With {name}: {error}") from error
