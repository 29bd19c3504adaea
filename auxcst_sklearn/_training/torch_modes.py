"""Modes of torch that a caller may have enabled, but that a network must not use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")


@contextmanager
def own_torch_modes() -> Iterator[None]:
    """Disable the caller's autocast, inference mode and no_grad.

    Only `precision` sets the arithmetic: losses, heads and costs would lose digits in half
    precision. A fit needs gradients.
    """
    autocasts = [kind for kind in _DEVICE_TYPES if torch.is_autocast_enabled(kind)]
    inference = torch.is_inference_mode_enabled()
    if not (autocasts or inference) and torch.is_grad_enabled():
        yield
        return
    with ExitStack() as stack:
        for kind in autocasts:
            # The cache of an inner autocast lasts as long as the outer one, with weights of earlier
            # steps.
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        if inference:
            stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield
