"""Layers from which networks are built: activations, products, and dropout."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from threading import RLock
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._heads import Head

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}

# Held while torch's global generator is seeded; a module that is made may fit another estimator.
SEEDING = RLock()

# A generator of the first weights of each network; None is torch's global one.
Generators = Sequence["torch.Generator | None"]

# Steps of the factors of inputs are this many times the steps of weights.
SCALE_SPEED = 10.0


class BatchedLinear(nn.Module):
    """Linear layers of several networks, computed at once; each starts like an ``nn.Linear``.

    The inputs `scaled` have a learnt factor, which selects among them: ``1 + 10 scale``, where
    `scale` starts at zero. With an optimizer such as Adam, which steps equally far in every
    parameter, factors change ten times as fast as weights.

    References
    ----------
    Y. Gorishniy, A. Kotelnikov, A. Babenko, "TabM: Advancing Tabular Deep Learning with
    Parameter-Efficient Ensembling", ICLR 2025: layers whose first dimension is the networks.

    D. Holzmüller, L. Grinsztajn, I. Steinwart, "Better by Default: Strong Pre-Tuned MLPs and
    Boosted Trees on Tabular Data", NeurIPS 2024, section 3: the factors.
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        generators: Generators = (None,),
        scaled: slice | None = None,
    ) -> None:
        super().__init__()
        n_networks, reach = len(generators), 1 / sqrt(in_features)
        self.weight = nn.Parameter(torch.empty(n_networks, out_features, in_features))
        self.bias = nn.Parameter(torch.empty(n_networks, out_features, 1))
        for weight, bias, generator in zip(self.weight.data, self.bias.data, generators):
            nn.init.kaiming_uniform_(weight, a=sqrt(5), generator=generator)
            nn.init.uniform_(bias, -reach, reach, generator=generator)
        self.scale: nn.Parameter | None = None
        if scaled is not None:
            self.around = (scaled.start, in_features - scaled.stop)
            self.scale = nn.Parameter(torch.zeros(n_networks, 1, scaled.stop - scaled.start))

    def start_for_sigmoid(self) -> None:
        """Make the weights uniform within 4 sqrt(6 / (inputs + outputs)), and the biases zero.

        The slope of a sigmoid is a quarter at most, so the gradient of deep networks would vanish
        with the smaller weights of an ``nn.Linear``.
        """
        _, n_outputs, n_inputs = self.weight.shape
        self.weight.data.mul_(4 * sqrt(6 * n_inputs / (n_inputs + n_outputs)))
        self.bias.data.zero_()

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (n_networks, out_features, n_samples) for inputs of this form.

        Samples come last, because batched products with few columns are slow. The factors multiply
        the weights, so that the inputs need no gradient.
        """
        weight: Tensor = self.weight
        if self.scale is not None:
            weight = weight * (1 + SCALE_SPEED * F.pad(self.scale, self.around))
        return torch.baddbmm(self.bias, weight, x)

    def of_network(self, i: int) -> nn.Linear:
        """The layer of one network, whose weights share the memory of these."""
        _, n_outputs, n_inputs = self.weight.shape
        layer = nn.Linear(n_inputs, n_outputs, device="meta")
        layer.weight = nn.Parameter(self.weight.data[i])
        layer.bias = nn.Parameter(self.bias.data[i, :, 0])
        return layer


class BatchedHead(Head, BatchedLinear):
    """Cost neurons of several networks on a hidden layer, in the precision of their weights."""

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (n_networks, n_samples, n_outputs) for inputs (n_networks, in_features, ...)."""
        x = x.to(self.weight.dtype)
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x).mT
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x).mT


class SeededModule(nn.Module):
    """Base of modules that draw random numbers from their own generator.

    An estimator sets `generator`, on the device of the module, before it trains; a pickle does not
    contain it.
    """

    generator: torch.Generator | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "generator": None}  # type: ignore[no-untyped-call]


class SeededDropout(SeededModule):
    """Dropout that draws from its own generator; `p` is rounded to a multiple of 1/256.

    torch's dropout draws from the global generator, so that two fits in two threads would share
    their random numbers. A random byte decides on each input, in a fifth of the time of torch's
    Bernoulli numbers, which took longer than the products of a small layer.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training or self.p == 0:
            return x
        if x.dim() == 3 and len(x) == 1:  # one network of an AuxMLP; drawn sample by sample
            return x * self._factors(x.mT).mT
        return x * self._factors(x)

    def _factors(self, x: Tensor) -> Tensor:
        """0, or the inverse of the fraction that is kept, for each input."""
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device)
        # Drawing 64-bit words and viewing them as bytes takes a fraction of the time of drawing
        # floats.
        words.random_(-(2**63), None, generator=self.generator)
        drop = min(max(round(256 * self.p), 1), 255)
        # 1 from `drop` on, else 0. Comparing, and converting bools, takes torch 4 times as long.
        keep = words.view(torch.uint8)[: x.numel()].clamp_(drop - 1, drop).sub_(drop - 1)
        return keep.view(x.shape).to(x.dtype).mul_(256 / (256 - drop))

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"
