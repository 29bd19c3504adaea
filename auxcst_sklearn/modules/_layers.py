"""Layers that networks are built of."""

from __future__ import annotations

import torch
from torch import Tensor, nn

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


class SeededDropout(nn.Module):
    """Dropout that draws from a generator of its own.

    torch's dropout draws from the global generator, so that two fits in two threads would share
    their random numbers.

    Parameters
    ----------
    p : float
        Probability of dropping an input.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training or self.p == 0:
            return x
        keep = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * keep.div_(1 - self.p)

    def __getstate__(self) -> dict:
        return {**super().__getstate__(), "generator": None}

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"
