"""The networks of many alphas at once."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state

from .._checks.docs import described_like
from .._training.distributed import joined, processes
from .._training.training import Training, named_errors, train_together
from .._training.training_set import TrainingSet
from .identity import check_same, open_checkpoints
from .mlp import CostSensitiveAuxMLP
from .parameters import OPTIMIZERS

if TYPE_CHECKING:
    from .._training.checkpoints import Checkpoints
    from .._training.loop import Plan


@described_like(CostSensitiveAuxMLP.fit)
def alpha_path(
    estimator: BaseEstimator,
    alphas: Sequence[float] | Sequence[Sequence[float]],
    X: ArrayLike,
    y: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    random_states: Sequence[int | np.random.RandomState | None] | None = None,
) -> list[BaseEstimator] | list[list[BaseEstimator]]:
    """Fit an estimator for each of several weights of the auxiliary heads.

    The networks of a `CostSensitiveAuxMLP` are trained together, as one network on batched
    matrices. Each equals the result of a separate fit, up to the rounding of sums: networks with
    the same random state have the same initial weights, mini-batches, dropout and held-out rows, so
    that differences between them are due to alpha. Eleven alphas take two to three times as long
    as one fit of a small network, and up to nine times with 256 units per layer.

    Networks are fitted sequentially, with the same result, if they cannot be trained as a batch:
    other estimators, and `CostSensitiveAuxMLP` with ``callbacks``, ``warm_start``,
    ``precision="bf16"``, a user-defined optimizer, or `net_params` other than those of the
    optimizer.

    Parameters
    ----------
    estimator : CostSensitiveAuxMLP, or another estimator with parameters alpha and random_state
        The estimator to clone and fit. It is not changed; its own alpha does not matter.
    alphas : sequence of (float or sequence of float)
        The values of alpha.
    X, y, cost, sample_weight, groups
        As of `CostSensitiveAuxMLP.fit`.
    random_states : sequence of (int, RandomState instance or None), default=None
        Fit one path for each of them, all together; None for one path with the random state of the
        estimator. A RandomState instance or None is replaced by an int drawn from it.

    Returns
    -------
    list of estimators, or list of such lists
        The fitted estimators in the order of `alphas`; with `random_states`, a list for each of
        them. "dur" in their `history_` is the time of an epoch of all networks together.
        `partial_fit` starts with a new optimizer.

    Raises
    ------
    ValueError
        As `fit` of the estimator; the message names the alpha.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from auxcst_sklearn import CostSensitiveAuxMLP, alpha_path
    >>> X, y = load_iris(return_X_y=True)
    >>> estimator = CostSensitiveAuxMLP(depth=2, width=16, max_epochs=2, random_state=0)
    >>> models = alpha_path(estimator, [0, 0.5], X, y)
    >>> [model.hidden_layers_ for model in models]
    [[], ['hidden1']]
    """
    with joined(getattr(estimator, "distributed", False)):
        return _fit_path(estimator, alphas, X, y, (cost, sample_weight, groups), random_states)


def _fit_path(
    estimator: BaseEstimator,
    alphas: Sequence[Any],
    X: Any,
    y: Any,
    more: tuple[Any, ...],
    random_states: Sequence[Any] | None,
) -> list[Any]:
    _check_sequence("alphas", alphas, "value of alpha")
    if random_states is not None:
        _check_sequence("random_states", random_states, "random state, or None")
    cost, sample_weight, groups = more
    states = [estimator.random_state] if random_states is None else random_states
    together = len(alphas) * len(states) > 1 and is_stackable(estimator)
    keeps = estimator.get_params().get("checkpoint_dir") is not None
    if keeps and not together and len(alphas) > 1:
        _refuse_new_seeds(states)
    # With checkpoints, None may become the seed of an earlier fit.
    seeds = [state if keeps and state is None else as_seed(state) for state in states]
    models = [
        clone(estimator).set_params(alpha=alpha, random_state=seed)
        for alpha in alphas
        for seed in seeds
    ]
    if together:
        owner = models[0]
        with owner._fitting(resume=False):
            data, _ = owner._validate_sets(X, y, cost, sample_weight, groups)
            fit_together(owner, models, len(seeds), data, None)
    else:
        given = {"cost": cost, "sample_weight": sample_weight, "groups": groups}
        given = {name: value for name, value in given.items() if value is not None}
        for model in models:
            with named_errors(f"alpha={model.alpha}"):
                model.fit(X, y, **given)
    paths = [models[i :: len(seeds)] for i in range(len(seeds))]
    return paths[0] if random_states is None else paths


def _check_sequence(name: str, values: Sequence[Any], of: str) -> None:
    if not np.iterable(values) or len(values) == 0:
        raise ValueError(f"{name}={values!r}; expected a sequence of at least one {of}.")


def _refuse_new_seeds(states: Sequence[Any]) -> None:
    if any(state is None for state in states):
        raise ValueError(
            "random_state=None cannot be passed with checkpoint_dir here, because networks that "
            "are fitted one after another would not find the seed that they share again; expected "
            "an integer."
        )


def as_seed(random_state: int | np.random.RandomState | None) -> int:
    """One seed shared by all alphas."""
    if isinstance(random_state, Integral):
        return int(random_state)
    seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    return int(processes().from_first("the random state", seed))


def is_stackable(estimator: BaseEstimator) -> bool:
    """Whether the training of a stack does everything that a fit does."""
    return (
        type(estimator) is CostSensitiveAuxMLP
        and not (estimator.callbacks or estimator.warm_start)
        and estimator.precision == "float32"
        and (isinstance(estimator.optimizer, str) or estimator.optimizer in OPTIMIZERS.values())
        and all(name.startswith("optimizer__") for name in estimator.net_params or {})
    )


def fit_together(
    owner: CostSensitiveAuxMLP,
    models: list[CostSensitiveAuxMLP],
    n_seeds: int,
    data: TrainingSet,
    validation: TrainingSet | None,
) -> list[Training]:
    """Fit models to the data that `owner` has validated; those of one seed are `n_seeds` apart.

    They are trained as one stack if possible. All share the inputs and the rows of the first one.
    """
    names = [f"alpha={model.alpha}" for model in models]
    of_all = {name: [getattr(m, name) for m in models] for name in ("alpha", "random_state")}
    models[0]._like(owner)._start_random_state(resume=False)
    check_same(models[0], data, validation, resume=False)
    trainings: list[Training] = []
    with open_checkpoints(models[0], data, validation, **of_all) as checkpoints:
        _share_seeds(models, n_seeds, checkpoints)
        plan = models[0]._plan(checkpoints)
        prepared = None
        for i, model in enumerate(models):
            with named_errors(names[i]):
                model._validate_params()
                model._like(owner if i == 0 else models[0])._start_random_state(resume=False)
                if prepared is None:
                    prepared = model._prepare(data, validation)
                trainings.append(model._assemble(prepared))
            trainings[i] = trainings[i].with_rows_of(trainings[i % n_seeds])
        if is_stackable(models[0]) and not trainings[0].rows.sets[0].in_blocks:
            _train_stacks(trainings, names, n_seeds, plan)
        else:
            for name, training in zip(names, trainings):
                with named_errors(name):
                    training.run(plan)
    for model, training in zip(models, trainings):
        model._set_attributes(training)
    return trainings


def _train_stacks(trainings: list[Training], names: list[str], n_seeds: int, plan: Plan) -> None:
    """Train one stack; one per seed if seeds with groups hold out different numbers of rows."""
    sizes = {(len(t.rows), t.held_out and len(t.held_out)) for t in trainings[:n_seeds]}
    n_stacks = 1 if len(sizes) == 1 else n_seeds
    for i in range(n_stacks):
        train_together(trainings[i::n_stacks], names[i::n_stacks], n_seeds // n_stacks, plan)


def _share_seeds(
    models: list[CostSensitiveAuxMLP], n_seeds: int, checkpoints: Checkpoints | None
) -> None:
    """Seeds that replace None, one per path: those of the fit that wrote the checkpoints."""
    draw = np.random.RandomState(checkpoints.seed if checkpoints else None)
    for i in range(n_seeds):
        if models[i].random_state is None:
            seed = as_seed(draw)
            for model in models[i::n_seeds]:
                model.random_state = seed
