"""The rows that a training holds out: the folds of networks, and predictions for these rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.model_selection import (
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    StratifiedKFold,
    train_test_split,
)
from sklearn.utils.random import sample_without_replacement

from ..costs._problem import Fold, Problem
from .batches import Rows
from .group_folds import ShuffledGroups
from .loop import Training
from .net import CostNet
from .temperature import log_clipped
from .torch_modes import neutral_torch_modes

# Folds of more groups are not stratified; scikit-learn's loop over groups takes seconds for them.
MOST_BALANCED_GROUPS = 1000
# Draws of groups to be held out, until training has all classes.
N_DRAWS = 10
# With many rows, the largest number, and size in bytes, of held-out rows of all networks together.
MOST_HELD_OUT = 2**16
MOST_HELD_OUT_BYTES = 2**26

# Share of networks that have learnt from a row, a tenth with five folds. It takes away some of the
# errors that the mean of all networks does not have; a larger share would leak the label.
SHARE_OF_SEEN = 0.125

# Training rows and held-out rows of each network.
Shares = tuple[list[Rows], list[Rows]]


def draw_folds(n_networks: int, rows: Rows, data: Problem, fraction: float, seed: int) -> Shares:
    """Training rows and held-out rows of each network, drawn at random."""
    # Five networks and a fraction of 0.2 are five folds, of which network i holds out the i-th.
    # With a fraction of 0.1 there are ten, and half of the rows are held out by no network.
    n_units = _number_of_units(data.label, data.groups)
    n_folds = max(n_networks, min(round(1 / fraction), n_units))
    share = fraction if n_networks == 1 else 1 / n_folds
    if rows.in_blocks:
        return _sample_out(n_networks, rows, data, n_networks, share, seed)
    if n_networks == 1:
        parts = [hold_out(data.label, share, random_state=seed, groups=data.groups)]
    else:
        parts = folds(data.label, n_folds, random_state=seed, groups=data.groups)
        # The only group of a class may be a whole fold, which no network holds out if others exist.
        parts = [part for part in parts if has_all_classes(data.label, part)] or parts
    return share_given(n_networks, rows, data, parts)


def share_given(n_networks: int, rows: Rows, data: Problem, given: Sequence[Fold]) -> Shares:
    """Training and held-out rows by the folds of the caller: network i holds out fold i."""
    if not rows.in_blocks:
        return _rows_of_folds(rows, [given[i % len(given)] for i in range(n_networks)])
    # The fold of each row, such as 0, 2, 1, 3, ... of three folds: 3 is a row of none.
    of_row = np.full(len(rows), len(given), np.uint8)
    for i, (_, unseen) in enumerate(given):
        of_row[unseen] = i
    n_held_out = [len(unseen) for _, unseen in given]
    if (of_row < len(given)).sum() < sum(n_held_out):
        raise ValueError(
            "Rows that are too many to be shuffled one by one need folds that hold out each row at "
            "most once; expected cv to be a number, or a generator of such folds."
        )
    seed = len(given)  # of the sample of rows in the folds
    share = max(n_held_out) / len(rows)
    return _sample_out(n_networks, rows, data, len(given), share, seed, of_row)


def _rows_of_folds(rows: Rows, parts: Sequence[Fold]) -> Shares:
    seen, held_out = zip(*parts)
    return [*map(rows.take, seen)], rows.held_out(held_out)


def _sample_out(
    n_networks: int,
    rows: Rows,
    data: Problem,
    n_folds: int,
    share: float,
    seed: int,
    of_row: NDArray[np.uint8] | None = None,
) -> Shares:
    """For very many rows: the training rows of each network, and a sample of its held-out rows."""
    label, size = data.label, rows.row_nbytes
    sampled = sampled_folds(
        label, n_folds, share, size, random_state=seed, groups=data.groups, of_row=of_row
    )
    fold = torch.from_numpy(sampled.of_row)
    sample = rows.gather(np.concatenate(sampled.evaluated), np.concatenate(sampled.weight))
    ends = np.cumsum([len(part) for part in sampled.evaluated])[:-1]
    held_out = sample.held_out(np.split(np.arange(len(sample)), ends))
    numbers = [i % n_folds for i in range(n_networks)]
    return [rows.without(fold, i) for i in numbers], [held_out[i] for i in numbers]


# --------------------------------------------------------------------------------- folds


def hold_out(
    label: np.ndarray, fraction: float, *, random_state: int, groups: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of training and held-out rows, stratified if every class is large enough.

    With groups, a fraction of the groups is held out, without stratification. The only rows of a
    class are not held out if others can be.
    """
    n = _number_of_units(label, groups)
    _check_enough(n, 2, groups)
    n_held_out = min(max(1, round(fraction * n)), n - 1)
    if groups is not None:
        splitter = GroupShuffleSplit(N_DRAWS, test_size=n_held_out, random_state=random_state)
        for split in splitter.split(label, label, groups):
            fold = _with_classes(label, split, groups)
            if has_all_classes(label, fold):
                break
        return fold
    count = np.unique(label, return_counts=True)[1]
    possible = count.min() > 1 and len(count) <= min(n_held_out, n - n_held_out)
    split = train_test_split(
        np.arange(n),
        test_size=n_held_out,
        stratify=label if possible else None,
        random_state=random_state,
    )
    return _with_classes(label, split)


