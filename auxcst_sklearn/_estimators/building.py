"""Steps 2 and 3 of a fit: rows in the form of the network, and a net with the rows it trains on."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from .._inputs import Inputs
from .._training.held_out import MIN_HOLD_OUT_ROWS, Fold, share_given, share_out
from .._training.rows import Rows, TrainingSet
from .._training.runtime import processes, seeded
from .._training.schedule import RATES, RATES_OF_LONG_EPOCHS
from ..costs._statistics import CostScale
from ..losses import LOSSES, LayerWiseLoss, Loss, ProbabilisticLoss
from ..modules._network import AuxNetwork, ClassAndCostNetwork
from .parameters import (
    LONG_EPOCHS,
    Recipe,
    check_callbacks,
    check_net_params,
    constant_rate,
    draw_seed,
    optimizer_arguments,
    resolve_batch_size,
    resolve_device,
    resolve_learning_rate,
    resolve_n_networks,
    resolve_patience,
)
from .validation import Validated

if TYPE_CHECKING:  # skorch is slow to import: on first use
    from .._training.checkpoints import Checkpoints
    from .._training.loop import Plan, Training
    from .._training.net import CostNet


class Architecture(Protocol):
    """What an estimator alone decides: its network, and what its training needs beside it."""

    # Whether the loss may add a cost network, which learns costs that differ within a class.
    _may_add_cost_network: bool

    def _make_module(
        self, inputs: Inputs, n_features: int, n_outputs: int
    ) -> tuple[AuxNetwork, list[float]]:
        """Build the network, and the weight alpha of each of its auxiliary heads."""

    def _net_arguments(self, module: AuxNetwork) -> dict[str, Any]:
        """Arguments of the skorch net."""

    def _pretrain(self, net: CostNet, rows: Rows, rng: np.random.RandomState) -> dict[str, Any]:
        """Pretrain the hidden layers, and return fitted attributes."""


@dataclass(frozen=True)
class Prepared:
    """Rows in the form of the network, with costs in units, and what they are made by."""

    data: TrainingSet
    scale: CostScale
    rows: Rows
    held_out: Rows | None
    inputs: Inputs
    n_classes: int
    n_decisions: int


# ------------------------------------------------------------------------------- prepare


def prepare(
    validated: Validated,
    recipe: Recipe,
    architecture: Architecture,
    *,
    net: CostNet | None = None,
    stream: bool = False,
) -> Prepared:
    """Learn inputs and unit of costs, and bring all rows into their form for the network.

    `net` is the one with which training continues.
    """
    data, inputs = validated.rows.with_positive_weights(), validated.inputs
    if net is None:
        inputs.learn(data.X, stream=stream)
        scale = data.scale()
        data = data.in_units(scale)
    else:
        may_learn = _may_learn_costs(data, architecture)
        _check_cost_network(net, data, len(data.costs.classes), may_learn)
        if stream:
            inputs = copy(inputs)  # unchanged if the call fails
            inputs.update(data.X, net.module_)
        data = _continue(net, data, recipe, stream)
        scale = net.scale
    device, held_out = resolve_device(recipe.device), None
    data = replace(data, X=inputs.transform(data.X))
    if (others := validated.validation) is not None:
        others = replace(others, X=inputs.transform(others.X))
        held_out = Rows(others.with_positive_weights().in_units(scale), device)
    sizes = len(data.costs.classes), len(data.costs.decisions)
    return Prepared(data, scale, Rows(data, device), held_out, inputs, *sizes)


def _continue(net: CostNet, data: TrainingSet, recipe: Recipe, stream: bool) -> TrainingSet:
    """Add the samples that a training continues with, in its units."""
    net.use_callbacks(check_callbacks(recipe.callbacks))
    net.verbose = _verbose(recipe)
    size = _batch_size(recipe, data, stream)
    if stream and recipe.batch_size == "auto":
        # A first block may be tiny, but then many small steps for later blocks take long.
        size = max(net.batch_size, size)
    net.batch_size = size
    return net.continue_on(data, stream=stream)


def _may_learn_costs(data: TrainingSet, architecture: Architecture) -> bool:
    """Whether costs differ within classes, and may have to be learnt from the features."""
    return (
        architecture._may_add_cost_network
        and not data.costs.per_class
        and data.costs.matrices is None
    )


def _check_cost_network(net: CostNet, data: TrainingSet, n_classes: int, may_learn: bool) -> None:
    """Raise an error for costs that do not fit the network of a continued training."""
    loss = net.criterion_.loss
    if loss.n_cost_outputs(n_classes):
        if data.costs.per_class:
            raise ValueError(
                "Training continues with a network that has learnt per-sample costs with a "
                "cost network, which costs of classes do not need. Refit "
                "(warm_start=False), or pass cost= as before."
            )
    elif may_learn:
        target = data.in_units(data.scale()).target()
        if loss.for_sample_costs(target).n_cost_outputs(n_classes):
            raise ValueError(
                "Training continues with a network that has learnt costs of classes, and it "
                "has no cost network for costs that differ within a class, as those in cost "
                "do. Refit (warm_start=False), or pass per-sample costs from the first "
                "call on."
            )


# --------------------------------------------------------------------------------- build


def build(
    prepared: Prepared,
    recipe: Recipe,
    architecture: Architecture,
    rng: np.random.RandomState,
    *,
    net: CostNet | None = None,
    given_folds: Sequence[Fold] | None = None,
    fold_seed: int | None = None,
    stream: bool = False,
) -> Training:
    """The net with the training rows of its networks, and their held-out rows.

    `net` is the one with which training continues, and `fold_seed` that of its folds.
    """
    from .._training.loop import Training

    rows, held_out, continued = prepared.rows, prepared.held_out, net is not None
    if net is None:
        net = _make_net(prepared, recipe, architecture, rng, stream)
    n = net.n_networks
    if held_out is not None:
        training = Training(net, [rows] * n, [held_out] * n)
    elif not recipe.early_stopping or stream or len(rows) < MIN_HOLD_OUT_ROWS:
        training = Training(net, [rows] * n)
    elif given_folds is not None:
        training = Training(net, *share_given(n, rows, prepared.data, given_folds))
    else:
        fold_seed = draw_seed(rng) if fold_seed is None else fold_seed
        training = Training(
            net,
            *share_out(n, rows, prepared.data, recipe.validation_fraction, fold_seed),
            fold_seed=fold_seed,
        )
    if not continued:
        with net.thread_limit():
            training.attributes = architecture._pretrain(net, training.rows[0], rng)
    net.seed(draw_seed(rng))
    return training


def _make_net(
    prepared: Prepared,
    recipe: Recipe,
    architecture: Architecture,
    rng: np.random.RandomState,
    stream: bool,
) -> CostNet:
    from .._training.net import CostNet

    data, inputs, device = prepared.data, prepared.inputs, resolve_device(recipe.device)
    given = recipe.loss, recipe.aux_loss or recipe.loss
    loss, aux_loss = (LOSSES[one] if isinstance(one, str) else one for one in given)
    n_outputs = _n_outputs(prepared, loss, aux_loss)
    if _may_learn_costs(data, architecture):
        loss = loss.for_sample_costs(data.target(), stream)
    n_cost_outputs = loss.n_cost_outputs(prepared.n_classes)
    counted = data.costs.statistics(data.weight)  # weights that count repetitions are rows
    start = loss.start_bias(counted), aux_loss.start_bias(counted)
    modules, alpha = [], list[float]()
    for _ in range(resolve_n_networks(recipe.n_networks, len(data.costs))):
        make = architecture._make_module
        module, alpha = _make_network(make, prepared, n_outputs, n_cost_outputs, draw_seed(rng))
        module.start_at(*start)
        modules.append(module.float())
    module = modules[0].join(modules)
    inputs.vary(module)
    known = {
        **_net_arguments(recipe, data, device, stream),
        **inputs.net_arguments(),
        **architecture._net_arguments(module),
        **check_net_params(recipe.net_params),
        "scale": prepared.scale,
        "statistics": data.statistics(),
    }
    net = CostNet(module, LayerWiseLoss(loss, aux_loss, alpha), **known)
    net.module.set_precision(recipe.precision == "bf16")
    if isinstance(recipe.temperature, Real):
        net.temperature = float(recipe.temperature)
    net.initialize()
    return net


def _make_network(
    make: Any, prepared: Prepared, n_outputs: int, n_cost_outputs: int, seed: int
) -> tuple[AuxNetwork, list[float]]:
    """One network, together with a cost network if the loss needs one, and its alphas."""
    inputs, n_features = prepared.inputs, prepared.data.X.shape[1]
    module: AuxNetwork
    with seeded(seed):
        module, alpha = make(inputs, n_features, n_outputs)
    if n_cost_outputs:
        with seeded(seed + 1):  # the same start, whatever heads the other network has
            costs, _ = make(inputs, n_features, n_cost_outputs)
        costs.heads.clear()
        module = ClassAndCostNetwork(module, costs)
    return module, alpha


def _n_outputs(prepared: Prepared, loss: Loss, aux_loss: Loss) -> int:
    """One output per class for losses with probabilities, one per decision for others."""
    n_classes, n_decisions = prepared.n_classes, prepared.n_decisions
    kinds = {isinstance(one, ProbabilisticLoss) for one in (loss, aux_loss)}
    if len(kinds) > 1 and n_decisions != n_classes:
        raise ValueError(
            f"The losses {loss!r} and {aux_loss!r} of output and heads have different outputs, "
            f"{n_classes} classes and {n_decisions} decisions; expected both "
            "with class probabilities, or both without. Leave aux_loss out."
        )
    return n_classes if True in kinds else n_decisions


def _net_arguments(recipe: Recipe, data: TrainingSet, device: str, stream: bool) -> dict[str, Any]:
    """Arguments of the skorch net that follow from the parameters."""
    n_inputs = int(np.prod(data.X.shape[1:]))
    return {
        **optimizer_arguments(recipe.optimizer, recipe.weight_decay, device),
        "lr": resolve_learning_rate(recipe.learning_rate, recipe.schedule, n_inputs),
        "max_epochs": recipe.max_epochs,
        "batch_size": _batch_size(recipe, data, stream),
        "user_callbacks": check_callbacks(recipe.callbacks),
        "device": device,
        "train_split": None,
        "verbose": _verbose(recipe),
    }


def _batch_size(recipe: Recipe, data: TrainingSet, stream: bool) -> int:
    schedule = recipe.schedule if recipe.early_stopping and not stream else "constant"
    return resolve_batch_size(recipe.batch_size, len(data.costs), schedule)


def _verbose(recipe: Recipe) -> int:
    """How much the net prints, in one process only."""
    return int(recipe.verbose) if processes().rank == 0 else 0


# ---------------------------------------------------------------------------- training


def new_random_state(random_state: Any) -> np.random.RandomState:
    """The random numbers of a fit; without a random state its own, the same in all processes."""
    rng: np.random.RandomState = check_random_state(random_state)
    if random_state is None:
        rng = np.random.RandomState(processes().from_first(draw_seed(rng)))
    return rng


def plan_of(
    recipe: Recipe, checkpoints: Checkpoints | None, n_samples: int, *, stream: bool
) -> Plan:
    """Length and schedule of a training; of a block of a stream one epoch at a constant rate."""
    from .._training.loop import Plan

    rate = constant_rate(recipe.learning_rate)
    if stream:
        schedule = "plateau" if recipe.schedule == "plateau" else "constant"
        return Plan(1, schedule, constant_rate=rate)
    patience = resolve_patience(recipe.patience, n_samples) if recipe.early_stopping else None
    settings = recipe.max_epochs, recipe.schedule, patience, recipe.ema_epochs
    rates = RATES_OF_LONG_EPOCHS if n_samples > LONG_EPOCHS[0] else RATES
    return Plan(*settings, checkpoints, rate, rates)


def calibrates(net: CostNet, recipe: Recipe) -> bool:
    """Whether a temperature is to be learnt, if there are rows for it."""
    return recipe.temperature == "auto" and isinstance(net.criterion_.loss, ProbabilisticLoss)


def check_use_of_validation(training: Training, data: Validated, recipe: Recipe) -> None:
    """Raise an error for a validation set used neither for stopping nor for a temperature."""
    if data.validation is not None and not (
        recipe.early_stopping or calibrates(training.net, recipe)
    ):
        raise ValueError(
            "X_val has no use here: early_stopping=False, and no temperature is learnt. Set "
            "early_stopping=True, or leave X_val and y_val out."
        )


def calibrate(training: Training, recipe: Recipe) -> None:
    """Set the weights of the heads, or the temperature: learnt from held-out rows, or as given."""
    net, held_out, first = training.net, training.held_out, processes().from_first
    if not recipe.combine_heads:  # any longer
        net.head_weights = None
    if held_out is not None and calibrates(net, recipe):
        several = recipe.combine_heads and len(net.module_.layers) > 1
        several = several and isinstance(net.criterion_.aux_loss, ProbabilisticLoss)
        net.head_weights = first(net.learn_head_weights(held_out)) if several else None
        votes = net.head_weights is not None
        net.temperature = 1.0 if votes else first(net.learn_temperature(held_out))
    elif isinstance(recipe.temperature, Real):  # which a warm start may have changed
        net.temperature, net.head_weights = float(recipe.temperature), None
