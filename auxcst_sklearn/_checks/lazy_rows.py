"""How the rows of X are read: lazily, by blocks, as float32 without silent loss."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing, assert_all_finite, check_consistent_length, column_or_1d

# Up to this many rows are read in ways that suit single ones.
PLAIN_ROWS = 100
# Arrays up to this size are looked at once, where scikit-learn's validation has several steps.
PLAIN_VALUES = 2**20
# Rows on disk with more bytes than this, as network inputs, are not held in memory.
DISK_BYTES = 2**27
# With more bytes than this, rows in memory are not copied either, and are trained on in blocks.
LARGE_BYTES = 2**30
# The range of a column must cover at least this many steps of float32.
FEWEST_STEPS = 64
# Differences up to this, relative to the values, may be errors of rounding in float64.
ROUNDING = 100 * np.finfo(np.float64).eps


class LazyRows:
    """Rows of an array, or the rows of an index, prepared when they are read."""

    def __init__(
        self,
        X: Any,
        prepare: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
        *,
        dtype: DTypeLike | None = None,
        index: NDArray[Any] | None = None,
    ) -> None:
        self.X, self.prepare, self.index = X, prepare, index
        self.dtype = np.dtype(X.dtype if dtype is None else dtype)
        self.shape: tuple[int, ...] = (len(X) if index is None else len(index), *X.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes of all rows after preparation."""
        return prod(self.shape) * self.dtype.itemsize

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        read = self.X[rows if self.index is None else self.index[rows]]
        return read if self.prepare is None else self.prepare(read)


def is_on_disk(X: Any) -> bool:
    """Whether an array is backed by a file: a memory map, or a view of one."""
    while isinstance(X, np.ndarray):
        if isinstance(X, np.memmap) and getattr(X, "_mmap", None) is not None:
            return True
        X = X.base
    return False


def stays_lazy(X: Any) -> bool:
    """Whether rows are too many to be copied, as float32."""
    if isinstance(X, LazyRows):
        return True
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "biuf":
        return False
    n_bytes = X.size * 4
    return n_bytes > LARGE_BYTES or (n_bytes > DISK_BYTES and is_on_disk(X))


def convert_rows(X: Any, prepare: Callable[[Any], Any], dtype: DTypeLike = np.float32) -> Any:
    """Rows of the type `dtype` that `prepare` returns, when they are read if X stays lazy."""
    return LazyRows(X, prepare, dtype=dtype) if stays_lazy(X) else prepare(X)


def pick(X: Any, index: NDArray[Any]) -> Any:
    """Some of the rows, not copied if they are too many."""
    if not stays_lazy(X):
        return _safe_indexing(X, index)
    return LazyRows(X, index=index.astype(np.min_scalar_type(len(X)), copy=False))


def row_order(X: Any) -> str | None:
    """The memory order to request from scikit-learn: None for rows that must not be copied."""
    if not stays_lazy(X) or X.ndim < 2 or isinstance(X, LazyRows):
        return "C"
    if abs(X.strides[0]) >= abs(X.strides[1]):
        return None
    if is_on_disk(X):
        raise ValueError(
            f"X is a memory map of shape {X.shape} in Fortran order, whose rows are scattered over "
            "the file; expected C order. Rewrite it: auxcst_sklearn.datasets.to_memmap(X, path)."
        )
    return "C"


def row_blocks(X: Any) -> list[slice]:
    """Blocks of rows that fit into the cache."""
    size = max(1, 2**18 // max(1, prod(X.shape[1:])))
    return [slice(start, start + size) for start in range(0, X.shape[0], size)]


def check_row_labels(X: Any, y: Any) -> NDArray[Any]:
    """Labels for rows that scikit-learn does not validate."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    assert_all_finite(labels, input_name="y")
    check_consistent_length(X, labels)
    return labels


def bounds_of(X: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Smallest and largest value of each column, by blocks of rows; NaN is ignored."""
    low, high = np.full((2, *X.shape[1:]), np.nan)
    for block in row_blocks(X):
        rows = X[block]
        low, high = np.fmin(low, np.fmin.reduce(rows)), np.fmax(high, np.fmax.reduce(rows))
    return low, high


def check_resolution(X: Any, name: str = "X", bounds: Any = None) -> None:
    """Raise an error for columns, such as timestamps, whose differences are lost in float32.

    Columns of series are their features or channels, in the last or in the second dimension.
    `bounds` are the smallest and the largest value of each column, where they are known.
    """
    if sparse.issparse(X) or X.dtype.kind == "b" or X.dtype.itemsize <= 2 or X.dtype == np.float32:
        return
    if bounds is None:
        bounds = bounds_of(X if len(X.shape) > 1 else X[:, np.newaxis])
    bounds = np.stack(bounds)
    for axis in dict.fromkeys((bounds.ndim - 1, 1)):
        lows, highs = np.moveaxis(bounds, axis, 1).reshape(2, bounds.shape[axis], -1)
        low, high = np.fmin.reduce(lows, axis=1), np.fmax.reduce(highs, axis=1)
        each = unresolved(lows, highs, np.float32).all(axis=1)
        lost = np.flatnonzero(each | unresolved(low, high, np.float32))
        if len(lost):
            column = lost[0]
            raise ValueError(
                f"Column {column} of {name}, and {len(lost)} in all, has values from "
                f"{low[column]:.17g} to {high[column]:.17g}, whose differences float32 cannot "
                "hold. Subtract a constant from it first, such as its smallest value, or put a "
                "StandardScaler in front."
            )


def unresolved(
    low: NDArray[np.float64], high: NDArray[np.float64], dtype: DTypeLike
) -> NDArray[np.bool_]:
    """Whether the range from low to high covers too few steps of a float type."""
    largest = np.maximum(abs(low), abs(high))
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.spacing(largest.astype(dtype)).astype(np.float64)
        # A column that is constant but for errors of rounding contains no differences to lose.
        varies = high - low > ROUNDING * largest
        return varies & (step > (high - low) / FEWEST_STEPS)


def exceeds_float32(X: Any) -> bool:
    """Whether X contains integers, such as identifiers, of which float32 would merge some."""
    if sparse.issparse(X) or X.dtype.kind not in "iu" or X.dtype.itemsize <= 2 or not X.size:
        return False
    low, high = bounds_of(X)
    return max(-low.min(), high.max()) > 2**24 and (X.dtype.kind == "i" or high.max() < 2**63)
