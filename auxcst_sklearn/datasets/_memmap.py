"""Tables as memory-mapped files, which an estimator trains on without loading them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from .._checks.decorators import validate_params
from .._inputs.float32 import unresolved
from ._tables import BATCH_ROWS, Categories, Table, as_table, levels_of, to_batches, write_batch


@validate_params(
    {
        "source": [object],
        "path": [str, os.PathLike],
        "columns": ["array-like", str, Integral, None],
        "dtype": [object],
        "like": [str, os.PathLike, None],
        "shuffle": ["boolean"],
        "random_state": [Integral, None],
        "overwrite": ["boolean"],
        "verbose": ["verbose"],
    },
    prefer_skip_nested_validation=True,
)
def to_memmap(
    source: Any,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | Sequence[int] | str | int | None = None,
    dtype: DTypeLike = "float32",
    like: str | os.PathLike[str] | None = None,
    shuffle: bool = False,
    random_state: int | None = None,
    overwrite: bool = False,
    verbose: int | bool = 0,
) -> np.memmap[Any, np.dtype[Any]]:
    """Write a table to a file of numbers, batch by batch, and open it as a memory map.

    The file is in numpy's format: ``numpy.load(path, mmap_mode="r")`` opens it again. Features,
    labels and costs are written by one call each, with their `columns`. Strings and categories
    become codes from 0 in the order of the sorted strings; missing ones become NaN. In CSV files
    NA, null and the like are missing values; elsewhere they are strings. A file ``path + ".json"``
    holds the names of the columns and these strings.

    Parameters
    ----------
    source : path, array, DataFrame or table
        A file or folder of parquet, CSV, Arrow or Feather files, or a ``.npy`` file; a numpy or
        zarr array; a pandas or polars DataFrame; a pyarrow Table or Dataset; a Hugging Face data
        set; a dask array or DataFrame, whose workers write their parts themselves, and must have
        access to the folder.
    path : str or path-like
        The file to write, such as ``"X.npy"``.
    columns : sequence of str or int, str, int or None, default=None
        Names of the columns, or positions for arrays, in the order in which to write them; None for
        all, or for those of `like`. A single name or position gives an array of one dimension.
    dtype : dtype, default="float32"
        Type of the file. Values that it cannot hold raise an error; floats are rounded.
    like : str or path-like, default=None
        An earlier file of `to_memmap`, such as that of the training data, whose columns, in their
        order, and codes are used. Strings that it does not have become -1.
    shuffle : bool, default=False
        Whether to write the rows in random order, for a source sorted by class or date.
    random_state : int, default=None
        Determines the order; required with `shuffle`. Use the same int for features, labels and
        costs.
    overwrite : bool, default=False
        Whether to replace an existing file.
    verbose : int or bool, default=0
        Whether to print the number of rows written.

    Returns
    -------
    memmap of shape (n_rows, n_columns) or (n_rows,)
        The file, opened for reading.

    Raises
    ------
    FileExistsError
        If the file exists, or if another call was interrupted or is writing it.
    ValueError, TypeError
        If a column is unknown or missing, holds neither numbers nor strings, or values that `dtype`
        cannot hold; then nothing is written.
    ImportError
        If pyarrow is needed and missing; the extra ``auxcst_sklearn[arrow]`` installs it.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from auxcst_sklearn.datasets import to_memmap
    >>> with TemporaryDirectory() as folder:
    ...     X = to_memmap(np.arange(12.0).reshape(4, 3), Path(folder) / "X.npy", columns=[2, 0])
    ...     print(X.shape, X.dtype, X[1])
    (4, 2) float32 [5. 3.]
    """
    path, dtype = Path(path), _check_dtype(dtype)
    single = isinstance(columns, (str, Integral))
    chosen: Any = [columns] if single else columns
    if shuffle and not isinstance(random_state, Integral):
        raise ValueError(
            f"random_state={random_state!r} with shuffle=True; expected an int, with which "
            "features, labels and costs are written in the same order."
        )
    part, about = Path(f"{path}.part"), Path(f"{path}.json.part")
    try:
        part.touch(exist_ok=False)  # two calls cannot both succeed
    except FileExistsError:
        raise FileExistsError(
            f"{part} is there already: another call writes it, or was killed. If none does, delete "
            "it."
        ) from None
    try:
        if path.exists() and not overwrite:
            raise FileExistsError(f"{path} is there already; pass overwrite=True, or another path.")
        described = {} if like is None else _description(like)
        table = as_table(source, chosen)
        if described and chosen is None:
            single = described.get("is_single", False)
            names = _columns_of(described, table, f"like={like!r}")
            table = table if names == table.names else as_table(source, names)
        shape: tuple[int, ...] = (table.n_rows,) if single else (table.n_rows, len(table.names))
        if 0 in shape:
            raise ValueError(f"source has shape {shape}; expected at least one row and one column.")
        categories = _known(described, table) if described else _find_categories(table)
        random = np.random.RandomState(random_state)
        order = random.permutation(table.n_rows) if shuffle else None
        _create(part, shape, dtype)
        _write(table, part, categories, order, verbose)
        _check_resolution(np.load(part, mmap_mode="r"), table.names)
        _describe(about, table, categories, single)
        os.replace(part, path)
        os.replace(about, f"{path}.json")
    except BaseException:
        part.unlink(missing_ok=True)
        about.unlink(missing_ok=True)
        raise
    written: np.memmap[Any, np.dtype[Any]] = np.load(path, mmap_mode="r")
    return written


def _check_dtype(dtype: Any) -> np.dtype:
    found: np.dtype[Any] = np.dtype(dtype)
    if found.kind not in "iuf":
        raise ValueError(f"dtype={dtype!r}; expected a type of numbers, such as float32 or int64.")
    return found


def _find_categories(table: Table) -> Categories:
    """The sorted strings of each column that has strings."""
    found: dict[Any, set[Any]] = {}
    if table.parts is None:
        of_batches = (levels_of(batch, table.names) for batch in table.batches())
    else:
        import dask

        find = dask.delayed(_levels_of)
        of_batches = iter(dask.compute(*(find(part, table.names) for part, _ in table.parts)))
    for levels in of_batches:
        _add_levels(found, levels)
        if not found and table.parts is None and table.one_schema:  # not read twice
            break
    return {name: sorted(strings) for name, strings in found.items()}


def _description(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Columns and categories of an earlier file, as `_describe` has written them."""
    file = Path(f"{os.fspath(path)}.json")
    if not file.is_file():
        raise FileNotFoundError(
            f"like={os.fspath(path)!r}: {file} is missing, which to_memmap writes beside it."
        )
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _columns_of(described: dict[str, Any], table: Table, like: str) -> list[Any]:
    """The columns of an earlier file, in its order; JSON may have made strings of their names."""
    names = {str(name): name for name in table.names}
    if missing := [name for name in described["columns"] if str(name) not in names]:
        raise ValueError(
            f"{like} has the columns {described['columns']}, of which source lacks {missing}. To "
            "write others, pass columns."
        )
    return [names[str(name)] for name in described["columns"]]


