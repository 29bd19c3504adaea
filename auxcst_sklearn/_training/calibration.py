"""Temperature, weights of heads and costs of a network, from rows that it has not seen."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..losses import ProbabilisticLoss, Target
from .batches import Rows, rows_of_batch
from .geometric_mean import weights_if_better
from .loop import Training
from .net import CostNet
from .plan import Plan
from .processes import processes
from .temperature import HEATS, SMALLEST, best_temperature

# Fewer networks than this are calibrated by their log loss.
FEW_NETWORKS = 3


def calibrate(training: Training, plan: Plan) -> tuple[float, NDArray[np.float64] | None]:
    """Temperature and weights of the heads: learnt from held-out rows, or as given."""
    net, held_out, first = training.net, training.held_out, processes().from_first
    combines = plan.combine_heads
    if combines is None:
        combines = net.module_.head_gradient > 0
    if plan.temperature is not None:  # A warm start may have changed it.
        return plan.temperature, None
    if held_out is None or not isinstance(net.criterion_.loss, ProbabilisticLoss):
        return net.temperature, net.head_weights if combines else None
    # The sum of the weights of voting heads is a temperature, so that a second one is not learnt.
    votes = combines and len(net.module_.layers) > 1
    weights = None
    with net.thread_limit():
        if votes and net.has_logits and isinstance(net.criterion_.aux_loss, ProbabilisticLoss):
            weights = first(learn_head_weights(net, held_out))
        return (first(learn_temperature(net, held_out)) if weights is None else 1.0), weights


@torch.no_grad()
def learn_temperature(net: CostNet, rows: Sequence[Rows]) -> float:
    """The geometric mean of the temperatures of least loss and of least error of costs.

    Both are computed on held-out rows. The loss weights all rows equally, but ignores which
    classes are expensive to confuse; errors of the expected costs depend on the few rows with
    the highest costs.

    The loss includes the smoothing of the labels, which keeps rare classes possible. One or two
    networks would become too unsure by it, so that their log loss is used, and half the prior.

    With extreme costs it is at least 1: a few rows of a rare class, none of which is a surprise, do
    not show that surprises are rarer still.
    """
    few = net.n_networks < FEW_NETWORKS
    sums, unit, n = np.zeros((len(HEATS), 2)), 0.0, 0
    for x, target in net.evaluation_batches(rows):
        output = net.module_(x).flatten(0, -2).float()
        if target.weight is not None:  # rows that pad the smaller folds have none
            output, target = rows_of_batch((output, target), target.weight > 0)
        # The largest fold has no such rows, so that some are left.
        of_batch, unit_of_batch = _sums_of_risks(net, output, target, np.exp(HEATS), few)
        sums, unit, n = sums + of_batch, unit + unit_of_batch, n + len(output)
    # The second risk is divided by the error of estimates of zero, which makes it a number without
    # a unit. Both risks then weigh the same against the prior.
    risks = sums / np.array([n, max(unit, np.finfo(np.float32).tiny)])
    # With X_val all networks share their rows. These count once for the prior, though they were
    # summed for each network.
    n_copies = len(rows) / len(set(map(id, rows)))  # of rows shared by networks
    temperature = best_temperature(risks, (2 if few else 1) * n / n_copies)
    return max(temperature, 1.0) if net.statistics.is_extreme else temperature


def _sums_of_risks(
    net: CostNet, output: Tensor, target: Target, temperatures: NDArray[np.float64], log_loss: bool
) -> tuple[NDArray[np.float64], float]:
    """Sums of losses and of errors of costs (n_temperatures, 2); and of errors of no costs."""
    loss, means = net.criterion_.loss, net.statistics.class_mean
    # What a row has in common changes no decision, but would cost digits.
    cost_matrix = output.new_tensor(means - means.mean(axis=1, keepdims=True))
    cost, sums = cost_matrix[target.label], []
    weight = torch.ones_like(cost[:, 0]) if target.weight is None else target.weight
    for temperature in temperatures.tolist():
        tempered = loss.with_temperature(output, temperature)
        p = loss.probabilities(tempered)
        if log_loss:
            log_p = p.gather(1, target.label.unsqueeze(1)).clamp(min=SMALLEST).log()
            risk = -weight @ log_p.squeeze(1)
        else:
            # The mean of the loss includes weights and smoothing, which is why it is not computed
            # from p.
            risk = len(output) * loss._mean(tempered, target)
        sums.append(torch.stack([risk, weight @ _squares(p @ cost_matrix - cost)]))
    return torch.stack(sums).double().numpy(force=True), float(weight @ _squares(cost))


@torch.no_grad()
def learn_head_weights(net: CostNet, rows: Sequence[Rows]) -> NDArray[np.float64] | None:
    """Weights of all layers with least log loss on held-out rows; None if the output is alone."""
    parts, batches = [], net.evaluation_batches(rows)
    for x, target in batches:
        logs = net.log_probabilities(net.module_.forward_heads(x)).flatten(1, 2)
        weight = torch.ones(len(target.label)) if target.weight is None else target.weight
        parts.append((logs.transpose(0, 1), target.label, weight))
    log_p, label, of_row = (torch.cat(part).numpy(force=True) for part in zip(*parts))
    counts = of_row > 0  # rows that pad the smaller folds have none
    of_layers = np.swapaxes(log_p[counts], 0, 1).astype(np.float64)
    numbers = [torch.arange(len(one)) if one.index is None else one.index.cpu() for one in rows]
    number = torch.cat([of.flatten() for of in torch.stack(numbers).split(batches.sizes, 1)])
    of_row = of_row[counts].astype(np.float64)
    # Heads that train the module know other things than its output. Heads on trained weights add
    # little, so that their gain has to stand out from the noise.
    errors = 0.0 if net.module_.head_gradient else 1.0
    return weights_if_better(of_layers, label[counts], of_row, number.numpy()[counts], errors)


@torch.no_grad()
def held_out_costs(net: CostNet, held_out: Sequence[Rows]) -> tuple[float, NDArray[np.float64]]:
    """Mean costs in units of the decisions for held-out rows, and of each decision for all."""
    total, n = np.zeros(1), 0.0
    for x, target in net.evaluation_batches(held_out):
        paid = net.paid(net.forward_voted(x).flatten(0, 1), target).unsqueeze(1)
        weight = torch.ones(len(paid)) if target.weight is None else target.weight
        sums = weight.to(paid) @ torch.cat([paid, target.cost], dim=1)
        total, n = total + sums.double().numpy(force=True), n + float(weight.sum())
    return float(total[0] / n), total[1:] / n


def _squares(difference: Tensor) -> Tensor:
    """Sum of squares of each row minus its mean, because a common amount changes no decision."""
    return (difference - difference.mean(dim=-1, keepdim=True)).square().sum(dim=-1)
