"""Networks of one architecture, trained side by side on batched matrices by the same loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor

from ..losses import Target
from ..losses._layer_wise import StackedLayerWiseLoss
from ..modules._stacked import stack, unstack
from .batches import StackedBatches, split_target
from .callbacks import ProgressBar
from .early_stopping import EarlyStopping
from .loop import Plan
from .net import CostNet
from .rows import AnyRows


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the network with which a fit failed."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"With {name}: {error}") from error


class StackNet(CostNet):
    """A stack of M networks, each with records, held-out rows and an early stop of its own.

    Network i sees the rows of set i modulo S. The optimizers of torch treat every weight by
    itself, so that each network ends as if it had been trained alone, up to the rounding of sums.

    The members have equal arguments; training sets their weights and histories. `names` are theirs
    in errors.
    """

    def __init__(self, members: Sequence[CostNet], names: Sequence[str], n_row_sets: int) -> None:
        first = members[0]
        objective = first.criterion_
        module = stack([net.module_ for net in members], n_row_sets)
        self.heads = [[module.layers.index(name) for name in net.module_.layers] for net in members]
        head_weights = torch.zeros(len(module.layers), len(members), dtype=torch.float32)
        for i, (net, heads) in enumerate(zip(members, self.heads)):
            head_weights[heads, i] = net.criterion_.head_weights.cpu()
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
        self.members, self.names, self.n_row_sets = list(members), list(names), n_row_sets
        self.n_networks = len(members)
        self.multiplications_per_row = sum(net.multiplications_per_row for net in members)
        self.initialize()

    def weights(self) -> list[Tensor]:
        """The weights of the stack, with the networks as first dimension."""
        return [parameter.detach() for parameter in self.module_.parameters()]

    def held_out_costs(self) -> np.ndarray:
        """Mean cost of the held-out rows in the last epoch of each network."""
        return np.concatenate([net.held_out_costs() for net in self.members])

    def fit_rows(self, rows: AnyRows, held_out: AnyRows | None, plan: Plan) -> None:
        """Train all networks; see `CostNet.fit_rows`."""
        super().fit_rows(rows, held_out, plan)
        for net in self.members:
            for record, of_stack in zip(net.history, self.history):
                record["dur"] = of_stack["dur"]

    def finish(self, rows: AnyRows) -> None:
        """Copy the weights of the stack to its members, and check each."""
        unstack(self.module_, [net.module_ for net in self.members])
        for i, net in enumerate(self.members):
            net.module_.eval()
            with naming(self.names[i]):
                net.finish(rows.sets[i % self.n_row_sets])

    def get_iterator(self, dataset: AnyRows, training: bool = False) -> StackedBatches:
        """Batches of every set of rows, side by side; each set is shuffled by itself."""
        parts = zip(self.members, dataset.sets)
        return StackedBatches([net.get_iterator(rows, training) for net, rows in parts])

    def decision_cost(self, output: Tensor, target: Target) -> Tensor:
        """Means of each network's weighted costs, and of the weights, (2, n_networks)."""
        targets = split_target(target, self.n_row_sets)
        costs = [
            net.decision_cost(r, targets[i % self.n_row_sets])
            for i, (net, r) in enumerate(zip(self.members, output))
        ]
        return torch.stack(costs, dim=1)

    def on_epoch_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        """Begin an epoch in the history of every network that has not stopped."""
        super().on_epoch_begin(net, **kwargs)
        stops = [c for _, c in self.callbacks_ if isinstance(c, EarlyStopping)]
        running = stops[0].running if stops else np.ones(self.n_networks, dtype=bool)
        self._running = np.flatnonzero(running)
        for i in self._running:
            self.members[i].on_epoch_begin(net, **kwargs)

    def record(self, prefix: str, means: np.ndarray) -> None:
        """Record the losses of the heads of each network, and the cost of its held-out rows."""
        costs = [-2, -1] if prefix == "valid" else []
        for i in self._running:
            with naming(self.names[i]):
                self.members[i].record(prefix, means[[*self.heads[i], *costs], i])

    def _progress(self, epochs: int) -> list[Callback]:
        return [ProgressBar(epochs)] if self.verbose else []
