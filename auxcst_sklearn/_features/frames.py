"""Access to pandas and polars DataFrames, without importing either."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, time, timedelta
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars DataFrame."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


# Data on a disk or on other machines, by the module of their type, and how to load them.
_ELSEWHERE = {
    "dask.": "X.compute()",
    "dask_expr.": "X.compute()",
    "zarr.": "X[:]",
    "pyarrow.": "X.to_pandas()",
    "datasets.arrow_dataset": "X.to_pandas()",
    "datasets.iterable_dataset": "its rows",
    "polars.lazyframe": "X.collect()",
}


def check_in_memory(X: Any, name: str = "X") -> None:
    """Raise an error for data that numpy would silently load as a whole, or misinterpret."""
    if isinstance(X, np.ndarray | list):
        return
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(X).__mro__]
    for prefix, read in _ELSEWHERE.items():
        if any(kind.startswith(prefix) for kind in kinds):
            raise ValueError(
                f"{name} is a {kinds[0]}, which would be read as a whole; expected rows in memory "
                "or a memory map. Write them to one by auxcst_sklearn.datasets.to_memmap, pass "
                f"{read.replace('X', name)} if they are few, and predict block by block."
            )


def check_frame(X: Any) -> None:
    """Raise an error for data for which numpy and scikit-learn give unhelpful messages."""
    check_in_memory(X)
    _refuse_one_row(X)
    if is_frame(X) and not X.shape[1]:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while at least 1 is required: X is a "
            "DataFrame without columns."
        )
    for where, held, are_times in _unusable(X):
        advice = (
            "Make features of it first, such as the days since a date, the month, or the hour."
            if are_times
            else "Give each value a column of its own, or leave it out."
        )
        raise ValueError(f"{where} holds {held}; expected numbers or categories. {advice}")


# By the type of a column, in lower case, or of a value in a column or an array of objects.
_TIMES = ("date", "time", "duration", "period")
_CONTAINERS = ("list", "array", "struct")
_TIME_TYPES = (date, time, timedelta, np.datetime64, np.timedelta64)
_CONTAINER_TYPES = (list, tuple, set, np.ndarray)  # scikit-learn expects numpy's error for a dict


def _unusable(X: Any) -> Iterator[tuple[str, str, bool]]:
    """Where X holds times or containers, what is held there, and whether it is times."""
    if is_frame(X):
        for j, dtype in enumerate(X.dtypes):
            where, kind = f"Column {X.columns[j]!r} of X", str(dtype).lower()
            if kind.startswith(_TIMES):
                yield where, f"times ({dtype})", True
            elif kind.startswith(_CONTAINERS):
                yield where, f"values of type {dtype}", False
            elif kind == "object":
                yield from _unusable_objects(where, objects(select(X, j)).flat)
    elif isinstance(X, np.ndarray) and X.dtype.kind in "mM":
        yield "X", f"times ({X.dtype})", True
    elif isinstance(X, np.ndarray) and X.dtype.kind == "O":
        yield from _unusable_objects("X", X.flat)
    elif isinstance(X, list):
        rows = (row if isinstance(row, list | tuple | np.ndarray) else [row] for row in X[:1])
        yield from ((w, h, t) for w, h, t in _unusable_objects("X", chain(*rows)) if t)


def _unusable_objects(where: str, values: Iterator[Any]) -> Iterator[tuple[str, str, bool]]:
    for value in values:
        if isinstance(value, _TIME_TYPES + _CONTAINER_TYPES):
            are_times = isinstance(value, _TIME_TYPES)
            yield where, f"{'times, such as ' if are_times else ''}{value!r}", are_times
            return


def _refuse_one_row(X: Any) -> None:
    """Raise an error for one row as a dict or a Series, and for a list of dicts."""
    is_series = hasattr(X, "iloc") and X.ndim == 1
    are_dicts = isinstance(X, list) and len(X) > 0 and isinstance(X[0], dict)
    is_dict = isinstance(X, dict) and not sparse.issparse(X)  # a matrix of keys is one, too
    if is_dict or is_series or are_dicts:
        kind = "list of dicts" if are_dicts else type(X).__name__
        raise ValueError(
            f"X is a {kind}; expected a table of two dimensions, with one row per sample. Pass "
            f"{'pd.DataFrame(X)' if are_dicts else 'pd.DataFrame([row]) for one row'}."
        )


def select(X: Any, columns: int | Sequence[int]) -> Any:
    """A column by its position, or a DataFrame of several."""
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def objects(column: Any) -> NDArray[Any]:
    """The values of a column, with NaN for missing ones."""
    if hasattr(column, "iloc"):
        values: NDArray[Any] = column.to_numpy(dtype=object, na_value=np.nan)
        return values
    values = np.empty(len(column), dtype=object)
    values[:] = [np.nan if value is None else value for value in column.to_list()]
    return values


def holds_categories(column: Any) -> bool:
    """Whether a column has categories or strings; objects that are all numbers are numbers."""
    name = str(column.dtype)
    if not hasattr(column, "iloc"):
        return name.split("(")[0] in ("Binary", "Categorical", "Enum", "String", "Utf8")
    if column.dtype.kind not in "OUS":
        return False
    return name != "object" or holds_string(objects(column))


def holds_string(values: NDArray[Any]) -> bool:
    """Whether any of the objects is a string, of characters or bytes."""
    return any(isinstance(value, str | bytes) for value in values.flat)
