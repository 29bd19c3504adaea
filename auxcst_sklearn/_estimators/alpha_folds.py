"""The mean cost of each alpha on the held-out rows of each fold, for a choice by `cv`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import check_cv

from .._training.training_set import TrainingSet
from .mlp import CostSensitiveAuxMLP
from .path import alpha_path

Folds = Sequence[tuple[NDArray[Any], NDArray[Any]]]


def split(cv: Any, X: Any, y: Any, groups: Any) -> Folds:
    """Training rows and held-out rows of each fold, of the caller's X and y."""
    splitter = check_cv(cv, y, classifier=True)
    given = {} if groups is None else {"groups": groups}  # optional
    folds = [(_rows(train), _rows(test)) for train, test in splitter.split(X, y, **given)]
    if not folds:
        raise ValueError(
            f"cv={cv!r} gave no split; expected at least one. An iterator that was used "
            "up elsewhere gives none: pass a list of its splits."
        )
    for i, fold in enumerate(folds):
        _check_fold(i, fold, len(y))
    return folds


def _rows(rows: Any) -> NDArray[Any]:
    """Positions or a mask as an array; one without values has no type."""
    found = np.asarray(rows)
    return found if found.size else found.astype(np.intp)


def _check_fold(i: int, fold: tuple[NDArray[Any], NDArray[Any]], n_rows: int) -> None:
    for name, rows in zip(("training", "test"), fold, strict=True):
        try:
            selected = np.arange(n_rows)[rows]
        except IndexError as error:
            raise ValueError(
                f"Fold {i} of cv has {name} rows that are not among the {n_rows} of X ({error}); "
                f"expected positions from 0 to {n_rows - 1}."
            ) from error
        if not len(selected):
            raise ValueError(f"Fold {i} of cv has no {name} rows; expected at least one.")


def mean_costs(
    network: CostSensitiveAuxMLP,
    alphas: NDArray[np.float64],
    data: TrainingSet,
    folds: Folds,
    classes: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean cost by alpha and fold, and the weight of each fold."""
    weight = np.ones(len(data.label)) if data.weight is None else data.weight
    fold_weight = np.array([weight[test].sum() for _, test in folds])
    if min(fold_weight) == 0:
        raise ValueError(
            f"sample_weight is zero for all rows that fold {fold_weight.argmin()} of cv "
            "leaves out, so that its cost is unknown. Use fewer folds, or folds that "
            "spread the rows that count."
        )
    by_fold = [
        [
            np.average(paid, weights=weight[test])
            for paid in _paid(network, alphas, data, train, test, classes)
        ]
        for train, test in folds
    ]
    return np.transpose(by_fold), fold_weight


def _paid(
    network: CostSensitiveAuxMLP,
    alphas: NDArray[np.float64],
    data: TrainingSet,
    train: NDArray[Any],
    test: NDArray[Any],
    classes: NDArray[Any],
) -> Iterator[NDArray[Any]]:
    """Costs of the predictions for held-out rows, for each alpha."""
    train_cost = known = None
    if data.per_class:
        network.set_params(cost_matrix=data.cost)
    elif data.matrices is None:
        train_cost = data.cost[train]
    else:
        train_cost = data.matrices[train]
        known = data.matrices[test] if network._has_probabilities() else None
    models: list[Any] = alpha_path(
        network,
        alphas.tolist(),
        data.X[train],
        classes[data.label[train]],
        cost=train_cost,
        sample_weight=None if data.weight is None else data.weight[train],
        groups=None if data.groups is None else data.groups[train],
    )
    test_cost = data.part(test).target().cost
    for model in models:
        choice = model.predict_cost(data.X[test], known).argmin(axis=1, keepdims=True)
        yield np.take_along_axis(test_cost, choice, axis=1)[:, 0]
