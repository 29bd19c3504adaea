"""Streams: rows that arrive in blocks, at most one of which is in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing, check_consistent_length

from .._features.frames import is_frame
from ..costs._checks import frame_labels
from .identity import check_same

if TYPE_CHECKING:
    from typing_extensions import Self

# Number of rows that `prepare` draws from all blocks.
SAMPLED_ROWS = 2**16


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the attributes of a fitted estimator when a new fit fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class StreamMixin:
    """Training block by block, with the steps of an estimator."""

    # The net that `prepare` has built; True once it trains.
    _prepared: Any = None

    classes_: NDArray[Any]
    classes: ArrayLike | None
    cost_matrix: Any
    _fitting: Any
    _draw_seed: Any
    _validate_training_set: Any
    _sample_costs: bool
    _known_costs: bool
    _build: Any
    _set_attributes: Any

    def prepare(self, blocks: Iterable[tuple[Any, ...]]) -> Self:
        """Learn from all blocks what `partial_fit` needs before training.

        These are the classes, the number of rows, and, from a random sample of 65,536 rows, the
        scales, categories, missing-value indicators and bins of the features, and the unit and
        class means of the costs. Later blocks do not change them, so that the order of the blocks
        hardly matters. Categories that are not in the sample are treated as unknown. Parameters
        that are set afterwards have no effect.

        Parameters
        ----------
        blocks : iterable of tuples
            The arguments of `partial_fit` for each block: ``(X, y)``, ``(X, y, cost)`` or ``(X, y,
            cost, sample_weight)``, the same for all. They are iterated once, so a generator is
            enough.

        Returns
        -------
        self : object
            The estimator, which is not fitted yet: call `partial_fit` next.

        Raises
        ------
        ValueError
            As `partial_fit`, or if there is no block.
        """
        with self._fitting(False):
            names, columns, n_rows, seen = self._sample(blocks)
            given = dict.fromkeys(("cost", "sample_weight")) | dict(zip(names, columns))
            classes = self.classes
            if classes is None and all(
                frame_labels(c) is None for c in (given["cost"], self.cost_matrix)
            ):
                classes = seen
            data = self._validate_training_set(
                given["X"], given["y"], given["cost"], given["sample_weight"], classes, False
            )
            check_same(self, data, None, False)
            for name in ("net_", "history_", "temperature_"):
                vars(self).pop(name, None)
            self._prepared = self._build(data, False, one_epoch=True, n_rows=n_rows).net
        return self

    def _sample(
        self, blocks: Iterable[tuple[Any, ...]]
    ) -> tuple[tuple[Any, ...], list[Any], int, NDArray[Any]]:
        """A uniform sample of the rows of all blocks, the number of rows, and all labels."""
        rng = np.random.RandomState(self._draw_seed())
        kept: list[tuple[Any, ...]] = []
        keys: list[NDArray[Any]] = []
        n_rows, seen, limit, first = 0, np.empty(0), np.inf, None
        for i, block in enumerate(blocks):
            first = block if first is None else first
            _check_block(block, first, i)
            labels = np.unique(np.asarray(block[1]))
            seen = labels if i == 0 else np.union1d(seen, labels)
            n_rows += len(block[1])
            key = rng.random_sample(len(block[1]))
            below = np.flatnonzero(key < limit)
            kept.append(_pick(block, below))  # a copy: the next block may be in the same memory
            keys.append(key[below])
            if sum(map(len, keys)) > 2 * SAMPLED_ROWS:
                kept, keys, limit = _smallest(kept, keys)
        if not kept:
            raise ValueError("blocks is empty; expected at least one block of rows.")
        kept, _, _ = _smallest(kept, keys)
        columns = [_concatenate(parts) for parts in zip(*kept)]
        return ("X", "y", "cost", "sample_weight")[: len(columns)], columns, n_rows, seen

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train on the rows for one more epoch, at a constant rate and without early stopping.

        The first call learns scales and categories, and the unit of the costs, from its rows;
        later calls update them, except for the categories, unless `prepare` has learnt them from
        all blocks.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training examples.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that can ever occur; needed at the first call, unless `prepare` was called,
            or they are given by `classes` of the constructor or by the columns of a DataFrame of
            costs.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), \
                or DataFrame, default=None
            Cost of each possible prediction for each sample, as in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples relative to each other: a step of the optimizer has the same
            size whatever the mean weight of a call is. To forget older blocks, do not weight
            blocks, but change `learning_rate`.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            As `fit`, or if the classes are unknown at the first call or differ at a later one.
        """
        from .._training.loop import Plan

        resume = hasattr(self, "net_") or getattr(self, "_prepared", None) is not None
        with self._fitting(resume):
            named = self._check_named_classes(classes, cost)
            of_first = (self._sample_costs, self._known_costs) if resume else None
            data = self._validate_training_set(X, y, cost, sample_weight, named, resume)
            self._check_kind_of_costs(of_first)
            data.warn_if_truth_is_not_cheapest(self.classes_, stacklevel=2)
            check_same(self, data, None, resume)
            training = self._build(data, resume, one_epoch=True)
            training.run(Plan(1, "constant"))
            self._set_attributes(training)
            return self

    def _check_kind_of_costs(self, of_first: tuple[bool, bool] | None) -> None:
        """Raise an error for a block whose costs are of another kind than those of the first."""
        if of_first not in (None, (self._sample_costs, self._known_costs)):
            kinds = {(False, False): "no cost", (True, False): "a cost vector for each sample"}
            known = "a cost matrix for each sample"
            raise ValueError(
                f"cost: the first block had {kinds.get(of_first, known)}, and this one has "
                f"{kinds.get((self._sample_costs, self._known_costs), known)}; expected the same "
                "for all blocks of prepare and partial_fit."
            )

    def _check_named_classes(self, classes: ArrayLike | None, cost: Any) -> ArrayLike | None:
        """All labels that are passed to `partial_fit`."""
        named = self.classes if classes is None else classes
        unlabelled = all(frame_labels(c) is None for c in (cost, self.cost_matrix))
        if named is None and unlabelled and not hasattr(self, "net_"):
            raise ValueError(
                "classes must be passed at the first call to partial_fit: all labels that "
                "can ever occur, in classes= here or in the constructor."
            )
        return named


