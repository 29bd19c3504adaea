"""Networks of one architecture, trained side by side on batched matrices by the same loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from itertools import chain
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from torch import Tensor

from ..losses import Loss, Target
from ..losses._layer_wise import StackedLayerWiseLoss
from ..modules import AuxNetwork, SeededModule
from ..modules._side_by_side import SideBySide
from ..modules._stacked import SharedDropout, slices, stack, unstack, weights_by_network
from .batches import split_target
from .callbacks import EarlyStopping
from .distributed import processes
from .loop import Plan, TrainingLoop
from .net import CostNet
from .rows import RowSets

FEWEST_PREDICT_ROWS = 256


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Name the network whose fit failed."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"With {name}: {error}") from error


class StackNet(CostNet):
    """A net of M networks as one stack, each with its set of rows; estimates are their means.

    torch's optimizers update every weight independently, so that each network ends as if trained
    alone, up to the rounding of sums. Network i uses the rows of set i modulo S.
    """

    module_: Any
    is_stack = True

    @classmethod
    def of(
        cls,
        module: AuxNetwork,
        loss: Loss,
        aux_loss: Loss,
        alpha: Sequence[float],
        **arguments: Any,
    ) -> StackNet:
        """The net of a stack of networks with the same heads, each with its own rows."""
        n = module.n_networks
        weights = torch.tensor([[*alpha, 1.0]] * n, dtype=torch.float32).T.contiguous()
        objective = StackedLayerWiseLoss(loss, aux_loss, weights, n_row_sets=n)
        return cls(module, objective, **arguments)

    @property
    def n_row_sets(self) -> int:
        """Number S of sets of rows."""
        n_row_sets: int = self.criterion_.n_row_sets
        return n_row_sets

    @cached_property
    def multiplications_per_row(self) -> float:
        """Multiply-adds of a forward pass of one row by all networks."""
        if any(isinstance(part, SideBySide) for part in self.module_.modules()):
            return super().multiplications_per_row
        return float(sum(parameter.numel() for parameter in self.module_.parameters()))

    @property
    def predict_rows(self) -> int:
        """Rows of a batch without gradients; fewer for more networks."""
        return max(FEWEST_PREDICT_ROWS, super().predict_rows // self.n_networks)

    def seed(self, seed: int) -> None:
        """Seed the generators of every set of rows."""
        seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=self.n_row_sets)
        self._set_generators(
            [torch.Generator().manual_seed(s) for s in seeds.tolist()],
            [torch.Generator(device=self.device).manual_seed(processes().own_seed(seed))],
        )

    def _set_generators(self, of_rows: list[torch.Generator], on_device: list[Any]) -> None:
        self.generators, self.dropout_generators = of_rows, on_device
        for module in self.module_.modules():
            if isinstance(module, SharedDropout):
                module.generators, module.n_sets = on_device, self.n_row_sets
            elif isinstance(module, SeededModule):
                (module.generator,) = on_device

    def weights(self) -> list[list[Tensor]]:
        """The tensors of each network."""
        return weights_by_network(self.module_)

    def held_out_means(self, output: Tensor, target: Target) -> Tensor:
        """The values of `CostNet.held_out_means` for each network, (n_values, n_networks)."""
        targets, evaluate = split_target(target, self.n_row_sets), super().held_out_means
        values = [evaluate(r, targets[i % self.n_row_sets]) for i, r in enumerate(output)]
        return torch.stack(values, dim=1)

    def mean_of_networks(self, estimate: Tensor) -> Tensor:
        """Means over the networks, of estimates (n_networks, ...)."""
        # One network after the other: the rounding of torch's mean depends on a row's position.
        return reduce(torch.add, estimate.unbind()) / len(estimate)


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
            with naming(self.names[i]):
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
            with naming(self.names[i]):
                self.nets[i].record(prefix, means[rows][:, parts[i]])
            if prefix == "valid":
                stop_values[parts[i]] = self.nets[i].stop_values
        self.stop_values = stop_values
