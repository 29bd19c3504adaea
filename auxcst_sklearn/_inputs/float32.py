"""Conversion of numbers of any type to float32, without silent loss."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite

# The range of a column must cover at least this many steps of float32.
FEWEST_STEPS = 64


def row_blocks(X: Any) -> Iterator[slice]:
    """Blocks of rows that fit into the cache."""
    size = max(1, 2**18 // max(1, prod(X.shape[1:])))
    return (slice(start, start + size) for start in range(0, X.shape[0], size))


def as_float32(X: Any) -> Any:
    """A validated dense array in C order, or a sparse matrix, as float32."""
    if X.dtype == np.float32:
        return X
    with np.errstate(over="ignore"):  # detected below
        X = X.astype(np.float32) if sparse.issparse(X) else X.astype(np.float32, order="C")
    assert_all_finite(X.data if sparse.issparse(X) else X, input_name="X", allow_nan=True)
    return X


def bounds_of(X: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """Smallest and largest value of each column, by blocks of rows; NaN is ignored."""
    low, high = (
        f.reduce([f.reduce(X[rows], axis=0) for rows in row_blocks(X)]) for f in (np.fmin, np.fmax)
    )
    return low, high


def check_resolution(X: Any) -> None:
    """Raise an error for columns, such as timestamps, whose differences are lost in float32."""
    if sparse.issparse(X) or X.dtype.kind == "b" or X.dtype.itemsize <= 2 or X.dtype == np.float32:
        return
    low, high = (bound.astype(np.float64) for bound in bounds_of(X))
    lost = unresolved(low, high, np.float32)
    if len(lost):
        column = lost[0]
        raise ValueError(
            f"Column {column} of X, and {len(lost)} in all, has values from {low[column]:.17g} to "
            f"{high[column]:.17g}, whose differences float32 cannot hold. Subtract a constant from "
            "it first, such as its smallest value, or put a StandardScaler in front."
        )


def unresolved(
    low: NDArray[np.float64], high: NDArray[np.float64], dtype: DTypeLike
) -> NDArray[np.intp]:
    """Columns whose range from low to high covers too few steps of a float type."""
    largest = np.maximum(abs(low), abs(high))
    with np.errstate(over="ignore", invalid="ignore"):
        step = np.spacing(largest.astype(dtype)).astype(np.float64)
        # A column that is constant but for errors of rounding holds no differences to lose.
        varies = high - low > 100 * np.finfo(np.float64).eps * largest
        return np.flatnonzero(varies & (step > (high - low) / FEWEST_STEPS))
