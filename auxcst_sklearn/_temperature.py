"""How sure of itself a network may be, learnt from rows that it has not seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ._batches import Rows, join_targets

if TYPE_CHECKING:
    from ._net import CostNet

HOTTEST = 9.0
N_TRIED = 24

# So many rows of the mean loss, and of the mean square of the costs, speak for a temperature of 1.
PRIOR_ROWS = 10

# A training set of fewer rows says nothing against it.
FEWEST_ROWS = 10


@torch.no_grad()
def learn_temperature(net: CostNet, rows: Rows) -> float:
    """Temperature between those of the least loss and of the least errors in money, at least 1.

    Both are of held-out rows. The loss hears all rows alike, but warms up classes whose confusion
    is dear as much as others; errors of the expected costs hang on the few rows that cost most.
    Never below 1: some rare and dear mistake that the rows lack would seem impossible.
    """
    outputs, targets = zip(*((net.module_(x), target) for x, target in net.get_iterator(rows)))
    output, target = torch.cat(outputs).float(), join_targets(targets)
    loss = net.criterion_.loss
    cost_matrix = output.new_tensor(net.statistics.class_mean)
    paid = cost_matrix[target.label]
    weight = torch.ones_like(paid[:, 0]) if target.weight is None else target.weight
    unit = (weight @ _squares(paid)).clamp(min=torch.finfo(paid.dtype).tiny)

    # Steps grow with the heat: next to 1, small ones lift what would be impossible.
    heats = np.linspace(0, np.log(HOTTEST) ** 0.5, N_TRIED) ** 2
    risks = []
    for temperature in np.exp(heats).tolist():
        softened = loss.soften(output, temperature)
        expected = loss.probabilities(softened) @ cost_matrix
        error = weight @ _squares(expected - paid) / unit
        risks.append([float(loss.mean(softened, *target)), float(error)])
    prior = PRIOR_ROWS / len(output) * heats**2
    best = (np.array(risks) + prior[:, np.newaxis]).argmin(axis=0)
    return float(np.exp(heats[best].mean()))


def _squares(difference: Tensor) -> Tensor:
    """Sum of squares of each row, up to a common amount, which changes no decision."""
    return (difference - difference.mean(dim=-1, keepdim=True)).square().sum(dim=-1)
