"""Random numbers of any module, from its own generator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode

# Dropouts take no generator; the others would, if their callers passed one.
_DROPOUTS = {
    F.dropout: False,
    F.dropout1d: True,
    F.dropout2d: True,
    F.dropout3d: True,
    torch.dropout: False,
}
_DRAWS = {
    torch.bernoulli,
    torch.Tensor.bernoulli,
    torch.Tensor.bernoulli_,
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
}


class SeededDraws(TorchFunctionMode):
    """Makes dropout, bernoulli, normal_ and uniform_ draw from a generator while a module runs.

    Otherwise they draw from torch's global generator, and two fits in two threads share their
    random numbers. Layers and functions for dropout are covered, and the stochastic depth of
    residual networks. The dropout inside torch's attention and recurrent layers, alpha dropout and
    RReLU are not, because their functions draw outside of Python.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Compute a function, with the generator if it draws random numbers."""
        kwargs = kwargs or {}
        if function in _DROPOUTS:
            named = {"training" if name == "train" else name: v for name, v in kwargs.items()}
            return self._dropout(*args, **named, whole_maps=_DROPOUTS[function])
        own = kwargs.get("generator")
        if function in _DRAWS and own is None and args[0].device == self.generator.device:
            kwargs = {**kwargs, "generator": self.generator}
        return function(*args, **kwargs)

    def _dropout(
        self,
        input: Tensor,  # noqa: A002
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
        *,
        whole_maps: bool,
    ) -> Tensor:
        if not training or p == 0:
            return input
        shape: tuple[int, ...] = input.shape
        if whole_maps:  # (n_samples, n_maps, ...)
            shape = (*shape[:2], *[1] * (len(shape) - 2))
        keep = input.new_empty(shape).bernoulli_(1 - p, generator=self.generator)
        if p < 1:
            keep /= 1 - p
        return input.mul_(keep) if inplace else input * keep
