"""Cost neurons on a hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Literal

import torch
from torch import Tensor, nn


class MapMeans(torch.autograd.Function):
    """Means of feature maps, (n_samples, n_channels), with a gradient that is never written out.

    That of torch's mean is a tensor of the size of the maps, in another memory layout than that of
    convolutions: with heads on all layers, it took as long as the network itself.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Take the means in some precision."""
        ctx.shape, ctx.dtype = x.shape, x.dtype
        return x.flatten(2).mean(dim=2, dtype=dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        """Expand the gradient of a mean to its maps, without a copy."""
        each = (grad / prod(ctx.shape[2:])).to(ctx.dtype)
        return each.view(*grad.shape, *[1] * (len(ctx.shape) - 2)).expand(ctx.shape), None


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
            x = MapMeans.apply(x, self.weight.dtype)  # type: ignore[no-untyped-call]
        x = x.flatten(1).to(self.weight.dtype)
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x)
