"""Cost neurons on a hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn


class CostHead(nn.Linear):
    """K cost neurons, fully connected to the output of a hidden layer.

    Parameters
    ----------
    shape : sequence of int
        Shape of one sample's output: (n_neurons,), or (n_channels, height, width) for feature
        maps.
    n_classes : int
        Number K of costs.
    head_input : {"pool", "flatten"}, default="pool"
        Whether the input is the mean of each map, or every value of it.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import CostHead
    >>> maps = torch.zeros(5, 8, 4, 4)
    >>> for head_input in ("pool", "flatten"):
    ...     head = CostHead(maps.shape[1:], 3, head_input)
    ...     print(head.in_features, tuple(head(maps).shape))
    8 (5, 3)
    128 (5, 3)
    """

    def __init__(
        self,
        shape: Sequence[int],
        n_classes: int,
        head_input: Literal["pool", "flatten"] = "pool",
    ) -> None:
        pool = head_input == "pool"
        super().__init__(shape[0] if pool else prod(shape), n_classes)
        self.pool = pool

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the head, (n_samples, n_classes), in the precision of its weights."""
        if self.pool and x.dim() > 2:
            x = x.flatten(2).mean(dim=2, dtype=self.weight.dtype)
        x = x.flatten(1).to(self.weight.dtype)
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x)