def _number_of_units(label: NDArray[Any], groups: NDArray[Any] | None) -> int:
    """The number of samples, or of groups, of which folds are made."""
    return len(label) if groups is None else len(np.unique(groups))


def _check_enough(n_units: int, n_folds: int, groups: NDArray[Any] | None) -> None:
    """Raise an error for more folds than samples or groups."""
    if n_units < n_folds:
        nouns = "samples" if groups is None else "different values of groups"
        raise ValueError(
            f"There are {n_units} {nouns}, but {n_folds} folds are made of them, by n_networks and "
            "validation_fraction, or by cv of an ensemble. Lower n_networks or cv, raise "
            "validation_fraction, or set early_stopping=False."
        )


def has_all_classes(label: NDArray[Any], fold: Fold) -> bool:
    """Whether the training rows of a fold have all classes."""
    return bool(np.isin(label, label[fold[0]]).all())


def _with_classes(label: NDArray[Any], fold: Fold, groups: NDArray[Any] | None = None) -> Fold:
    """A fold, with rows of classes that training lacks moved to it, if others remain.

    Groups with such rows are moved as a whole.
    """
    # A network cannot learn a class that it does not see, and the means over networks need all
    # classes from each.
    seen, unseen = fold
    moved = ~np.isin(label[unseen], label[seen])
    if groups is not None:
        moved = np.isin(groups[unseen], groups[unseen][moved])
    moved &= not moved.all()
    return np.append(seen, unseen[moved]), unseen[~moved]


