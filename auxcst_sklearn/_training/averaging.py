"""The exponential average of the weights over a training."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import get_ema_multi_avg_fn

# The average of few steps is short, so that it follows the weights away from their start.
FIRST_STEPS = 10

# Steps between two updates, which take as long as a step of the optimizer.
INTERVAL = 4


class WeightAverage:
    """Exponential average of parameters, with a horizon in steps; see torch's `swa_utils`.

    The average of any epoch is as good as the end of a schedule of the learning rate, so that a
    training may stop at any of them. It takes the place of the parameters between the epochs.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], horizon: float) -> None:
        self.parameters = parameters
        self.average = [p.detach().clone() for p in parameters]
        self.horizon = horizon
        self.step = 0
        self.in_place = False

    @torch.no_grad()
    def update(self) -> None:
        """Take in the parameters after a step."""
        self.step += 1
        if self.step % INTERVAL == 0:
            decay = min(
                1 - INTERVAL / max(self.horizon, INTERVAL),
                self.step / (self.step + FIRST_STEPS * INTERVAL),
            )
            get_ema_multi_avg_fn(decay)(self.average, [p.data for p in self.parameters], None)

    def take_up(self, weights: Sequence[Tensor], step: int) -> None:
        """Go on from the weights that are trained; the parameters are the average."""
        self.average, self.step, self.in_place = list(weights), step, True

    def put_in_place(self) -> None:
        """Let the parameters be the average."""
        if not self.in_place:
            self._swap()

    def set_aside(self) -> None:
        """Let the parameters be those that are trained."""
        if self.in_place:
            self._swap()

    def _swap(self) -> None:
        self.in_place = not self.in_place
        for i, parameter in enumerate(self.parameters):
            own: Tensor = parameter.data
            parameter.data, self.average[i] = self.average[i], own