def _check_block(block: Any, first: tuple[Any, ...], i: int) -> None:
    """Raise an error for a block that differs in kind from the first one."""
    if not isinstance(block, (tuple, list)) or not 2 <= len(block) <= 4:
        raise ValueError(
            f"Block {i} is a {type(block).__name__}"
            + (f" of {len(block)} parts" if isinstance(block, (tuple, list)) else "")
            + "; expected (X, y), (X, y, cost) or (X, y, cost, sample_weight). For a single block "
            "pass a list of it."
        )
    try:
        check_consistent_length(*block)
        is_like_first = _kinds(block) == _kinds(first)
    except (ValueError, TypeError) as error:
        raise ValueError(f"In block {i}: {error}") from error
    if not is_like_first:
        raise ValueError(
            f"Block {i} is {_kinds(block)}, but the first one {_kinds(first)}; expected the same "
            "parts, types, columns and kinds of labels in all blocks."
        )


def _kinds(block: Sequence[Any]) -> list[Any]:
    """The properties of each part that all blocks must have in common."""
    kinds: list[Any] = []
    for j, part in enumerate(block):
        if is_frame(part):
            kinds.append((type(part).__name__, *map(str, part.columns)))
        elif part is None:
            kinds.append(None)
        else:
            shape = np.shape(part)[1:] if not sparse.issparse(part) else part.shape[1:]
            kinds.append(("sparse" if sparse.issparse(part) else "array", *shape))
            if j == 1:
                kinds.append("texts" if np.asarray(part).dtype.kind in "OUS" else "numbers")
    return kinds


def _pick(block: Sequence[Any], index: NDArray[Any]) -> tuple[Any, ...]:
    parts = (part.tocsr() if sparse.issparse(part) else part for part in block)
    return tuple(None if part is None else _safe_indexing(part, index) for part in parts)


def _smallest(
    kept: list[tuple[Any, ...]], keys: list[NDArray[Any]]
) -> tuple[list[tuple[Any, ...]], list[NDArray[Any]], float]:
    """The rows with the smallest keys, and the smallest key of the rows left out."""
    every = np.concatenate(keys)
    if len(every) <= SAMPLED_ROWS:
        return kept, keys, np.inf
    limit = float(np.partition(every, SAMPLED_ROWS)[SAMPLED_ROWS])
    masks = [np.flatnonzero(key < limit) for key in keys]
    parts = [_pick(block, mask) for block, mask in zip(kept, masks)]
    return parts, [key[mask] for key, mask in zip(keys, masks)], limit


def _concatenate(parts: tuple[Any, ...]) -> Any:
    first = parts[0]
    if first is None:
        return None
    if sparse.issparse(first):
        return sparse.vstack(parts, format="csr")
    if hasattr(first, "iloc") and is_frame(first):
        return _concatenate_pandas(parts)
    if is_frame(first):
        import polars

        return polars.concat(parts, how="vertical_relaxed")
    return np.concatenate([np.asarray(part) for part in parts])


def _concatenate_pandas(parts: tuple[Any, ...]) -> Any:
    """Concatenate frames by rows; a column has the categories of all of them."""
    import pandas as pd
    from pandas.api.types import union_categoricals

    joined = pd.concat(parts, ignore_index=True)
    for name in parts[0].columns:
        columns = [part[name] for part in parts]
        if all(isinstance(column.dtype, pd.CategoricalDtype) for column in columns):
            joined[name] = union_categoricals(columns, ignore_order=True)
    return joined
