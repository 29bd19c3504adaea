"""Which rows a training holds out."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    train_test_split,
)


def hold_out(
    label: np.ndarray,
    fraction: float,
    *,
    name: str,
    remedy: str,
    random_state: int,
    groups: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of training and held-out rows, stratified where every class is large enough.

    With groups, a share of the groups is held out, and nothing is stratified.
    """
    n = len(label) if groups is None else len(np.unique(groups))
    n_held_out = max(1, round(fraction * n))
    if n_held_out >= n:
        units = "rows" if groups is None else "groups"
        raise ValueError(
            f"{name}={fraction} holds out {n_held_out} of {n} {units} and leaves none to train on. "
            f"Lower it, or set {remedy}."
        )
    if groups is not None:
        splitter = GroupShuffleSplit(1, test_size=n_held_out, random_state=random_state)
        return next(splitter.split(label, label, groups))
    count = np.unique(label, return_counts=True)[1]
    possible = count.min() > 1 and len(count) <= min(n_held_out, n - n_held_out)
    seen, unseen = train_test_split(
        np.arange(n),
        test_size=n_held_out,
        stratify=label if possible else None,
        random_state=random_state,
    )
    return seen, unseen


def folds(
    label: np.ndarray,
    n_folds: int,
    *,
    random_state: int,
    groups: np.ndarray | None = None,
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Indices of the rows without and of each fold, stratified where a class has enough rows.

    With groups, no group is in two folds.
    """
    n_units = len(label) if groups is None else len(np.unique(groups))
    if n_units < n_folds:
        units = "rows" if groups is None else "different values of groups"
        raise ValueError(
            f"There are {n_units} {units}, but n_networks and validation_fraction ask for "
            f"{n_folds} folds of them. Lower n_networks, raise validation_fraction, or set "
            "early_stopping=False."
        )
    stratified = np.unique(label, return_counts=True)[1].max() >= n_folds
    kinds = [StratifiedKFold, KFold] if groups is None else [StratifiedGroupKFold, GroupKFold]
    for kind in kinds[0 if stratified else 1 :]:
        splitter = kind(n_folds, shuffle=True, random_state=random_state)
        with warnings.catch_warnings():  # of classes with fewer rows than folds
            warnings.simplefilter("ignore", UserWarning)
            found = list(splitter.split(label, label, groups))
        if all(len(unseen) for _, unseen in found):  # few groups may leave a fold empty
            break
    return found
