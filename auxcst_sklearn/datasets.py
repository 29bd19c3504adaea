"""Rows of numbers as memory-mapped files, which an estimator trains on without loading them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ._checks.data import as_floats, check_no_mask, holds_string, is_frame
from ._checks.lazy_rows import unresolved

__all__ = ["to_memmap"]
__dir__ = __all__.copy  # without imported names


def to_memmap(
    source: Any,
    path: str | os.PathLike[str],
    *,
    dtype: DTypeLike = "float32",
    overwrite: bool = False,
) -> np.memmap[Any, np.dtype[Any]]:
    """Write rows of numbers to a file, block by block, and open it as a memory map.

    The file has numpy's format. ``numpy.load(path, mmap_mode="r")`` opens it again. Missing values
    become NaN.

    Parameters
    ----------
    source : array, DataFrame, or iterable of either
        All rows, or an iterable of blocks of rows, such as ``pandas.read_csv(path,
        chunksize=...)`` or polars' ``iter_slices()``. All DataFrames must have the same columns.
        Columns are written in the order of the first block. Arrays have shape (n, ...).
    path : str or path-like
        The file to write, such as ``"X.npy"``.
    dtype : dtype, default="float32"
        Type of the numbers in the file. Floats are rounded to it. Other values that it cannot hold
        raise an error. Integers in a column with missing values are floats.
    overwrite : bool, default=False
        Whether to replace an existing file. If this fails, the old file is unchanged.

    Returns
    -------
    memmap of shape (n_rows, n_columns), or (n_rows, ...) for arrays
        The file, opened for reading.

    Raises
    ------
    FileExistsError
        If the file exists, or if another call is writing it or was interrupted.
    TypeError
        If a column contains something other than numbers, such as strings, or if `source` is
        neither a table nor blocks of rows. Nothing is written.
    ValueError
        If blocks differ in their columns, or contain values that `dtype` cannot hold. Nothing is
        written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from auxcst_sklearn.datasets import to_memmap
    >>> blocks = (np.full((2, 3), i) for i in range(4))
    >>> with TemporaryDirectory() as folder:
    ...     X = to_memmap(blocks, Path(folder) / "X.npy")
    ...     print(X.shape, X.dtype, X[-1])
    (8, 3) float32 [3. 3. 3.]
    """
    path, temporary, numbers = Path(path), Path(f"{os.fspath(path)}.part"), np.dtype(dtype)
    if numbers.kind not in "iuf":
        raise ValueError(f"dtype={dtype!r}; expected a type of numbers, such as float32 or int64.")
    try:
        file = temporary.open("xb")  # of two calls at once, one fails
    except FileExistsError:
        raise FileExistsError(
            f"{temporary} exists: another call is writing it, or was interrupted. If no call is "
            "running, delete it."
        ) from None
    try:
        with file:
            if path.exists() and not overwrite:
                raise FileExistsError(f"{path} exists. Pass overwrite=True, or another path.")
            _write(_blocks(source), file, numbers)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return np.load(path, mmap_mode="r")


def _blocks(source: Any) -> Iterator[Any]:
    """Blocks of rows in memory."""
    for block in [source] if hasattr(source, "shape") or is_frame(source) else source:
        is_table = isinstance(block, np.ndarray) or is_frame(block)
        if not is_table or hasattr(block, "compute") or not getattr(block, "shape", ()):
            raise TypeError(
                f"source is or yields a {type(block).__name__}; expected dense arrays or "
                "DataFrames in memory, such as from pandas.read_csv(path, chunksize=100_000), from "
                "pyarrow (batch.to_pandas() for batch in table.to_batches()), or from dask "
                "(part.compute() for part in source.partitions)."
            )
        check_no_mask(block, "source")
        yield block


def _write(blocks: Iterator[Any], file: BinaryIO, dtype: np.dtype[Any]) -> None:
    """Write blocks of rows, one after the other, and check that their columns agree."""
    names: list[Any] = []
    shape: tuple[int, ...] = ()
    n_rows = 0
    for block in blocks:
        columns, of_row = _columns(block)
        if not file.tell():
            names, shape = list(columns), of_row
            low, high = np.full((2, len(names)), np.nan)
            _write_header(file, dtype, (0, *shape))
        if of_row != shape or {*columns} != {*names}:
            raise ValueError(
                f"After {n_rows:,} rows, source yields rows of shape {of_row} with the columns "
                f"{list(columns)[:9]}; expected {shape} and the columns {names[:9]} in all blocks."
            )
        rows = np.empty((len(block), len(names)), dtype)
        for j, name in enumerate(names):
            values = _numbers(columns[name], name)
            rows[:, j] = _cast(values, dtype, name)
            bounds = values.astype(np.float64)
            low[j] = np.fmin.reduce(bounds, initial=low[j])
            high[j] = np.fmax.reduce(bounds, initial=high[j])
        file.write(rows.data)
        n_rows += len(rows)
    if not n_rows or not names:
        raise ValueError("source is empty; expected at least one row and one column.")
    lost = unresolved(low, high, dtype) if dtype.kind == "f" else ()
    for j in np.flatnonzero(lost).tolist():  # such as timestamps
        raise ValueError(
            f"Column {names[j]!r} of source has values from {low[j]:.17g} to {high[j]:.17g}, whose "
            f"differences {dtype} cannot hold. Pass dtype='float64', or subtract a constant."
        )
    file.seek(0)
    _write_header(file, dtype, (n_rows, *shape))  # numpy leaves room for a longer number
    file.flush()
    os.fsync(file.fileno())


def _write_header(file: BinaryIO, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    descr = np.lib.format.dtype_to_descr(dtype)
    header = {"descr": descr, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def _columns(block: Any) -> tuple[dict[Any, Any], tuple[int, ...]]:
    """The columns of a block by their names, and the shape of a row."""
    if isinstance(block, np.ndarray):
        flat = np.asarray(block).reshape(len(block), math.prod(block.shape[1:]))
        return dict(enumerate(flat.T)), block.shape[1:]
    names = list(block.columns)
    if len(set(names)) < len(names):
        raise ValueError(f"source has the columns {names}; expected each name once.")
    return {name: block[name] for name in names}, (len(names),)


def _numbers(column: Any, name: Any) -> NDArray[Any]:
    """A column as numbers. With missing values, which are NaN, integers become floats."""
    values = np.asarray(column)
    try:
        plain = np.array(values.tolist()) if values.dtype.kind == "O" else values
        if plain.dtype.kind not in "biufO" or holds_string(values):
            raise TypeError(f"its type is {values.dtype}")
        return as_floats(plain if plain.ndim == 1 else values)
    except (TypeError, ValueError) as error:
        cells = sorted(values.tolist(), key=lambda cell: not isinstance(cell, str))
        raise TypeError(
            f"Column {name!r} of source contains {cells[0]!r}; expected numbers "
            f"({error}). Convert it to numbers first, such as the days since a date or the codes "
            "of categories."
        ) from error


def _cast(values: NDArray[Any], dtype: np.dtype[Any], name: Any) -> NDArray[Any]:
    """Numbers in the type of the file. Values that it cannot hold are an error."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
        if values.dtype.kind == dtype.kind == "f":
            wrong = np.isinf(cast) & ~np.isinf(values)
        else:
            wrong = (cast.astype(values.dtype) != values) | ((cast < 0) != (values < 0))
    if wrong.any():
        value = values[wrong][0].item()
        raise ValueError(
            f"Column {name!r} of source contains {value!r}, which {dtype} cannot hold. Pass "
            "another dtype, such as float64."
        )
    return cast
