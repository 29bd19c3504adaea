"""The steps of a fit as functions without side effects: validate, prepare, build."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import check_random_state

from .._checks.calls import error_context
from .._checks.data import (
    as_labels,
    check_groups,
    check_labels,
    check_row_order,
    check_weight,
    label_index,
    shorten,
)
from .._inputs.arrays import Preprocessor
from .._inputs.lazy_rows import Sample
from .._training.batches import Rows
from .._training.folds import MIN_HOLD_OUT_ROWS, Fold, draw_folds, resolve_n_networks, share_given
from .._training.runtime import draw_seed, processes, seeded
from .._training.schedule import Schedule, resolve_patience
from ..costs._account import Costs
from ..costs._evaluation import decisions_of
from ..costs._reading import read_source
from ..costs._statistics import CostStatistics
from ..losses import LayerWiseLoss, Loss
from ..modules._network import ClassAndCostNetwork
from .parameters import TrainingOptions, check_net_params

if TYPE_CHECKING:  # skorch is slow to import: on first use
    from .._training.loop import Training
    from .._training.net import CostNet

# Results of validation: training set, validation set, and their inputs.
Data = tuple[Sample, "Sample | None", Preprocessor]

# ------------------------------------------------------------------------------ validate


def validate(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    cost: Any = None,
    groups: Any = None,
    validation: Sequence[Any] | None = None,
    classes: Any = None,
    resume: bool = False,
    *,
    stream: bool = False,
) -> Data:
    """Rows and labels as arrays, with costs in currency; with `resume`, classes must not change.

    `validation` are X, y, costs and weights of a validation set.
    """
    _check_meant(X, y, cost, sample_weight, groups)
    inputs = estimator._inputs if resume else estimator._make_inputs(X)
    X, label = inputs.validate(estimator, X, y, reset=not resume)
    source = cost  # An ensemble passes its own account of the costs.
    if not isinstance(cost, Costs):
        source = read_source(cost, estimator.cost_matrix, len(label))
    decisions = estimator.decisions
    if resume:
        if classes is not None and not np.array_equal(classes, estimator.classes_):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
                f"continues with, {estimator.classes_.tolist()}; expected the same, or None."
            )
        classes = estimator.classes_
        decisions = decisions_of(estimator) if decisions is None else decisions
    elif stream and classes is None and getattr(source, "decisions", None) is None:
        raise ValueError(
            "classes must be passed at the first call to partial_fit: all labels that "
            "can ever occur, in classes= here or in the constructor."
        )
    costs = Costs.of_fit(label, source, classes, decisions, y)
    if resume and not np.array_equal(costs.decisions, estimator.decisions_):
        raise ValueError(
            f"The costs have the columns {shorten(costs.decisions)}, but training continues "
            f"with the decisions {shorten(estimator.decisions_)}; expected the same, in this order."
        )
    groups = None if groups is None else check_groups(groups, X)
    data = Sample(X, costs, check_weight(sample_weight, X), groups)
    given = None if validation is None else _validation_set(estimator, inputs, costs, *validation)
    return data, given, inputs


def _check_meant(
    X: Any, y: Any, cost: Any, sample_weight: Any, groups: Any = None, suffix: str = ""
) -> None:
    """Raise an error for missing labels, or an order of rows that is probably a mistake."""
    check_labels(y, f"y{suffix}")
    given = {"X": X, "y": y, "cost": cost, "sample_weight": sample_weight}
    check_row_order(**{f"{name}{suffix}": given[name] for name in given}, groups=groups)


def check_validation_set(X: Any, y: Any, cost: Any, weight: Any, *, has_cost: bool) -> bool:
    """Whether `fit` received a validation set; an error for a part of one."""
    missing = [name for name, value in (("X_val", X), ("y_val", y)) if value is None]
    if len(missing) == 2 and cost is None and weight is None:
        return False
    if has_cost != (cost is not None):
        missing.append("cost_val" if cost is None else "cost")
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} must be passed too: a validation set has X_val and "
            "y_val, and cost_val exactly where cost is passed."
        )
    return True


def _validation_set(
    estimator: Any, inputs: Preprocessor, training: Costs, X: Any, y: Any, cost: Any, weight: Any
) -> Sample:
    with error_context("In the validation set (X_val, y_val, cost_val)"):
        _check_meant(X, y, cost, weight, suffix="_val")
        X, y = inputs.validate(estimator, X, y, reset=False)
        label = label_index(as_labels(y, "y"), training.classes, name="y")
        source = read_source(cost, estimator.cost_matrix, len(label))
        costs = Costs.of_labels(label, training.classes, training.decisions, source)
        weight = check_weight(weight, X)
    known = training.matrices is not None
    if known != (costs.matrices is not None):
        dimensions = 3 if known else 2
        raise ValueError(
            f"cost_val has {5 - dimensions} dimensions, but cost has {dimensions}; expected "
            "the same, because a matrix for each sample decides, and a cost vector does not. "
            "Pass the row of the true class, or the matrix, of each sample in both."
        )
    return Sample(X, costs, weight)


def check_block(costs: Costs, of_first: tuple[bool, bool]) -> None:
    """Raise an error for a block whose costs are of another kind than the costs of the first."""
    if of_first != costs.kind:
        kinds = {(False, False): "no cost", (True, False): "a cost vector for each sample"}
        first, other = (kinds.get(k, "a matrix for each sample") for k in (of_first, costs.kind))
        raise ValueError(
            f"cost: the first block had {first}, and this one has {other}; expected the same for "
            "all blocks."
        )


# ------------------------------------------------------------------------------- prepare


def prepare(
    data: Sample,
    validation: Sample | None,
    inputs: Preprocessor,
    before: CostStatistics | None = None,
    *,
    stream: bool = False,
) -> tuple[Sample, Sample | None, Preprocessor, CostStatistics]:
    """Rows as the network takes them, with costs in units; and the inputs and units that did this.

    `before` are the statistics of the training that continues.
    """
    data, inputs = data.with_positive_weights(), copy(inputs)
    if before is None:
        inputs.learn(data.X, stream=stream)
        statistics = data.statistics()
    else:
        if stream:
            inputs.update(data.X)
        statistics = data.statistics_after(before, stream=stream)

    def ready(rows: Sample) -> Sample:
        costs = rows.costs.in_units(statistics)
        return replace(rows, X=inputs.transform(rows.X), costs=costs)

    data = ready(data)
    if validation is not None:
        validation = ready(validation.with_positive_weights())
    return data, validation, inputs, statistics


# ------------------------------------------------------------------------------ the net


def make_net(
    estimator: Any,
    options: TrainingOptions,
    schedule: Schedule,
    data: Sample,
    inputs: Preprocessor,
    statistics: CostStatistics,
    rng: np.random.RandomState,
) -> CostNet:
    """A new net with its losses; its networks differ in their weights."""
    from .._training.net import CostNet

    loss, aux_loss, n_outputs = _losses(options, data.costs)
    counted = replace(statistics, weight=data.costs.class_weight(data.weight))
    loss, aux_loss = _for_statistics(loss, aux_loss, counted)
    if _may_learn_costs(options, data.costs):
        loss = loss._for_sample_costs(data.costs, data.relative_weight, options.stream)
    n_cost_outputs = loss._n_cost_outputs(len(data.costs.classes))
    start = loss.start_bias(counted), aux_loss.start_bias(counted)
    make = partial(estimator._make_module, inputs, inputs.sample(data.X))
    modules, alpha = [], list[float]()
    for _ in range(resolve_n_networks(options.n_networks, len(data))):
        module, alpha = _make_network(make, n_outputs, n_cost_outputs, draw_seed(rng))
        module.start_at(*start)
        modules.append(module.float())
    module = modules[0].join(modules)
    inputs.vary(module)
    module.set_precision(options.precision == "bf16")
    arguments = {
        **options.net_arguments(schedule, len(data), int(np.prod(data.X.shape[1:]))),
        **inputs.net_arguments(),
        **estimator._net_arguments(module),
        **check_net_params(options.net_params),
    }
    objective, verbose = LayerWiseLoss(loss, aux_loss, alpha), _verbose(options)
    net = CostNet(module, objective, statistics=statistics, verbose=verbose, **arguments)
    if isinstance(options.temperature, Real):
        net.temperature = float(options.temperature)
    net.initialize()
    return net


def _make_network(make: Any, n_outputs: int, n_cost_outputs: int, seed: int) -> Any:
    """A network, perhaps with a cost network, and the weight alpha of each auxiliary head."""
    with seeded(seed):
        module, alpha = make(n_outputs)
    if n_cost_outputs:
        with seeded(seed + 1):  # The start does not depend on the heads of the other network.
            costs, _ = make(n_cost_outputs)
        costs.heads.clear()
        module = ClassAndCostNetwork(module, costs)
    return module, alpha


def continue_net(
    options: TrainingOptions,
    schedule: Schedule,
    net: CostNet,
    data: Sample,
    inputs: Preprocessor,
    statistics: CostStatistics,
) -> CostNet:
    """A copy of a net, with its optimizer, for a training that continues with these rows."""
    _check_cost_network(net.criterion_.loss, data, _may_learn_costs(options, data.costs))
    net = net.copied()
    net.use_callbacks(list(options.callbacks or []))
    net.verbose = _verbose(options)
    size = options.rows_per_step(schedule, len(data))
    # A first block may be tiny, but then many small steps for later blocks take long.
    grows = options.stream and options.batch_size == "auto"
    net.batch_size = max(net.batch_size, size) if grows else size
    if options.stream:
        inputs.set_scaling(net.module_)
    net.change_unit(statistics, rescales=options.stream)
    objective = net.criterion_
    losses = objective.loss, objective.aux_loss
    objective.loss, objective.aux_loss = _for_statistics(*losses, statistics)
    if not data.costs.per_class:
        new = data.costs, data.relative_weight
        objective.loss = objective.loss._for_more_samples(*new, options.stream)
    return net


def _losses(options: TrainingOptions, costs: Costs) -> tuple[Loss, Loss, int]:
    """The losses of the output and of the heads, and the number of outputs of each."""
    loss, aux_loss = options.losses()
    sizes = len(costs.classes), len(costs.decisions)
    n_outputs, n_of_heads = loss.n_outputs(*sizes), aux_loss.n_outputs(*sizes)
    if n_outputs != n_of_heads:
        raise ValueError(
            f"The losses {loss!r} and {aux_loss!r} of output and heads have {n_outputs} and "
            f"{n_of_heads} outputs with {sizes[0]} classes and {sizes[1]} decisions; expected the "
            "same number, as of losses that both have class probabilities, or both have none. "
            "Leave aux_loss out."
        )
    return loss, aux_loss, n_outputs


def _for_statistics(loss: Loss, aux_loss: Loss, statistics: CostStatistics) -> tuple[Loss, Loss]:
    """The losses for a training set with these statistics; one that both use stays one."""
    bound = loss._for_statistics(statistics)
    return bound, bound if aux_loss is loss else aux_loss._for_statistics(statistics)


def _may_learn_costs(options: TrainingOptions, costs: Costs) -> bool:
    """Whether costs differ within classes, and may have to be learnt from the features."""
    return options.may_add_cost_network and costs.kind == (True, False)


def _check_cost_network(loss: Loss, data: Sample, may_learn: bool) -> None:
    """Raise an error for costs that do not fit the network of a continued training."""
    costs, n_classes = data.costs, len(data.costs.classes)
    if loss._n_cost_outputs(n_classes):
        if costs.per_class:
            raise ValueError(
                "Training continues with a network that has learnt per-sample costs with a "
                "cost network, which costs of classes do not need. Refit "
                "(warm_start=False), or pass cost= as before."
            )
        return
    if may_learn and loss._for_sample_costs(costs, data.relative_weight)._n_cost_outputs(n_classes):
        raise ValueError(
            "Training continues with a network that has learnt costs of classes, and it "
            "has no cost network for costs that differ within a class, as those in cost "
            "do. Refit (warm_start=False), or pass per-sample costs from the first call on."
        )


def _verbose(options: TrainingOptions) -> int:
    """How much the net prints, in one process only."""
    return int(options.verbose) if processes().rank == 0 else 0


# -------------------------------------------------------------------------- the training


def build(
    options: TrainingOptions,
    schedule: Schedule,
    net: CostNet,
    data: Sample,
    validation: Sample | None,
    rng: np.random.RandomState,
    folds: Sequence[Fold] | None = None,
    fold_seed: int | None = None,
) -> Training:
    """The training of a net: the training rows of its networks, and their held-out rows.

    The networks hold out the given `folds`, or folds that are drawn by `fold_seed`.
    """
    from .._training.loop import Training

    n, rows = net.n_networks, Rows(data, net.device, net.module_.lengths(data.X))
    if options.stream:
        return Training(net, [rows] * n, n_epochs=1, schedule=schedule, fold_seed=fold_seed)
    seen, held_out = [rows] * n, None
    if validation is not None:
        held_out = [Rows(validation, net.device)] * n
    elif (options.early_stopping or options.holds_out) and len(rows) >= MIN_HOLD_OUT_ROWS:
        if folds is not None:
            seen, held_out = share_given(n, rows, data, folds)
        else:
            fold_seed = draw_seed(rng) if fold_seed is None else fold_seed
            seen, held_out = draw_folds(n, rows, data, options.validation_fraction, fold_seed)
    return Training(
        net,
        seen,
        held_out,
        n_epochs=options.max_epochs,
        schedule=schedule,
        patience=resolve_patience(options.patience, len(rows)) if options.early_stopping else None,
        ema_epochs=options.ema_epochs,
        fold_seed=fold_seed,
    )


def new_random_state(random_state: Any) -> np.random.RandomState:
    """The random numbers of a fit; without a random state its own, the same in all processes."""
    rng: np.random.RandomState = check_random_state(random_state)
    if random_state is None:
        rng = np.random.RandomState(processes().from_first(draw_seed(rng)))
    return rng
