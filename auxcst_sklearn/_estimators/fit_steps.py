"""The steps of a fit: validate, plan, prepare, make the net, build.

Each returns a value. Only `validate` changes the estimator, on which scikit-learn's validation sets
the number and names of the features.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state

from .._checks.calls import error_context
from .._checks.labels import as_labels, shorten
from .._inputs.arrays import Preprocessor
from .._training.batches import Rows
from .._training.devices import densify
from .._training.folds import draw_folds, share_given
from .._training.loop import Training
from .._training.net import CostNet
from .._training.plan import Plan, Sizes, make_plan, resolve_device
from .._training.processes import processes
from .._training.schedule import optimizer_arguments
from .._training.torch_modes import draw_seed, seeded
from ..costs._evaluation import decisions_of
from ..costs._problem import Fold, Problem, read_problem
from ..costs._statistics import CostStatistics
from ..losses import LOSSES, LayerWiseLoss, Loss
from ..losses._sample_risk import SampleRisk, for_sample_costs
from ..modules._network import AuxNetwork, ClassAndCostNetwork
from .network_steps import NetworkSpec, NetworkSteps, Samples
from .parameters import check_net_params

# ------------------------------------------------------------------------------ validate


def validate(
    estimator: NetworkSteps,
    X: Any,
    y: Any,
    *,
    resume: bool = False,
    stream: bool = False,
    classes: Any = None,
    of_validation: Sequence[Any] = (None,) * 4,
    cost: Any = None,
    **of_samples: Any,
) -> Samples:
    """Rows and labels as arrays, with costs in currency; with `resume`, classes must not change.

    `of_validation` are X, y, costs and weights of a validation set, `of_samples` weights and groups
    of the training set.
    """
    has_validation_set = _has_validation_set(of_validation, cost, estimator.cost_matrix)
    inputs = estimator._inputs if resume else estimator._make_inputs(X)
    decisions = estimator.decisions
    if classes is None:
        classes = estimator.classes
    if resume:
        if classes is not None and not np.array_equal(classes, estimator.classes_):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
                f"continues with, {estimator.classes_.tolist()}; expected the same, or None."
            )
        classes = estimator.classes_
        decisions = decisions_of(estimator) if decisions is None else decisions
    data = read_problem(
        X,
        y,
        partial(inputs.validate, estimator, reset=not resume),
        cost=cost,
        cost_matrix=estimator.cost_matrix,
        classes=classes,
        decisions=decisions,
        owner=type(estimator).__name__,
        must_name_classes=stream and not resume,
        **of_samples,
    )
    if resume and not np.array_equal(data.decisions, estimator.decisions_):
        raise ValueError(
            f"The costs have the columns {shorten(data.decisions)}, but training continues "
            f"with the decisions {shorten(estimator.decisions_)}; expected the same, in this order."
        )
    validation = None
    if has_validation_set:
        validation = _validation_set(estimator, inputs, data, of_validation)
    return Samples(data, validation, inputs)


def _has_validation_set(given: Sequence[Any], cost: Any, cost_matrix: Any) -> bool:
    """Whether `fit` received a validation set. A part of one is an error."""
    X, y, cost_val, weight = given
    missing = [name for name, value in (("X_val", X), ("y_val", y)) if value is None]
    if len(missing) == 2 and cost_val is None and weight is None:
        return False
    # Beside a function of X, cost_val is a second source, which is another error.
    if not callable(cost_matrix) and (cost is None) != (cost_val is None):
        missing.append("cost_val" if cost_val is None else "cost")
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} must be passed too: a validation set has X_val and "
            "y_val, and cost_val exactly where cost is passed."
        )
    return True


def _validation_set(
    estimator: NetworkSteps, inputs: Preprocessor, data: Problem, given: Sequence[Any]
) -> Problem:
    X, y, cost, weight = given

    def read(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
        rows, labels = inputs.validate(estimator, X, y, reset=False)
        return rows, as_labels(labels, "y")  # also numbers as objects

    with error_context("In the validation set (X_val, y_val, cost_val)"):
        validation = read_problem(
            X,
            y,
            read,
            cost=cost,
            cost_matrix=estimator.cost_matrix,
            sample_weight=weight,
            classes=data.classes,
            decisions=data.decisions,
            owner=type(estimator).__name__,
            suffix="_val",
        )
    if data.is_known != validation.is_known:
        dimensions = 3 if data.is_known else 2
        raise ValueError(
            f"cost_val has {5 - dimensions} dimensions, but cost has {dimensions}; expected "
            "the same, because a matrix for each sample decides, and a cost vector does not. "
            "Pass the row of the true class, or the matrix, of each sample in both."
        )
    return validation


# ---------------------------------------------------------------------------------- plan


def plan_training(
    estimator: NetworkSteps,
    samples: Samples,
    earlier: CostNet | None = None,
    *,
    stream: bool = False,
) -> tuple[Plan, CostStatistics]:
    """The settings of a training and the statistics of its costs, before anything is computed.

    `earlier` is the net of a training that continues.
    """
    data, validation, inputs = samples
    if earlier is None:
        statistics, before = data.statistics(), None
        device = resolve_device(estimator.device)
    else:
        statistics = data.statistics_after(earlier.statistics, stream=stream)
        before, device = estimator.training_, earlier.device
    parameters, facts = estimator.get_params(deep=False), estimator._network_facts(inputs)
    unit, n_units = inputs.size_of_sample
    sizes = Sizes(
        n_samples=data.X.shape[0],
        n_inputs=int(np.prod(data.X.shape[1:])),
        is_sparse=sparse.issparse(data.X),
        has_validation_set=validation is not None,
        unit=unit,
        units_per_sample=n_units,
    )
    known = sizes, statistics, device, facts
    return make_plan(parameters, *known, before=before, stream=stream), statistics


# ------------------------------------------------------------------------------- prepare


def prepare(
    plan: Plan, samples: Samples, statistics: CostStatistics, *, is_new: bool = True
) -> Samples:
    """Rows as the network takes them, with costs in units; and the inputs that did this."""
    data, validation, inputs = samples
    inputs = copy(inputs)
    if is_new:
        inputs.learn(data.X, stream=plan.stream, scaling=plan.scaling, n_bins=plan.n_bins)
    elif plan.stream:
        inputs.update(data.X)

    def ready(rows: Problem) -> Problem:
        return replace(rows.in_units(statistics), X=inputs.transform(rows.X))

    if validation is not None:
        validation = ready(validation.with_positive_weights())
    return Samples(ready(data), validation, inputs)


# ------------------------------------------------------------------------------ the net


def make_net(
    estimator: NetworkSteps,
    plan: Plan,
    samples: Samples,
    statistics: CostStatistics,
    rng: np.random.RandomState,
) -> CostNet:
    """A new net with its losses; its networks differ in their weights."""
    data, _, inputs = samples
    counted = replace(statistics, weight=data.class_weight(data.weight))
    objective, n_outputs = _objective(estimator, data)
    objective._bind(counted)
    starts = objective._start_biases(counted)
    if estimator._may_add_cost_network:
        objective.loss = for_sample_costs(objective.loss, data, stream=plan.stream)
    spec = NetworkSpec(plan, inputs, densify(inputs.rows_to_try(data.X)), n_outputs)
    module, alpha = _networks(estimator, spec, objective.loss, rng)
    module.float().start_at(*starts)
    module.set_precision(plan.precision == "bf16")
    objective._weigh(alpha)
    arguments = _arguments_of_skorch(estimator, plan, module)
    net = CostNet(module, objective, statistics=statistics, **arguments)
    if plan.temperature is not None:
        net.temperature = plan.temperature
    net.initialize()
    return net


def _networks(
    estimator: NetworkSteps, spec: NetworkSpec, loss: Loss, rng: np.random.RandomState
) -> tuple[AuxNetwork, list[float]]:
    """The networks, each with a cost network if the loss learns costs; the weights of layers."""
    seeds = np.array([draw_seed(rng) for _ in range(spec.plan.n_networks)])
    with seeded(int(seeds[0])):
        module, alpha = estimator._make_networks(spec, seeds.tolist())
        if isinstance(loss, SampleRisk):
            like = next(iter(module.own_modules()[0]), None)
            spec = replace(spec, n_outputs=loss.n_cost_outputs, has_heads=False, like=like)
            costs, _ = estimator._make_networks(spec, (seeds + 1).tolist())
            module = ClassAndCostNetwork(module, costs)
    return module, alpha


def _arguments_of_skorch(estimator: NetworkSteps, plan: Plan, module: AuxNetwork) -> dict[str, Any]:
    """Arguments of the skorch net, by the plan, the estimator and the user's `net_params`."""
    net_params = check_net_params(estimator.net_params)
    if plan.pretrained_lr_factor != 1 and "optimizer__param_groups" in net_params:
        raise ValueError(
            "net_params contains optimizer__param_groups, which would replace the group of the "
            f"pretrained module, whose rate has the factor {plan.pretrained_lr_factor}; expected "
            "one of them. Set pretrained_lr_factor=1, and a rate in groups of your own."
        )
    of_optimizer = estimator.optimizer, estimator.weight_decay, plan.device, module
    return {
        **optimizer_arguments(*of_optimizer, plan.pretrained_lr_factor),
        "lr": plan.learning_rate,
        "max_epochs": estimator.max_epochs,
        "batch_size": plan.batch_size,
        "callbacks": list(estimator.callbacks or []),
        "device": plan.device,
        "verbose": int(estimator.verbose) if processes().rank == 0 else 0,
        "train_split": None,
        "may_grow": "iterator_valid__batch_size" not in net_params,
        **net_params,
        "iterator_valid__batch_size": plan.predict_rows,
    }


