"""What a network does to its inputs first."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn


class Standardize(nn.Module):
    """Centre and scale every input.

    Parameters
    ----------
    center, scale : array-like of shape (n_inputs,)
        What becomes 0, and by how much an input differs that becomes 1.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import Standardize
    >>> Standardize([10.0, 0.0], [2.0, 1.0])(torch.tensor([[14.0, 3.0]]))
    tensor([[2., 3.]])
    """

    def __init__(self, center: ArrayLike, scale: ArrayLike) -> None:
        super().__init__()
        self.register_buffer("center", torch.as_tensor(center, dtype=torch.float32))
        self.register_buffer("factor", 1 / torch.as_tensor(scale, dtype=torch.float32))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs of order one."""
        return (x - self.center) * self.factor
