"""The exponential average of the weights over a training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

# After few steps the horizon is short, so that the average forgets the initial weights.
FIRST_STEPS = 10

# Largest number of steps between two updates; an update takes as long as an optimizer step.
INTERVAL = 4


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
        self.average = [p.detach().clone() for p in parameters]
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
            get_ema_multi_avg_fn(decay)(self.average, [p.data for p in self.parameters], None)

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
            own: Tensor = parameter.data
            parameter.data, self.average[i] = self.average[i], own
