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
from scipy import sparse

from .._checks.masks import check_no_mask

# Number of rows converted at a time.
BATCH_ROWS = 65_536
FORMATS = {".parquet": "parquet", ".csv": "csv", ".arrow": "arrow", ".feather": "feather"}
UNKNOWN = -1
# Relative differences up to this are errors of rounding, which a constant column may have.
ROUNDING = 100 * float(np.finfo(np.float64).eps)

Name = str | int
Categories = dict[Name, list[str]]


@dataclass
class Table:
    """Rows in order: their number, the names of the columns, and a generator of batches.

    For a dask table, `parts` holds its delayed partitions, each with its number of rows.
    """

    n_rows: int
    names: list[Any]
    batches: Callable[[], Iterator[Any]]
    parts: list[tuple[Any, int]] | None = None
    one_schema: bool = True  # whether a column has the same type in all batches


def import_pyarrow() -> Any:
    """Import pyarrow, or name the extra that installs it."""
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            "to_memmap reads tables by pyarrow, which is not installed: pip install "
            '"auxcst_sklearn[arrow]".'
        ) from error
    return pyarrow


def as_table(source: Any, columns: Sequence[Name] | None) -> Table:
    """Read the description of a table, but no rows."""
    if isinstance(source, (str, os.PathLike)):
        return _of_file(Path(source), columns)
    package = type(source).__module__.split(".")[0]
    if package == "dask" or package.startswith("dask_"):
        return _of_dask(source, columns)
    if package == "datasets":
        return _of_hugging_face(source, columns)
    if package == "pyarrow":
        return _of_arrow(source, columns)
    if hasattr(source, "collect"):
        raise TypeError("source is a LazyFrame; expected a DataFrame. Pass source.collect().")
    if hasattr(source, "columns") and hasattr(source, "dtypes"):
        if len(set(source.columns)) < len(source.columns):
            raise ValueError(f"source has the columns {list(source.columns)}, some of them twice.")
        names = _chosen(list(source.columns), columns)
        part = source[names]
        return Table(
            len(part),
            names,
            lambda: chain.from_iterable(map(to_batches, _cut(part))),
            one_schema=False,
        )
    if sparse.issparse(source):
        raise TypeError("source is sparse; expected a dense array. Pass source.toarray().")
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
    chosen = [name.item() if isinstance(name, np.generic) else name for name in columns]
    if unknown := [name for name in chosen if name not in names]:
        raise ValueError(f"columns holds {unknown}; expected some of {names}.")
    if len(set(chosen)) < len(chosen):
        raise ValueError(f"columns={chosen} names a column twice; expected each once.")
    return chosen


def _check_dimensions(source: Any) -> None:
    if len(source.shape) not in (1, 2):
        raise ValueError(f"source has shape {source.shape}; expected rows of numbers, (n, d).")


def _of_array(source: Any, columns: Sequence[Name] | None) -> Table:
    _check_dimensions(source)
    check_no_mask(source, "source")
    width = source.shape[1] if len(source.shape) == 2 else 1
    names = _chosen(list(range(width)), columns)

    def batches() -> Iterator[NDArray[Any]]:
        for rows in _cut(source):
            yield np.asarray(rows).reshape(-1, width)[:, names]

    return Table(source.shape[0], names, batches)


def _of_file(path: Path, columns: Sequence[Name] | None) -> Table:
    if path.suffix == ".npy":
        return _of_array(np.load(path, mmap_mode="r"), columns)
    files, suffix = [path], path.suffix
    if path.is_dir():
        files = _files_below(path)
        suffix = files[0].suffix if files else ""
    if suffix not in FORMATS:
        raise ValueError(
            f"source={str(path)!r} ends in none of {', '.join([*FORMATS, '.npy'])}; expected such "
            "a file, or a folder of them."
        )
    import_pyarrow()
    from pyarrow import dataset

    kind = _csv_format(files) if suffix == ".csv" else FORMATS[suffix]
    names = [dataset.dataset(file, format=kind).schema.names for file in files]
    for file, its in zip(files, names):
        if sorted(its) != sorted(names[0]):
            raise ValueError(
                f"{file} has the columns {its}, and {files[0]} {names[0]}; expected the same."
            )
    # Names of folders such as "month=5" below path are columns, but none above it.
    hive = {"partitioning": "hive", "partition_base_dir": str(path)} if path.is_dir() else {}
    found = dataset.dataset([str(f) for f in files], format=kind, **hive)
    return _of_arrow(found, columns)


