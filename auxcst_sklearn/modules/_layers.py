"""Layers that networks are built of."""

from __future__ import annotations

from typing import Any

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


class SeededModule(nn.Module):
    """Base of modules that draw random numbers from a generator of their own.

    An estimator sets `generator`, on the device of the module, before it trains; a pickle leaves
    it behind.
    """

    generator: torch.Generator | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "generator": None}


class SeededDropout(SeededModule):
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

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training or self.p == 0:
            return x
        keep = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * keep.div_(1 - self.p)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"
