"""Piecewise linear encoding of numbers."""

from __future__ import annotations

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn


class PiecewiseLinear(nn.Module):
    """For each bin, the fraction below the input: 0, 1, or in between for inputs inside the bin.

    Parameters
    ----------
    columns : array-like of int, of shape (n_bins,)
        The input that each bin belongs to.
    low, width : array-like of shape (n_bins,)
        Lower bound and width of each bin.

    References
    ----------
    Y. Gorishniy, I. Rubachev, A. Babenko, "On Embeddings for Numerical Features in Tabular Deep
    Learning", NeurIPS 2022, section 3.2.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules._bins import PiecewiseLinear
    >>> PiecewiseLinear([0, 0], [0.0, 1.0], [1.0, 4.0])(torch.tensor([[0.5], [3.0], [9.0]]))
    tensor([[0.5000, 0.0000],
            [1.0000, 0.5000],
            [1.0000, 1.0000]])
    """

    columns: Tensor
    low: Tensor
    factor: Tensor

    def __init__(self, columns: ArrayLike, low: ArrayLike, width: ArrayLike) -> None:
        super().__init__()
        self.register_buffer("columns", torch.as_tensor(columns, dtype=torch.int64))
        self.register_buffer("low", torch.as_tensor(low, dtype=torch.float32))
        self.register_buffer("factor", 1 / torch.as_tensor(width, dtype=torch.float32))

    def set(self, low: ArrayLike, width: ArrayLike) -> None:
        """Change the bounds of the bins."""
        self.low.copy_(torch.as_tensor(low))
        self.factor.copy_(1 / torch.as_tensor(width))

    def forward(self, x: Tensor) -> Tensor:
        """Fractions (..., n_bins) for inputs (..., n_inputs)."""
        return ((x.index_select(-1, self.columns) - self.low) * self.factor).clamp(0, 1)
