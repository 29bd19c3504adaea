"""First layers of networks on features: scales and ranges, learnt from the training set."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn


class Standardize(nn.Module):
    """Centre and scale every input.

    Parameters
    ----------
    center, scale : array-like of shape (n_inputs,)
        The value of each input that becomes 0, and the difference that becomes 1.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import Standardize
    >>> Standardize([10.0, 0.0], [2.0, 1.0])(torch.tensor([[14.0, 3.0]]))
    tensor([[2., 3.]])
    """

    center: Tensor
    factor: Tensor

    def __init__(self, center: ArrayLike, scale: ArrayLike) -> None:
        super().__init__()
        self.register_buffer("center", torch.as_tensor(center, dtype=torch.float32))
        self.register_buffer("factor", 1 / torch.as_tensor(scale, dtype=torch.float32))

    def set(self, center: ArrayLike, scale: ArrayLike) -> None:
        """Change centre and scale."""
        self.center.copy_(torch.as_tensor(center))
        self.factor.copy_(1 / torch.as_tensor(scale))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs of order one."""
        return (x - self.center) * self.factor


class UnitRange(nn.Module):
    """Map every input from its range to [0, 1], and clip what lies outside.

    Parameters
    ----------
    low, high : array-like of shape (n_inputs,)
        The values that become 0 and 1. Where they are equal, ``low + 1`` becomes 1.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import UnitRange
    >>> UnitRange([0, 10], [2, 20])(torch.tensor([[1.0, 30.0]]))
    tensor([[0.5000, 1.0000]])
    """

    low: Tensor
    factor: Tensor

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        super().__init__()
        low, high = (torch.as_tensor(bound, dtype=torch.float64) for bound in (low, high))
        span = torch.where(high > low, high - low, 1.0)
        self.register_buffer("low", low.float())
        self.register_buffer("factor", (1 / span).float())

    def forward(self, x: Tensor) -> Tensor:
        """Inputs in [0, 1]."""
        return ((x - self.low) * self.factor).clamp(0, 1)
