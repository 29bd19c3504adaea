"""A training that continues: what may differ from the one before, and how its net changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from .._training.checkpoints import digest
from .._training.net import CostNet
from .._training.plan import Plan
from .._training.processes import processes
from ..costs._problem import Problem
from ..costs._reading import Kind
from ..costs._statistics import CostStatistics
from ..losses import Loss, ProbabilisticLoss
from ..losses._sample_risk import SampleRisk, for_sample_costs
from .network_steps import NetworkSteps, Samples
from .parameters import alpha_of_layers


def continue_net(
    estimator: NetworkSteps, plan: Plan, net: CostNet, samples: Samples, statistics: CostStatistics
) -> CostNet:
    """A copy of a net, with its optimizer, for a training that continues with these samples."""
    data, _, inputs = samples
    _check_cost_network(estimator, net.criterion_.loss, data)
    net = net.copy_for_training()
    _use_callbacks(net, list(estimator.callbacks or []))
    net.verbose = int(estimator.verbose) if processes().rank == 0 else 0
    net.batch_size = plan.batch_size
    _change_rate(net, plan.learning_rate)
    _act_at_once(estimator, net)
    if plan.stream:
        inputs.set_scaling(net.module_)
    _change_unit(net, statistics, rescales=plan.stream)
    objective = net.criterion_
    # As in a new fit, weights count repetitions; in a stream they are relative to each other.
    counted = replace(statistics, weight=data.class_weight(data.weight))
    objective._bind(statistics if plan.stream else counted)
    if isinstance(objective.loss, SampleRisk):
        objective.loss = objective.loss.with_samples(data, stream=plan.stream)
    return net


def _act_at_once(estimator: NetworkSteps, net: CostNet) -> None:
    """Change the weight decay, dropout and alpha of a net to the parameters of now."""
    if hasattr(net, "optimizer__weight_decay"):  # as most optimizers have one
        _change_weight_decay(net, float(estimator.weight_decay))
    for layer in net.module_.modules():
        if hasattr(layer, "set_dropout"):
            layer.set_dropout(estimator.get_params(deep=False)["dropout"])
    objective, before = net.criterion_, net.criterion_.alpha_of_layers
    alpha = getattr(estimator, "alpha", before)
    now = alpha_of_layers(alpha, len(before), layers=f"layer, heads on {net.module_.layers[:-1]}")
    if [*map(bool, now)] != [*map(bool, before)]:
        raise ValueError(
            f"alpha={alpha!r} has heads on other layers than in the first call, {before}; expected "
            "positive weights for the same layers. To begin anew, call fit with warm_start=False."
        )
    objective._weigh(now)


def _check_cost_network(estimator: NetworkSteps, loss: Loss, data: Problem) -> None:
    """Raise an error for costs that do not fit the network of a continued training."""
    if isinstance(loss, SampleRisk):
        if data.kind == "matrix":
            raise ValueError(
                "Training continues with a network that has learnt per-sample costs with a "
                "cost network, which costs of classes do not need. Refit "
                "(warm_start=False), or pass cost= as before."
            )
        return
    may_learn = estimator._may_add_cost_network
    if may_learn and for_sample_costs(loss, data, stream=False) is not loss:
        raise ValueError(
            "Training continues with a network that has learnt costs of classes, and it "
            "has no cost network for costs that differ within a class, as those in cost "
            "do. Refit (warm_start=False), or pass per-sample costs from the first call on."
        )


# ------------------------------------------------------------------------- changes of a net


def _use_callbacks(net: CostNet, callbacks: list[Any]) -> None:
    """Use the user's callbacks, if they have changed."""
    if [*map(id, callbacks)] != [*map(id, net.callbacks or [])]:  # a loaded net has None
        net.callbacks = callbacks
        net.initialize_callbacks()


def _change_rate(net: CostNet, rate: float) -> None:
    """Continue at another rate, by the same factor for all parameters."""
    factor, net.lr = rate / net.lr, rate
    for group in net.optimizer_.param_groups if net.optimizer_ is not None else ():
        group["lr"] *= factor
        group["initial_lr"] *= factor


def _change_weight_decay(net: CostNet, value: float) -> None:
    """Continue with another weight decay, except in groups that have one of their own."""
    before, net.optimizer__weight_decay = net.optimizer__weight_decay, value
    if value == before or net.optimizer_ is None:
        return
    state = net.optimizer_.state_dict()
    net.initialize_optimizer()
    for group, now in zip(state["param_groups"], net.optimizer_.param_groups):
        group["weight_decay"] = now["weight_decay"]
    net.optimizer_.load_state_dict(state)


@torch.no_grad()
def _change_unit(net: CostNet, statistics: CostStatistics, *, rescales: bool) -> None:
    """Continue with other statistics, perhaps in another unit.

    With `rescales` the estimates in currency stay as they are; otherwise they refer to the new
    unit.
    """
    before, net.statistics = net.statistics, statistics
    # An estimate r in the old unit is r * unit + offset in currency, which is factor * r + shift in
    # the new one.
    factor = before.unit / statistics.unit
    shift = (before.offset - statistics.offset) / statistics.unit
    if not rescales or (factor, shift) == (1, 0):
        return
    objective = net.criterion_
    net.module_.rescale_heads(
        factor,
        shift,
        output=not isinstance(objective.loss, ProbabilisticLoss),
        hidden=not isinstance(objective.aux_loss, ProbabilisticLoss),
    )
    if isinstance(objective.loss, SampleRisk):
        objective.loss = objective.loss.in_unit(factor, shift)


# ---------------------------------------------------------------------- blocks of a stream


def check_block(kind: Kind, first: Kind) -> None:
    """Refuse a block of a stream whose costs are of another kind than those of the first."""
    if first != kind:
        nouns = {
            "matrix": "no cost",
            "vectors": "a cost vector for each sample",
            "matrices": "a matrix for each sample",
        }
        raise ValueError(
            f"cost: the first block had {nouns[first]}, and this one has {nouns[kind]}; "
            "expected the same for all blocks."
        )


def check_unchanged(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to train a net on that was made with other parameters of the estimator."""
    pairs = {name: (before.get(name), now.get(name)) for name in sorted({*before, *now})}
    if changed := [n for n, (a, b) in pairs.items() if a is not b and digest(a) != digest(b)]:
        raise ValueError(
            f"{', '.join(changed)} changed since the first call, which made the net; expected "
            f"{[before.get(name) for name in changed]}. Set warm_start=False, and call fit."
        )
