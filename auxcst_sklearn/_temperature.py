"""How sure of itself a network may be, learnt from rows that it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from scipy.optimize import brute

from ._batches import Rows, join_targets

if TYPE_CHECKING:
    from ._net import CostNet

HOTTEST = 9.0
N_TRIED = 24

# So many rows of the mean squared error speak for a temperature of 1.
PRIOR_ROWS = 10

# A training set of fewer rows says nothing against it.
FEWEST_ROWS = 10


@torch.no_grad()
def learn_temperature(net: CostNet, rows: Rows) -> float:
    """Temperature of the least squared error of the estimated costs of held-out rows, at least 1.

    Their errors count up to a common amount of each row, which changes no decision. Not the
    likelihood: it spends the temperature on classes whose confusion costs nothing. And never
    below 1: some rare and dear mistake that the rows happen to lack would seem impossible.
    """
    outputs, targets = zip(*((net.module_(x), target) for x, target in net.get_iterator(rows)))
    output = torch.cat(outputs).float()
    cost, _, weight = join_targets(targets)
    weight = torch.ones_like(cost[:, 0]) if weight is None else weight
    prior = PRIOR_ROWS * (weight @ _squares(cost)) / len(cost)

    def error(log_temperature: np.ndarray) -> float:
        heat = float(log_temperature[0])
        estimate = net.estimated_cost(output, np.exp(heat))
        return float(weight @ _squares(estimate - cost) + prior * heat**2)

    heat = brute(error, [(0.0, np.log(HOTTEST))], Ns=N_TRIED, finish=None)
    return float(np.exp(heat))


def _squares(difference: torch.Tensor) -> torch.Tensor:
    """Sum of squares of each row, up to a common amount."""
    return (difference - difference.mean(dim=-1, keepdim=True)).square().sum(dim=-1)
