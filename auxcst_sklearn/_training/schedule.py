"""The learning rate over a training."""

from __future__ import annotations

from collections.abc import Iterator
from math import cos, pi

from torch.optim import Optimizer

WARM_UP = 0.1
FIRST = 1 / 25
LAST = FIRST / 1e4


def one_cycle(n_steps: int) -> Iterator[float]:
    """Yield the rate of every step as a fraction of the peak: up for a tenth, then down.

    These are the rates of ``torch.optim.lr_scheduler.OneCycleLR``, whose bookkeeping takes as long
    as a small layer.
    """
    if n_steps == 1:
        yield 1.0
        return
    peak, end = WARM_UP * n_steps - 1, n_steps - 1
    for step in range(n_steps):
        if step <= peak:
            yield _between(FIRST, 1.0, step / peak if peak > 0 else 1.0)
        else:
            yield _between(1.0, LAST, (step - peak) / (end - peak))


def set_rate(optimizer: Optimizer, share: float) -> None:
    """Set the rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] * share


def _between(start: float, end: float, share: float) -> float:
    return end + (start - end) / 2 * (1 + cos(pi * share))
