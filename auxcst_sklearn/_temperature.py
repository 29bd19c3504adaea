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

# The mean loss of so many rows speaks for a temperature of 1.
PRIOR_ROWS = 10

# A training set of fewer rows says nothing against it.
FEWEST_ROWS = 10


@torch.no_grad()
def learn_temperature(net: CostNet, rows: Rows) -> float:
    """Temperature at which the network has the least loss of held-out rows, at least 1.

    The loss that it is trained by, smoothed labels included, and not the errors of the costs: a
    few rows that cost much would decide. Never below 1: some rare and dear mistake that the rows
    happen to lack would seem impossible.
    """
    outputs, targets = zip(*((net.module_(x), target) for x, target in net.get_iterator(rows)))
    output, target = torch.cat(outputs).float(), join_targets(targets)
    loss, prior = net.criterion_.loss, PRIOR_ROWS / len(output)

    def regularized_loss(root: np.ndarray) -> float:
        heat = float(root[0]) ** 2
        softened = loss.soften(output, float(np.exp(heat)))
        return float(loss.mean(softened, *target)) + prior * heat**2

    # Steps grow with the heat: next to 1, small ones lift what would be impossible.
    root = brute(regularized_loss, [(0.0, np.log(HOTTEST) ** 0.5)], Ns=N_TRIED, finish=None)
    return float(np.exp(root**2))
