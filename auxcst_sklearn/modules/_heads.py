"""Cost heads: what a head reads of a hidden layer, and its cost neurons.

A new way to read a layer is a `HeadInput` with a name in `HEAD_INPUTS`; the estimators, their
parameters and the wrapped modules find it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.parameter import is_lazy

from ._named_rows import MASK


class HeadInput(nn.Module):
    """What a head reads: from the output of a hidden layer, features (n_samples, n_features).

    The output of a sample has a `shape`, and `axis` is the axis of its channels in a batch. Inputs
    that read all values take means of windows of `window` positions. Subclasses define `forward`,
    a function of the output and of the inputs of the module, perhaps by name, whose result may have
    any shape.
    """

    n_features: int

    def __init__(self, shape: Sequence[int], axis: int, window: int = 1) -> None:
        super().__init__()
        self.axis, self.window = axis % (len(shape) + 1), window
        self.n_features = shape[self.axis - 1]


class MeanInput(HeadInput):
    """The mean of each channel, over the positions that are not padding."""

    def forward(self, x: Tensor, inputs: Any) -> Tensor:
        """Means, where the attention mask of inputs by name masks the first axis of its length."""
        if x.dim() == 2:
            return x
        mask = inputs.get(MASK) if isinstance(inputs, dict) else None
        if self.axis == 1 and mask is None and x.dim() <= 4:
            return window_means(x, max(x.shape[2:]))
        x = x.movedim(self.axis, -1)  # (n_samples, ..., n_features)
        n_steps = None if mask is None else mask.shape[1]
        at = next((i for i in range(1, x.dim() - 1) if x.shape[i] == n_steps), None)
        if mask is None or at is None:
            return x.flatten(1, -2).mean(dim=1)
        steps = x.movedim(at, 1)
        steps = steps if x.dim() == 3 else steps.flatten(2, -2).mean(dim=2)
        kept = (mask != 0).unsqueeze(-1)
        share = kept / kept.sum(dim=1, keepdim=True).clamp(min=1)
        # Attention may return NaN for padding.
        return (steps.masked_fill(~kept, 0) * share.to(x.dtype)).sum(dim=1)


class FlattenInput(HeadInput):
    """Every value, or the means of small windows of feature maps."""

    def __init__(self, shape: Sequence[int], axis: int, window: int = 1) -> None:
        super().__init__(shape, axis, window)
        self.n_features = n_window_means(shape, window)

    def forward(self, x: Tensor, inputs: Any) -> Tensor:
        """The values."""
        return x if self.window == 1 else window_means(x, self.window)


class FunctionInput(HeadInput):
    """What a function of the user returns, of the output and of the inputs of the module.

    If it is a module, each head has a copy, which is trained with it.
    """

    def __init__(
        self,
        function: Callable[[Tensor, Any], Tensor],
        shape: Sequence[int],
        axis: int,
        n_features: int | None = None,
    ) -> None:
        super().__init__(shape, axis)
        if n_features is not None:
            self.n_features = n_features
        self.function: Any = function
        if isinstance(function, nn.Module):
            if any(map(is_lazy, function.parameters())):
                raise ValueError(
                    "head_input contains lazy layers; expected layers with sizes, of which each "
                    "head trains a copy. Write nn.Linear(n_inputs, ...) for nn.LazyLinear(...)."
                )
            self.function = deepcopy(function).float()

    def forward(self, x: Tensor, inputs: Any) -> Tensor:
        """The features."""
        features: Tensor = self.function(x, inputs)
        return features


HEAD_INPUTS: dict[str, type[HeadInput]] = {"mean": MeanInput, "flatten": FlattenInput}


def n_window_means(shape: Sequence[int], window: int) -> int:
    """Number of the means of windows of feature maps; smaller windows at the far edges count."""
    n_channels, *sides = shape
    return n_channels * prod(-(-side // window) for side in sides)


def window_means(x: Tensor, window: int) -> Tensor:
    """Means of the windows of feature maps (n_samples, n_channels, ...)."""
    sides = [min(window, side) for side in x.shape[2:]]
    pool: Any = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[len(sides) - 1]
    pooled: Tensor = pool(x, sides, ceil_mode=True, count_include_pad=False)
    return pooled


# ------------------------------------------------------------------------------- cost neurons


class Head(nn.Module):
    """Cost neurons on a hidden layer: outputs are linear in what they read.

    Their bias starts where the loss says, and another unit of costs rescales them.
    """

    weight: Any  # parameters, of one network or of several along the first dimension
    bias: Any

    def start_at(self, bias: Tensor) -> None:
        """Set the bias, the same for all networks."""
        self.bias.copy_(bias.view(self.bias.shape[1:] or self.bias.shape))

    def rescale(self, factor: float, shift: float) -> None:
        """Change the outputs r to ``factor * r + shift``."""
        self.weight.mul_(factor)
        self.bias.mul_(factor).add_(shift)


class CostHead(Head, nn.Linear):
    """K cost neurons, fully connected to the output of a hidden layer.

    Parameters
    ----------
    shape : sequence of int
        Shape of one sample's output: (n_neurons,), (n_channels, height, width) for feature maps, or
        with ``axis=-1`` (n_steps, n_features) for sequences.
    n_classes : int
        Number K of costs.
    head_input : {"mean", "flatten"} or callable, default="mean"
        Whether the input is the mean of each channel or every value; or a function of the output
        and of the inputs of the module that returns features (n_samples, n_features). The attention
        mask of inputs by name excludes padding from the mean, along the first axis of its length.
    gradient : float, default=1.0
        Factor of the gradient that the head sends into the hidden layer; 0 for none.
    axis : int, default=1
        Axis of the channels or features in a batch of outputs.
    in_features : int, default=None
        Number of features that a callable `head_input` returns.
    window : int, default=1
        Side of the windows of feature maps whose means replace their values with "flatten", so that
        a head on large maps has fewer weights.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import CostHead
    >>> maps = torch.zeros(5, 8, 4, 4)
    >>> for head_input in ("mean", "flatten"):
    ...     head = CostHead(maps.shape[1:], 3, head_input)
    ...     print(head.in_features, tuple(head(maps).shape))
    8 (5, 3)
    128 (5, 3)
    >>> CostHead(maps.shape[1:], 3, "flatten", window=2).in_features
    32
    """

    def __init__(
        self,
        shape: Sequence[int],
        n_classes: int,
        head_input: str | Callable[[Tensor, Any], Tensor] = "mean",
        gradient: float = 1.0,
        *,
        axis: int = 1,
        in_features: int | None = None,
        window: int = 1,
    ) -> None:
        if callable(head_input):
            reads: HeadInput = FunctionInput(head_input, shape, axis, in_features)
        else:
            reads = HEAD_INPUTS[head_input](shape, axis, window)
        super().__init__(reads.n_features, n_classes)
        self.reads, self.gradient = reads, gradient

    def forward(self, x: Tensor, inputs: Any = None) -> Tensor:
        """Outputs of the head, (n_samples, n_classes), in the precision of its weights.

        `inputs` are the inputs of the module, a tensor or tensors by name.
        """
        if self.gradient == 0:
            x = x.detach()
        elif self.gradient != 1 and x.requires_grad:
            # The value is x, but only a share of the gradient reaches the layer, because the
            # detached term has none.
            x = x.detach().lerp(x, self.gradient)
        x = self.reads(x, inputs).flatten(1).to(self.weight.dtype)
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x)
