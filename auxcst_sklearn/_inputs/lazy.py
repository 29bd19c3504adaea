"""Rows that are selected and prepared when they are read, without a copy of all rows."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Rows on disk with more bytes than this, as network inputs, are not held in memory.
DISK_BYTES = 2**27
# With more bytes than this, rows in memory are not copied either, and are trained on in blocks.
LARGE_BYTES = 2**30


class LazyRows:
    """Rows of an array, or those of an index, prepared when they are read."""

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


def pick(X: Any, index: NDArray[Any]) -> Any:
    """Some of the rows, not copied if they are too many."""
    if not stays_lazy(X):
        return X[index]
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
