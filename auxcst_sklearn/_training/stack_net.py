"""Networks of one architecture, trained side by side on batched matrices by the same loop."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..losses import Target
from ..modules._layers import SeededModule
from ..modules._network import SideBySide
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
        n, seeds = self.n_networks, np.array([seed])
        if n > 1:
            seeds = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=n)
        self._set_generators(
            [torch.Generator().manual_seed(s) for s in seeds.tolist()],
            [torch.Generator(device=self.device).manual_seed(processes().seed(seed))],
        )

    def _set_generators(self, of_rows: list[torch.Generator], on_device: list[Any]) -> None:
        self.generators, self.dropout_generators = of_rows, on_device
        for module in self.module_.modules():
            if isinstance(module, SeededModule):
                (module.generator,) = on_device

    def weights(self) -> list[list[Tensor]]:
        """The tensors of each network."""
        weights: list[list[Tensor]] = self.module_.weights()
        return weights

    def held_out_means(self, output: Tensor, target: Target) -> Tensor:
        """The values of `CostNet.held_out_means` for each network, (n_values, n_networks)."""
        targets = split_target(target, len(output))
        return torch.stack([*map(super().held_out_means, output, targets)], dim=1)

    def mean_of_networks(self, estimate: Tensor) -> Tensor:
        """Means over the networks, of estimates (n_networks, ...)."""
        return estimate.mean(dim=0)
