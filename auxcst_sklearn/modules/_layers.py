"""Layers from which networks are built."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


# Steps of the factors of inputs are this many times those of weights.
SCALE_SPEED = 10.0


class ScaledLinear(nn.Linear):
    """A linear layer that also learns a factor for some inputs, and so selects among them.

    The factor is ``1 + 10 scale``, where `scale` starts at zero. With an optimizer such as Adam,
    which steps equally far in every parameter, factors change ten times as fast as weights.

    Parameters
    ----------
    in_features, out_features : int
        Numbers of inputs and outputs.
    scaled : slice
        The inputs with a factor.

    References
    ----------
    D. Holzmüller, L. Grinsztajn, I. Steinwart, "Better by Default: Strong Pre-Tuned MLPs and
    Boosted Trees on Tabular Data", NeurIPS 2024, section 3.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules._layers import ScaledLinear
    >>> ScaledLinear(3, 2, slice(1, 3)).factor.tolist()
    [1.0, 1.0, 1.0]
    """

    def __init__(self, in_features: int, out_features: int, scaled: slice) -> None:
        super().__init__(in_features, out_features)
        self.around = (scaled.start, in_features - scaled.stop)
        self.scale = nn.Parameter(torch.zeros(scaled.stop - scaled.start))

    @property
    def factor(self) -> Tensor:
        """The factor of each input."""
        return factors(self.scale, self.around)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (..., out_features) for inputs (..., in_features)."""
        return super().forward(x * self.factor)


def factors(scale: Tensor, around: tuple[int, int]) -> Tensor:
    """Factors of all inputs, 1 for those before and after the ones with a scale."""
    return 1 + SCALE_SPEED * F.pad(scale, around)


class SeededModule(nn.Module):
    """Base of modules that draw random numbers from their own generator.

    An estimator sets `generator`, on the device of the module, before it trains; a pickle does not
    contain it.
    """

    generator: torch.Generator | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "generator": None}  # type: ignore[no-untyped-call]


def draw_dropout(shape: Sequence[int], p: float, like: Tensor, generator: Any) -> Tensor:
    """Draw the factors of dropout: 0, or the inverse of the fraction that is kept.

    A random byte decides on each input, in a fifth of the time of torch's Bernoulli numbers, which
    took longer than the products of a small layer.
    """
    n = prod(shape)
    words = torch.empty(-(-n // 8), dtype=torch.int64, device=like.device)
    words.random_(-(2**63), None, generator=generator)
    drop = min(max(round(256 * p), 1), 255)
    # 1 from `drop` on, else 0. Comparing, and converting bools, takes torch 4 times as long.
    keep = words.view(torch.uint8)[:n].clamp_(drop - 1, drop).sub_(drop - 1)
    return keep.view(*shape).to(like.dtype).mul_(256 / (256 - drop))


class SeededDropout(SeededModule):
    """Dropout that draws from its own generator.

    torch's dropout draws from the global generator, so that two fits in two threads would share
    their random numbers.

    Parameters
    ----------
    p : float
        Probability of dropping an input, rounded to a multiple of 1/256.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules._layers import SeededDropout
    >>> dropout = SeededDropout(0.5)
    >>> dropout.generator = torch.Generator().manual_seed(0)
    >>> dropout(torch.ones(4))
    tensor([0., 2., 2., 2.])
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training or self.p == 0:
            return x
        return x * draw_dropout(x.shape, self.p, x, self.generator)

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"


def share_sets(x: Tensor, n_networks: int) -> Tensor:
    """For each network the part of its set of rows; without a copy if there is one set."""
    n_sets = len(x)
    if n_sets == 1:
        return x.expand(n_networks, *[-1] * (x.dim() - 1))
    return x.expand(n_networks // n_sets, *x.shape).flatten(0, 1)