def _objective(estimator: NetworkSteps, data: Problem) -> tuple[LayerWiseLoss, int]:
    """The losses of the output and of the heads, and the number of outputs of each."""
    both = estimator.loss, getattr(estimator, "aux_loss", None) or estimator.loss
    loss, aux_loss = (LOSSES[one] if isinstance(one, str) else one for one in both)
    sizes = len(data.classes), len(data.decisions)
    n_outputs, n_of_heads = loss.n_outputs(*sizes), aux_loss.n_outputs(*sizes)
    if n_outputs != n_of_heads:
        raise ValueError(
            f"The losses {loss!r} and {aux_loss!r} of output and heads have {n_outputs} and "
            f"{n_of_heads} outputs with {sizes[0]} classes and {sizes[1]} decisions; expected the "
            "same number, as of losses that both have class probabilities, or both have none. "
            "Leave aux_loss out."
        )
    return LayerWiseLoss(loss, aux_loss, ()), n_outputs


# -------------------------------------------------------------------------- the training


def build(
    estimator: NetworkSteps,
    plan: Plan,
    net: CostNet,
    samples: Samples,
    rng: np.random.RandomState,
    folds: Sequence[Fold] | None = None,
    fold_seed: int | None = None,
) -> Training:
    """The training of a net: the training rows of its networks, and their held-out rows.

    The networks hold out the given `folds`, or folds that are drawn by `fold_seed`.
    """
    data, validation, _ = samples
    n, rows = plan.n_networks, Rows(data, net.device, net.module_.lengths(data.X))
    seen, held_out = [rows] * n, None
    if validation is not None:
        held_out = [Rows(validation, net.device)] * n
    elif plan.validates:
        if folds is not None:
            seen, held_out = share_given(n, rows, data, folds)
        else:
            fold_seed = draw_seed(rng) if fold_seed is None else fold_seed
            seen, held_out = draw_folds(n, rows, data, estimator.validation_fraction, fold_seed)
    return Training(net, plan, seen, held_out, fold_seed)


def new_random_state(random_state: Any) -> np.random.RandomState:
    """The random numbers of a fit; without a random state its own, the same in all processes."""
    rng: np.random.RandomState = check_random_state(random_state)
    if random_state is None:
        rng = np.random.RandomState(processes().from_first(draw_seed(rng)))
    return rng
