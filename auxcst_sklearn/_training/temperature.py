"""The temperature of the class probabilities, learnt from held-out rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from ..losses import Target
from .batches import join_targets
from .net import CostNet
from .rows import RowSets

HOTTEST = 9.0
N_TRIED = 24

# Prior for temperature 1, equivalent to this many rows of mean loss and of mean squared cost.
PRIOR_ROWS = 10


@torch.no_grad()
def learn_temperature(net: CostNet, rows: RowSets) -> float:
    """Geometric mean of the temperatures of least loss and least error of the costs, at least 1.

    Both are computed on held-out rows. The loss weights all rows equally, but ignores which classes
    are expensive to confuse; errors of the expected costs depend on the few rows with the highest
    costs. The result is never below 1: otherwise rare, expensive mistakes that do not occur in the
    rows would seem impossible.
    """
    batches = net.get_iterator(rows)
    outputs, targets = zip(*((net.module_(x).flatten(0, -2), target) for x, target in batches))
    output, target = torch.cat(outputs).float(), join_targets(targets)
    if target.weight is not None:  # rows that pad the smaller folds have none
        counts = target.weight > 0
        output = output[counts]
        target = Target(*(None if field is None else field[counts] for field in target))
    loss = net.criterion_.loss
    cost_matrix = output.new_tensor(net.statistics.class_mean)
    paid = cost_matrix[target.label]
    weight = torch.ones_like(paid[:, 0]) if target.weight is None else target.weight
    unit = (weight @ _squares(paid)).clamp(min=torch.finfo(paid.dtype).tiny)

    # Steps grow with the temperature: near 1, small steps already raise tiny probabilities.
    heats = np.linspace(0, np.log(HOTTEST) ** 0.5, N_TRIED) ** 2
    risks = []
    for temperature in np.exp(heats).tolist():
        tempered = loss.with_temperature(output, temperature)
        expected = loss.probabilities(tempered) @ cost_matrix
        error = weight @ _squares(expected - paid) / unit
        risks.append([float(loss.mean(tempered, target)), float(error)])
    n_copies = len(rows.sets) / len(set(map(id, rows.sets)))  # of rows shared by networks
    prior = PRIOR_ROWS * n_copies / len(output) * heats**2
    best = (np.array(risks) + prior[:, np.newaxis]).argmin(axis=0)
    return float(np.exp(heats[best].mean()))


def _squares(difference: Tensor) -> Tensor:
    """Sum of squares of each row, ignoring a common amount, which changes no decision."""
    return (difference - difference.mean(dim=-1, keepdim=True)).square().sum(dim=-1)
