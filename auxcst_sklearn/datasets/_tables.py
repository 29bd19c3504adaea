"""Tables of any kind as batches of rows, and their columns as numbers: for `to_memmap`.

A batch is an array of rows, or a record batch of pyarrow.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Rows that are converted at a time.
BATCH_ROWS = 65_536
FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow", ".feather": "feather"}
UNKNOWN = -1

Name = str | int
Categories = dict[Name, list[str]]


@dataclass
class Table:
    """Rows in their order: how many, the names of the columns, and what yields batches of them.

    Of a table of dask, `parts` are its delayed partitions, each with its number of rows.
    """

    n_rows: int
    names: list[Any]
    batches: Callable[[], Iterator[Any]]
    parts: list[tuple[Any, int]] | None = None


def import_pyarrow() -> Any:
    """Import pyarrow, or name the extra that has it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "to_memmap reads tables by pyarrow, which is not installed: pip install "
            '"auxcst_sklearn[arrow]".'
        ) from error
    return pyarrow


def as_table(source: Any, columns: Sequence[Name] | None) -> Table:
    """Read what describes a table, and no rows."""
    if isinstance(source, (str, os.PathLike)):
        return _of_file(Path(source), columns)
    package = type(source).__module__.split(".")[0]
    if package == "dask" or package.startswith("dask_"):
        return _of_dask(source, columns)
    if package == "datasets":
        return _of_hugging_face(source, columns)
    if package == "pyarrow":
        return _of_arrow(source, columns)
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        names = _chosen(list(source.columns), columns)
        part = source[names]
        return Table(len(part), names, lambda: chain.from_iterable(map(to_batches, _cut(part))))
    if hasattr(source, "shape") and hasattr(source, "__getitem__"):
        return _of_array(source, columns)
    raise TypeError(
        f"source is a {type(source).__name__}; expected the path of a parquet, CSV, Arrow or npy "
        "file, an array, a DataFrame, or a table of pyarrow, datasets or dask."
    )


def _cut(rows: Any) -> Iterator[Any]:
    n = rows.shape[0] if hasattr(rows, "shape") else len(rows)
    return (rows[start : start + BATCH_ROWS] for start in range(0, n, BATCH_ROWS))


def _chosen(names: list[Any], columns: Sequence[Name] | None) -> list[Any]:
    if columns is None:
        return names
    if unknown := [name for name in columns if name not in names]:
        raise ValueError(f"columns holds {unknown}; expected some of {names}.")
    return list(columns)


def _of_array(source: Any, columns: Sequence[Name] | None) -> Table:
    if len(source.shape) not in (1, 2):
        raise ValueError(f"source has shape {source.shape}; expected rows of numbers, (n, d).")
    width = source.shape[1] if len(source.shape) == 2 else 1
    names = _chosen(list(range(width)), columns)

    def batches() -> Iterator[NDArray[Any]]:
        for rows in _cut(source):
            yield np.asarray(rows).reshape(-1, width)[:, names]

    return Table(source.shape[0], names, batches)


def _of_file(path: Path, columns: Sequence[Name] | None) -> Table:
    if path.suffix == ".npy":
        return _of_array(np.load(path, mmap_mode="r"), columns)
    suffix = path.suffix
    if path.is_dir():
        suffix = next((p.suffix for p in sorted(path.rglob("*.*")) if p.suffix in FORMATS), "")
    if suffix not in FORMATS:
        raise ValueError(
            f"source={str(path)!r} ends in none of {', '.join([*FORMATS, '.npy'])}; expected such "
            "a file, or a folder of them."
        )
    pa = import_pyarrow()
    from pyarrow import csv, dataset

    found = dataset.dataset(path, format=FORMATS[suffix])
    if suffix == ".csv":  # whole numbers and gaps at the top may be followed by other numbers
        wide = {
            f.name: pa.float64()
            for f in found.schema
            if pa.types.is_integer(f.type) or pa.types.is_null(f.type)
        }
        options = csv.ConvertOptions(column_types=wide)
        found = dataset.dataset(path, format=dataset.CsvFileFormat(convert_options=options))
    return _of_arrow(found, columns)


def _of_arrow(source: Any, columns: Sequence[Name] | None) -> Table:
    from pyarrow import Table as ArrowTable
    from pyarrow.dataset import Dataset

    if isinstance(source, Dataset):
        names = _chosen(source.schema.names, columns)
        batches = lambda: source.to_batches(columns=names, batch_size=BATCH_ROWS)  # noqa: E731
        return Table(source.count_rows(), names, batches)
    if not isinstance(source, ArrowTable):
        raise TypeError(
            f"source is a {type(source).__name__} of pyarrow; expected a Table or a Dataset, whose "
            "number of rows is known."
        )
    names = _chosen(source.column_names, columns)
    return Table(len(source), names, lambda: iter(source.select(names).to_batches(BATCH_ROWS)))


