"""Networks of one architecture, trained side by side on batched matrices by the same loop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..losses import Loss, Target
from ..losses._layer_wise import StackedLayerWiseLoss
from ..modules._layers import SeededModule
from ..modules._network import AuxNetwork
from ..modules._side_by_side import SideBySide
from ..modules._stacked import SharedDropout, weights_by_network
from .batches import split_target
from .distributed import processes
from .net import CostNet

FEWEST_PREDICT_ROWS = 256


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
            [torch.Generator(device=self.device).manual_seed(processes().seed(seed))],
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
        return estimate.mean(dim=0)