def folds(
    label: np.ndarray, n_folds: int, *, random_state: int, groups: np.ndarray | None = None
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Indices of the rows outside and inside each fold, stratified if a class has enough rows.

    With groups, no group is in two folds; many groups are not stratified. The only rows of a class
    are in none, unless they are a whole fold.
    """
    n_units = _number_of_units(label, groups)
    _check_enough(n_units, n_folds, groups)
    are_too_many = groups is not None and n_units > MOST_BALANCED_GROUPS
    # One class with enough rows is sufficient: scikit-learn then stratifies, and spreads rarer
    # classes as evenly as it can.
    stratified = np.unique(label, return_counts=True)[1].max() >= n_folds and not are_too_many
    splitters = [StratifiedKFold, KFold] if groups is None else [ShuffledGroups, GroupKFold]
    for cls in splitters[0 if stratified else 1 :]:
        splitter = cls(n_folds, shuffle=True, random_state=random_state)
        with warnings.catch_warnings():  # for classes with fewer rows than folds
            warnings.simplefilter("ignore", UserWarning)
            splits = list(splitter.split(label, label, groups))
        if all(len(unseen) for _, unseen in splits):  # few groups may leave a fold empty
            break
    return [_with_classes(label, split, groups) for split in splits]


class LargeFolds(NamedTuple):
    """For many rows: the fold of each row, `n_folds` for none, and the rows evaluated per fold.

    `weight` scales the evaluated rows of a class to represent all its rows.
    """

    of_row: NDArray[np.uint8]
    evaluated: list[NDArray[Any]]
    weight: list[NDArray[Any]]


def sampled_folds(
    label: NDArray[Any],
    n_folds: int,
    fraction: float,
    row_nbytes: int,
    *,
    random_state: int,
    groups: NDArray[Any] | None = None,
    of_row: NDArray[np.uint8] | None = None,
) -> LargeFolds:
    """Folds of which some rows are evaluated: equally many per class, or all of a rare class.

    A fold is as `of_row` has it, or with groups a `fraction` of these; otherwise it consists of the
    evaluated rows, at most a `fraction` of each class.
    """
    rng = np.random.RandomState(random_state)
    if of_row is None and groups is not None:
        of_row = _folds_of_groups(groups, n_folds, fraction, rng)
        for i in range(n_folds):
            fold = np.flatnonzero(of_row != i), np.flatnonzero(of_row == i)
            seen, _ = _with_classes(label, fold, groups)
            of_row[seen[of_row[seen] == i]] = n_folds
    # The limits are for all networks together, because their held-out rows are in memory at the
    # same time.
    n_most = min(MOST_HELD_OUT, MOST_HELD_OUT_BYTES // row_nbytes) // n_folds
    n_most = min(n_most, int(fraction * len(label)))
    # Of two million rows, of which one in a thousand is a fraud, a fold of 13,000 rows has as many
    # frauds as others as long as there are enough; weights then restore their shares.
    classes = np.flatnonzero(np.bincount(label))
    n_each = max(1, n_most // len(classes))
    are_given = of_row is not None
    if of_row is None:
        of_row = np.full(len(label), n_folds, np.uint8)
    parts: list[list[tuple[NDArray[Any], NDArray[Any]]]] = [[] for _ in range(n_folds)]
    for k in classes:
        of_class = np.flatnonzero(label == k)
        if not are_given:
            n = min(int(fraction * len(of_class)), n_each)
            # Each class gives the same number of rows, or fewer if it is rare. The weights below
            # restore the frequencies of the classes.
            drawn = _draw(of_class, n * n_folds, rng).reshape(n_folds, n)
            of_row[drawn] = np.arange(n_folds)[:, np.newaxis]
            of_folds, counts = list(drawn), [fraction * len(of_class)] * n_folds
        else:
            in_folds = [of_class[of_row[of_class] == i] for i in range(n_folds)]
            of_folds = [_draw(index, min(len(index), n_each), rng) for index in in_folds]
            counts = [*map(len, in_folds)]
        for part, index, count in zip(parts, of_folds, counts):
            part.append((index, np.full(len(index), count / max(1, len(index)))))
    if not any(len(index) for index, _ in parts[0]):  # for classes of a few rows each
        drawn = _draw(np.arange(len(label)), n_folds * max(1, n_most), rng).reshape(n_folds, -1)
        of_row[drawn] = np.arange(n_folds)[:, np.newaxis]
        parts = [[(index, np.ones(len(index)))] for index in drawn]
    chosen, weight = [], []
    for part in parts:
        index, counted = map(np.concatenate, zip(*part))
        order = index.argsort()  # in their order on disk
        chosen.append(index[order])
        weight.append(counted[order] / counted.mean())
    return LargeFolds(of_row, chosen, weight)


def _draw(index: NDArray[Any], n: int, rng: np.random.RandomState) -> NDArray[Any]:
    chosen = sample_without_replacement(len(index), n, random_state=rng)
    return index[rng.permutation(chosen)]


def _folds_of_groups(
    groups: NDArray[Any], n_folds: int, fraction: float, rng: np.random.RandomState
) -> NDArray[np.uint8]:
    """A fold for each group, of `fraction` of the groups; `n_folds` for those in none."""
    known, of_row = np.unique(groups, return_inverse=True)
    _check_enough(len(known), max(n_folds, round(1 / fraction), 2), groups)
    fold = rng.permutation(len(known)) // max(1, int(fraction * len(known)))
    return np.minimum(fold, n_folds).astype(np.uint8)[of_row]


# -------------------------------------------------------------------------- predictions


class Unseen(NamedTuple):
    """Class probabilities (n_samples, K) by models that held a row out; NaN where none did.

    By the `first` network that holds out the fold of the row, by the `second`, by the mean of
    `both`, and by the first one `mixed` with networks that have learnt from the row.
    """

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    both: NDArray[np.float64]
    mixed: NDArray[np.float64]

    @classmethod
    def of_model(cls, probability: NDArray[np.float64]) -> Unseen:
        """By a single model."""
        return cls(*[probability] * 4)

    @classmethod
    def mean(cls, parts: Sequence[Unseen]) -> Unseen:
        """The means of what is known; NaN for rows that no model has held out."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.ma.masked_invalid(p).mean(axis=0).filled(np.nan) for p in zip(*parts)))


def held_out_proba(training: Training, data: Problem, n_folds: int) -> Unseen:
    """Class probabilities by networks that held a row out.

    Where only a sample of the rows is evaluated, there are none.
    """
    has_weight, held_out, net = data.is_weighted, training.held_out, training.net
    unknown = np.full((len(data), len(data.classes)), np.nan)
    if held_out is None or training.rows[0].in_blocks:
        return Unseen.of_model(unknown)
    product, share = np.zeros(1), SHARE_OF_SEEN / n_folds
    # The weights of the product sum to one: a small share for each network that has learnt from the
    # row, the rest for the one that has not.
    own = 1 - share * (n_folds - 1)
    # The last pass is that of each network on its own fold. Its pair of predictions remains in
    # `pair` for what follows.
    for shift in reversed(range(n_folds)):  # network i predicts fold i + shift, at last its own
        sets = [held_out[(i + shift) % n_folds] for i in range(len(held_out))]
        pair = _means(net, sets, n_folds, int(has_weight.sum()))
        product = product + (share if shift else own) * log_clipped(pair[0])
    both = softmax(log_clipped(pair).mean(axis=0), 1) if net.is_geometric else pair.mean(axis=0)
    unseen = [unknown.copy() for _ in Unseen._fields]
    for whole, known in zip(unseen, (*pair, both, softmax(product, axis=1))):
        whole[has_weight] = known
    return Unseen(*unseen)


@torch.no_grad()
def _means(net: CostNet, held_out: Sequence[Rows], n_folds: int, n: int) -> NDArray[np.float64]:
    with neutral_torch_modes():
        batches = [net.probabilities(net.module_(x)) for x, _ in net.evaluation_batches(held_out)]
    of_sets = torch.cat(batches, dim=-2).double().cpu()
    of_sets = of_sets.reshape(len(held_out), -1, of_sets.shape[-1])
    total = torch.zeros(2, n, of_sets.shape[-1], dtype=torch.float64)
    count = torch.zeros(2, n, dtype=torch.float64)
    # With ten networks and five folds, two networks hold out each fold: the first five are added to
    # `total[0]`, the others to `total[1]`.
    for i, (rows, probability) in enumerate(zip(held_out[: 2 * n_folds], of_sets)):
        index = torch.arange(len(rows)) if rows.index is None else rows.index.cpu()
        if rows.weight is not None:  # rows that pad a smaller part have none
            counts = rows.weight.cpu()[index] > 0
            index, probability = index[counts], probability[: len(counts)][counts]
        total[i // n_folds].index_add_(0, index, probability[: len(index)])
        count[i // n_folds].index_add_(0, index, torch.ones(len(index), dtype=torch.float64))
    mean: NDArray[np.float64] = (total / count.unsqueeze(-1)).numpy()
    mean /= mean.sum(axis=-1, keepdims=True)
    return mean