def _known(described: dict[str, Any], table: Table) -> Categories:
    """The strings of the columns of an earlier file."""
    known = described["categories"]
    return {name: known[str(name)] for name in table.names if str(name) in known}


def _levels_of(part: Any, names: list[Any]) -> dict[Any, set[Any]]:
    """The strings of a dask partition."""
    found: dict[Any, set[Any]] = {}
    for batch in to_batches(part):
        _add_levels(found, levels_of(batch, names))
    return found


def _add_levels(found: dict[Any, set[Any]], levels: dict[Any, set[Any]]) -> None:
    for name, strings in levels.items():
        found.setdefault(name, set()).update(strings)


def _create(path: Path, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Create the file in its full size, so that a full disk is detected before writing."""
    np.lib.format.open_memmap(path, "w+", dtype, shape)
    if hasattr(os, "posix_fallocate"):
        with open(path, "r+b") as file:
            os.posix_fallocate(file.fileno(), 0, path.stat().st_size)


def _write(
    table: Table,
    path: Path,
    categories: Categories,
    order: NDArray[Any] | None,
    verbose: int | bool,
) -> None:
    """Write all rows, and count them."""
    if table.parts is None:
        batches = table.batches()
        counts = [_write_batches(batches, path, 0, table.names, categories, order, verbose)]
    else:
        import dask

        starts = np.cumsum([0, *(size for _, size in table.parts)]).tolist()
        write = dask.delayed(_write_part)
        tasks = [
            write(part, path, start, size, table.names, categories, order)
            for (part, size), start in zip(table.parts, starts)
        ]
        counts = dask.compute(*tasks)
    if (n := sum(counts)) != table.n_rows:
        raise ValueError(
            f"source gave {n} rows, but has {table.n_rows}; expected the same. Did it change?"
        )


def _write_part(
    part: Any,
    path: Path,
    start: int,
    size: int,
    names: list[Any],
    categories: Categories,
    order: Any,
) -> int:
    """Write a dask partition, on the worker that holds it."""
    n = _write_batches(iter(to_batches(part)), path, start, names, categories, order, False)
    if n != size:
        raise ValueError(f"A partition of source has {n} rows; expected {size}. Did it change?")
    return n


def _write_batches(
    batches: Any,
    path: Path,
    start: int,
    names: list[Any],
    categories: Categories,
    order: NDArray[Any] | None,
    verbose: int | bool,
) -> int:
    out: Any = np.lib.format.open_memmap(path, "r+")
    out, n_rows, stop = out.reshape(len(out), -1), len(out), start
    for batch in batches:
        n = len(batch)
        if stop + n > n_rows:
            return stop + n - start
        if order is None:
            write_batch(batch, out[stop : stop + n], names, categories)
        else:
            rows = np.empty((n, out.shape[1]), out.dtype)
            write_batch(batch, rows, names, categories)
            out[order[stop : stop + n]] = rows
        stop += n
        if verbose:
            print(f"to_memmap: {stop:,} of {n_rows:,} rows")
    out.flush()
    return stop - start


def _describe(path: Path, table: Table, categories: Categories, single: bool) -> None:
    """Write the names of the columns and the strings of the codes to a second file."""
    names = [name if isinstance(name, int) else str(name) for name in table.names]
    strings = {str(name): levels for name, levels in categories.items()}
    about = {"columns": names, "is_single": single, "categories": strings}
    text = json.dumps(about, indent=1)
    path.write_text(text + "\n", encoding="utf-8")


def _check_resolution(values: NDArray[Any], names: list[Any]) -> None:
    """Raise an error for columns, such as timestamps, whose differences are lost in rounding."""
    if values.dtype.kind != "f":
        return
    rows = values.reshape(len(values), -1)
    blocks = [rows[start : start + BATCH_ROWS] for start in range(0, len(rows), BATCH_ROWS)]
    low, high = (
        f.reduce([f.reduce(block, axis=0) for block in blocks]).astype(np.float64)
        for f in (np.fmin, np.fmax)
    )
    for j in unresolved(low, high, values.dtype):
        raise ValueError(
            f"Column {names[j]!r} of source has values from {low[j]:.17g} to {high[j]:.17g}, "
            f"whose differences {values.dtype} cannot hold. Pass dtype='float64', or subtract a "
            "constant."
        )
