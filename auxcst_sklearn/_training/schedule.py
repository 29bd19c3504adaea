"""What changes from step to step and after each epoch: rate, average of the weights, the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

WARM_UP = 0.1
FIRST = 1 / 25
LAST = FIRST / 1e4

# After few steps the horizon is short, so that the average forgets the initial weights.
FIRST_STEPS = 10

# Largest number of steps between two updates; an update takes as long as an optimizer step.
INTERVAL = 4

# Rates as fractions of the first one: the next one after each plateau; the last one ends training.
RATES, RATES_OF_LONG_EPOCHS = (1, 1 / 4, 1 / 16), (1, 1 / 8)
# A smaller improvement, relative to the value, is none: the fourth digit improves for ever.
LEAST = 2e-3


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


def set_rate(optimizer: Optimizer, fraction: float) -> None:
    """Set the rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] * fraction


def _between(start: float, end: float, fraction: float) -> float:
    return end + (start - end) / 2 * (1 + cos(pi * fraction))


class WeightAverage:
    """Exponential average of parameters, with a horizon in steps; see torch's `swa_utils`.

    The average after any epoch is as good as the end of a learning rate schedule, so that training
    can stop after any epoch. It replaces the parameters between epochs. With an `interval` of at
    most the steps of an epoch, it is updated in each.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], horizon: float, interval: int = INTERVAL
    ) -> None:
        self.parameters = parameters
        self.average = [*map(torch.clone, map(torch.detach, parameters))]
        self.horizon, self.interval = horizon, interval
        self.step = 0
        self.in_place = False

    @torch.no_grad()
    def update(self) -> None:
        """Update the average after a step."""
        self.step += 1
        if self.step % self.interval == 0:
            decay = min(
                1 - self.interval / max(self.horizon, self.interval),
                self.step / (self.step + FIRST_STEPS * self.interval),
            )
            get_ema_multi_avg_fn(decay)(self.average, [*map(torch.detach, self.parameters)], None)

    def take_up(self, weights: Sequence[Tensor], step: int) -> None:
        """Continue from the trained weights, when the parameters hold the average."""
        self.average, self.step, self.in_place = list(weights), step, True

    def put_in_place(self) -> None:
        """Set the parameters to the average."""
        if not self.in_place:
            self._swap()

    def set_aside(self) -> None:
        """Set the parameters to the trained weights."""
        if self.in_place:
            self._swap()

    def _swap(self) -> None:
        self.in_place = not self.in_place
        for i, parameter in enumerate(self.parameters):
            parameter.data, self.average[i] = self.average[i], parameter.data


class EarlyStopping:
    """Keep the weights of each network at its least held-out value.

    Training ends when the value of none of them has decreased for `patience` epochs. skorch's
    callback of the same name does this for one network.
    """

    counts: tuple[str, ...] = ("value", "misses")  # what a checkpoint holds beside the weights

    def __init__(self, net: Any, patience: int) -> None:
        self.net, self.patience = net, patience
        self.best = deepcopy(net.module_.weights())
        self.value = np.full(len(self.best), np.inf)
        self.misses = np.zeros(len(self.best), dtype=int)

    @property
    def running(self) -> bool:
        """Whether better weights may still be found."""
        return bool(self.misses.min() < self.patience)

    @torch.no_grad()
    def update(self, values: np.ndarray) -> None:
        """Take the held-out values of the networks after an epoch."""
        better = values < self.value
        self.value[better] = values[better]
        self.misses = np.where(better, 0, self.misses + 1)
        for i, weights in enumerate(self.net.module_.weights()):
            if better[i]:
                _copy(weights, self.best[i])

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the weights of every network at its best epoch, if one was evaluated."""
        for i, (best, weights) in enumerate(zip(self.best, self.net.module_.weights())):
            if np.isfinite(self.value[i]):
                _copy(best, weights)


class Plateaus(EarlyStopping):
    """Lower the rate on each plateau, and stop on the last one.

    On a plateau the mean held-out value of the networks has not decreased by `LEAST` of itself for
    `patience` epochs. torch's `ReduceLROnPlateau` does this without an end.
    """

    counts = (*EarlyStopping.counts, "least", "waited", "lowered")

    def __init__(self, net: Any, patience: int, rates: Sequence[float] = RATES) -> None:
        super().__init__(net, patience)
        self.rates = rates
        self.least, self.waited, self.lowered = np.inf, 0, 0

    @property
    def running(self) -> bool:
        """Whether the last plateau has not been reached."""
        return self.lowered < len(self.rates)

    def set_rate(self) -> None:
        """Set the rate of the next epoch."""
        set_rate(self.net.optimizer_, self.rates[min(self.lowered, len(self.rates) - 1)])

    def update(self, values: np.ndarray) -> None:
        super().update(values)
        mean = float(values.mean())
        self.waited += 1
        if mean < self.least - LEAST * (abs(self.least) if np.isfinite(self.least) else 0):
            self.least, self.waited = mean, 0
        if self.waited >= self.patience:
            self.lowered, self.waited = self.lowered + 1, 0
        self.set_rate()


def _copy(source: Sequence[Tensor], to: Sequence[Tensor]) -> None:
    for value, tensor in zip(source, to):
        tensor.copy_(value)