def _of_hugging_face(source: Any, columns: Sequence[Name] | None) -> Table:
    if not hasattr(source, "__len__"):
        raise TypeError(
            "source is a stream without a length; expected a data set of which the number of rows "
            "is known."
        )
    names = _chosen(list(source.column_names), columns)

    def batches() -> Iterator[Any]:
        for table in source.with_format("arrow").iter(batch_size=BATCH_ROWS):
            yield from table.select(names).to_batches()

    return Table(len(source), names, batches)


def _of_dask(source: Any, columns: Sequence[Name] | None) -> Table:
    import dask

    if hasattr(source, "chunks"):  # an array
        width = source.shape[1] if source.ndim == 2 else 1
        names = _chosen(list(range(width)), columns)
        if any(size != size for size in source.chunks[0]):
            source = source.compute_chunk_sizes()
        if source.ndim == 2:
            source = source[:, names].rechunk({1: -1})
        delayed, sizes = source.to_delayed().ravel().tolist(), source.chunks[0]
    else:
        names = _chosen(list(source.columns), columns)
        delayed = source[names].to_delayed()
        sizes = dask.compute(*(dask.delayed(len)(part) for part in delayed))

    def batches() -> Iterator[Any]:
        for part in delayed:
            yield from to_batches(part.compute())

    return Table(sum(sizes), names, batches, list(zip(delayed, sizes)))


def to_batches(part: Any) -> list[Any]:
    """Rows in memory, an array or a frame, as batches."""
    if isinstance(part, np.ndarray):
        return [part.reshape(len(part), -1)]
    pa = import_pyarrow()
    if hasattr(part, "to_arrow"):
        batches: list[Any] = part.to_arrow().to_batches()
        return batches
    return [pa.RecordBatch.from_pandas(part, preserve_index=False)]


# ------------------------------------------------------------------- columns


def is_text(column: Any) -> bool:
    """Whether a column of a record batch holds strings or categories."""
    from pyarrow import types

    t = column.type
    return bool(types.is_dictionary(t) or types.is_string(t) or types.is_large_string(t))


def levels_of(batch: Any) -> dict[Name, set[Any]]:
    """The different strings of each column that has some."""
    if isinstance(batch, np.ndarray):
        return {}
    return {
        name: set(column.unique().cast("string").to_pylist()) - {None}
        for name, column in zip(batch.schema.names, batch.columns)
        if is_text(column)
    }


def write_batch(
    batch: Any, out: NDArray[Any], names: Sequence[Name], categories: Categories
) -> None:
    """Write the columns of a batch into rows (n, d), each value as it is or refused."""
    for j, name in enumerate(names):
        if isinstance(batch, np.ndarray):
            values = batch[:, j]
        else:
            values = _values(batch.column(j), name, categories.get(name))
        if values.dtype.kind not in "biuf":
            raise TypeError(
                f"Column {name!r} of source holds {values.dtype}; expected numbers. Strings are "
                "for DataFrames and tables."
            )
        out[:, j] = _cast(values, out.dtype, name)


def _values(column: Any, name: Name, categories: list[str] | None) -> NDArray[Any]:
    numbers = _codes(column, categories) if categories is not None else _numbers(column, name)
    values: NDArray[Any] = numbers.to_numpy(zero_copy_only=False)
    return values


def _codes(column: Any, categories: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    if not is_text(column):
        column = column.cast("string")
    known = pa.array(categories, pa.string())
    codes = compute.index_in(column.cast("string"), value_set=known)
    return compute.if_else(column.is_null(), codes, compute.fill_null(codes, UNKNOWN))


def _numbers(column: Any, name: Name) -> Any:
    import pyarrow as pa

    t = column.type
    if pa.types.is_null(t) or pa.types.is_decimal(t):
        return column.cast(pa.float64())
    if not (pa.types.is_integer(t) or pa.types.is_floating(t) or pa.types.is_boolean(t)):
        raise TypeError(
            f"Column {name!r} of source holds {t}; expected numbers, strings or categories. Make "
            "numbers of it first, such as the days since a date, or leave it out of columns."
        )
    if column.null_count and not pa.types.is_floating(t):
        return column.cast(pa.float64())
    return column


def _cast(values: NDArray[Any], dtype: np.dtype, name: Name) -> NDArray[Any]:
    """Values in the type of the file; refused where it holds others."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
        if dtype.kind == "f" and values.dtype.kind == "f":
            differ = bool((values[:1] != values).any() and (cast[:1] == cast).all())
            wrong = (np.isinf(cast) & ~np.isinf(values)) | differ
        elif values.dtype == dtype:
            return cast
        else:
            wrong = cast.astype(values.dtype) != values
    if wrong.any():
        raise ValueError(
            f"Column {name!r} of source holds {values[wrong][0]!r}, which {dtype} cannot hold; "
            "pass another dtype, such as float64."
        )
    return cast