def _files_below(folder: Path) -> list[Path]:
    """The files of a folder, without the hidden and the temporary ones of other programs."""
    files = [
        path
        for path in sorted(folder.rglob("*.*"))
        if path.suffix in FORMATS
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if len(found := sorted({path.suffix for path in files})) > 1:
        raise ValueError(
            f"source={str(folder)!r} holds files that end in {' and '.join(found)}; expected one "
            "format. Move the others to another folder."
        )
    return files


def _csv_format(files: Sequence[Path]) -> Any:
    """CSV options: empty fields are missing values; integers may be followed by other numbers."""
    import pyarrow as pa
    from pyarrow import csv, dataset

    def of(types: dict[str, Any]) -> Any:
        options = csv.ConvertOptions(column_types=types, strings_can_be_null=True)
        return dataset.CsvFileFormat(convert_options=options)

    found = dataset.dataset([str(f) for f in files], format=of({}))
    narrow = [f.name for f in found.schema if str(f.type) in ("int64", "null")]

    def reads(columns: list[str]) -> bool:
        try:
            for _ in found.to_batches(columns=columns):
                pass
        except pa.ArrowInvalid:  # the types of the first rows do not fit all rows
            return False
        return True

    wide = [] if reads(narrow) else [name for name in narrow if not reads([name])]
    return of(dict.fromkeys(wide, pa.float64()))


def _without_index(schema: Any) -> list[str]:
    """Names of the columns, without a pandas index, which a DataFrame in memory also drops."""
    about = schema.pandas_metadata or {}
    index = {name for name in about.get("index_columns", []) if isinstance(name, str)}
    return [name for name in schema.names if name not in index]


def _of_arrow(source: Any, columns: Sequence[Name] | None) -> Table:
    from pyarrow import Table as ArrowTable
    from pyarrow.dataset import Dataset

    if isinstance(source, Dataset):
        names = _chosen(_without_index(source.schema), columns)
        return Table(source.count_rows(), names, lambda: _read(source, names))
    if not isinstance(source, ArrowTable):
        raise TypeError(
            f"source is a {type(source).__name__} of pyarrow; expected a Table or a Dataset, whose "
            "number of rows is known."
        )
    names = _chosen(_without_index(source.schema), columns)
    return Table(len(source), names, lambda: iter(source.select(names).to_batches(BATCH_ROWS)))


def _read(source: Any, names: list[Any]) -> Iterator[Any]:
    import pyarrow as pa

    try:
        yield from source.to_batches(columns=names, batch_size=BATCH_ROWS)
    except pa.ArrowInvalid as error:
        files = ", ".join(getattr(source, "files", []))
        raise ValueError(
            f"source {files} cannot be read: {error}. A column of a CSV file has the type of its "
            "first rows; expected the same in all of them."
        ) from error


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

    if not hasattr(source, "chunks") and not hasattr(source, "columns"):
        raise TypeError(
            f"source is a {type(source).__name__} of dask; expected an array or a DataFrame."
        )
    if hasattr(source, "chunks"):  # an array
        _check_dimensions(source)
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
    """Rows in memory, an array or a DataFrame, as batches."""
    if isinstance(part, np.ndarray):
        return [part.reshape(len(part), -1)]
    pa = import_pyarrow()
    if hasattr(part, "to_arrow"):
        batches: list[Any] = part.to_arrow().to_batches()
        return batches
    try:
        return [pa.RecordBatch.from_pandas(part, preserve_index=False)]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(
            f"source holds a column that is neither all numbers nor all strings ({error}). Convert "
            "it, such as by astype(str)."
        ) from error


# ------------------------------------------------------------------- columns


def is_text(column: Any) -> bool:
    """Whether a column of a record batch holds strings or categories."""
    from pyarrow import types

    kinds = ("is_dictionary", "is_string", "is_large_string", "is_string_view")  # the last is new
    return any(getattr(types, kind)(column.type) for kind in kinds if hasattr(types, kind))


def levels_of(batch: Any, names: Sequence[Name]) -> dict[Name, set[Any]]:
    """The distinct strings of each string column."""
    if isinstance(batch, np.ndarray):
        return {}
    return {
        name: set(column.unique().cast("string").to_pylist()) - {None}
        for name, column in zip(names, batch.columns)
        if is_text(column)
    }


def write_batch(
    batch: Any, out: NDArray[Any], names: Sequence[Name], categories: Categories
) -> None:
    """Write the columns of a batch into rows (n, d); values are unchanged or raise an error."""
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
    if categories is not None and column.null_count == len(column):
        return np.full(len(column), np.nan)
    if categories is not None and not is_text(column):
        raise TypeError(
            f"Column {name!r} of source holds {column.type} in some rows, but strings in others, "
            "or in the file of like; expected one kind. Convert it, such as by astype(str)."
        )
    numbers = _codes(column, categories) if categories is not None else _numbers(column, name)
    values: NDArray[Any] = numbers.to_numpy(zero_copy_only=False)
    return values


def _codes(column: Any, categories: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    known = pa.array(categories, pa.string())
    codes = compute.index_in(column.cast("string"), value_set=known)
    return compute.if_else(column.is_null(), codes, compute.fill_null(codes, UNKNOWN))


def _numbers(column: Any, name: Name) -> Any:
    import pyarrow as pa

    t = column.type
    if is_text(column):
        raise TypeError(
            f"Column {name!r} of source holds {t}, but numbers in the file of like; expected the "
            "same kind."
        )
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
    """Values in the type of the file; an error for values that it cannot hold."""
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
        if dtype.kind == "f" and values.dtype.kind == "f":
            differ = not np.allclose(values[:1], values, rtol=ROUNDING, atol=0, equal_nan=True)
            lost = differ and bool((cast[:1] == cast).all())
            wrong = (np.isinf(cast) & ~np.isinf(values)) | lost
        elif values.dtype == dtype:
            return cast
        else:
            wrong = (cast.astype(values.dtype) != values) | ((cast < 0) != (values < 0))
    if wrong.any():
        raise ValueError(
            f"Column {name!r} of source holds {values[wrong][0]!r}, which {dtype} cannot hold; "
            "pass another dtype, such as float64."
        )
    return cast
