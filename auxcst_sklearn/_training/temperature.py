"""The temperature of the class probabilities, learnt from rows that a network has not seen."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..losses import Target
from .batches import join_targets
from .net import CostNet
from .rows import AnyRows

HOTTEST = 9.0
N_TRIED = 24

# Prior for temperature 1, worth this many rows of the mean loss and of the mean squared cost.
PRIOR_ROWS = 10


@torch.no_grad()
def learn_temperature(net: CostNet, rows: AnyRows) -> float:
    """Temperature between those of the least loss and of the least errors in money, at least 1.

    Both are of held-out rows, and the result is their geometric mean. The loss weighs all rows
    alike, but raises the temperature of classes whose confusion is dear as much as that of others;
    errors of the expected costs depend on the few rows that cost most. It is never below 1: some
    rare and dear mistake that the rows lack would seem impossible.
    """
    batches = net.get_iterator(rows)
    outputs, targets = zip(*((net.module_(x).flatten(0, -2), target) for x, target in batches))
    output, target = torch.cat(outputs).float(), join_targets(targets)
    if target.weight is not None:  # rows that only fill up the smaller folds have none
        counts = target.weight > 0
        output = output[counts]
        target = Target(*(None if field is None else field[counts] for field in target))
    loss = net.criterion_.loss
    cost_matrix = output.new_tensor(net.statistics.class_mean)
    paid = cost_matrix[target.label]
    weight = torch.ones_like(paid[:, 0]) if target.weight is None else target.weight
    unit = (weight @ _squares(paid)).clamp(min=torch.finfo(paid.dtype).tiny)

    # Steps grow with the heat: next to 1, small ones lift what would be impossible.
    heats = np.linspace(0, np.log(HOTTEST) ** 0.5, N_TRIED) ** 2
    risks = []
    for temperature in np.exp(heats).tolist():
        tempered = loss.with_temperature(output, temperature)
        expected = loss.probabilities(tempered) @ cost_matrix
        error = weight @ _squares(expected - paid) / unit
        risks.append([float(loss.mean(tempered, target)), float(error)])
    n_copies = len(rows.sets) / len(set(map(id, rows.sets)))  # of rows that networks share
    prior = PRIOR_ROWS * n_copies / len(output) * heats**2
    best = (np.array(risks) + prior[:, np.newaxis]).argmin(axis=0)
    return float(np.exp(heats[best].mean()))


def _squares(difference: Tensor) -> Tensor:
    """Sum of squares of each row, up to a common amount, which changes no decision."""
    return (difference - difference.mean(dim=-1, keepdim=True)).square().sum(dim=-1)
