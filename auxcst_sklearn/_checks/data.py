"""What users pass: DataFrames, masks, rows that belong together, and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.utils.validation import _check_sample_weight


@contextmanager
def numpy_arrays() -> Iterator[None]:
    """Make scikit-learn's checks return numpy arrays, whatever its ``array_api_dispatch``."""
    with config_context(array_api_dispatch=False):
        yield


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars DataFrame."""
    kind = type(X)  # of a DataFrame itself, pandas would make a Series of the types
    return hasattr(kind, "columns") and hasattr(kind, "dtypes")


def are_named(X: Any) -> bool:
    """Whether X is a mapping of arrays; sparse matrices of keys are mappings, too."""
    return isinstance(X, Mapping) and not sparse.issparse(X)


def select(X: Any, columns: int | Sequence[int]) -> Any:
    """A column by its position, or a DataFrame of several."""
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def is_single(dtype: Any) -> bool:
    """Whether the type of a column is one of floats with less than double precision."""
    return str(dtype).lower().startswith(("float32", "float[", "float16", "halffloat"))


def objects(column: Any) -> NDArray[Any]:
    """The values of a column, with NaN for missing ones."""
    single, name = is_single(column.dtype), str(column.dtype)
    values: NDArray[Any]
    if hasattr(column, "iloc") and (name == "str" or name.startswith("string")):
        codes, levels = column.factorize()  # one object for each string, not for each cell
        values = np.append(levels.to_numpy(dtype=object), np.nan)[codes]
    elif hasattr(column, "iloc"):
        dtype = np.float32 if single else object
        values = column.to_numpy(dtype=dtype, na_value=np.nan)
    elif single:
        values = np.asarray(column, dtype=np.float32)
    else:
        values = np.empty(len(column), dtype=object)
        values[:] = [np.nan if value is None else value for value in column.to_list()]
    return as_float64(values).astype(object) if single else values


def as_float64(values: NDArray[Any]) -> NDArray[np.float64]:
    """Categories of single precision as the numbers of double precision with the same digits."""
    found = values.astype(np.float64)
    fractions = np.isfinite(found) & (found != np.rint(found))
    found[fractions] = values[fractions].astype(np.float32).astype(str).astype(np.float64)
    return found


# Names of the types of missing values; pandas is not imported for its types.
MISSING = {"NoneType", "NAType", "NaTType"}


def without_gaps(values: NDArray[Any]) -> NDArray[Any]:
    """Objects with NaN for missing ones, and floats for decimals, which equal no float."""

    def plain(value: Any) -> Any:
        if type(value).__name__ in MISSING:
            return np.nan
        return float(value) if isinstance(value, Decimal) else value

    kinds = set(map(type, values.flat))  # far faster than a call for each value
    change = any(kind.__name__ in MISSING or issubclass(kind, Decimal) for kind in kinds)
    return np.frompyfunc(plain, 1, 1)(values) if change else values.copy()


def as_floats(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as floats, with NaN for missing ones; other arrays as they are."""
    return without_gaps(values).astype(np.float64) if values.dtype.kind == "O" else values


def decoded(column: Any) -> Any:
    """A column; of Arrow without a dictionary, in which numpy reads gaps as values."""
    kind: Any = getattr(column, "type", None)
    return column.cast(kind.value_type) if hasattr(kind, "index_type") else column


def holds_categories(column: Any) -> bool:
    """Whether a column has categories or strings; objects that are all numbers are numbers."""
    name = str(column.dtype)
    if not hasattr(column, "iloc"):
        return name.split("(")[0] in ("Binary", "Categorical", "Enum", "String", "Utf8")
    if column.dtype.kind not in "OUS" or name.startswith("decimal"):
        return False
    return name != "object" or holds_string(objects(column))


def holds_string(values: NDArray[Any]) -> bool:
    """Whether any of the objects is a string, of characters or bytes."""
    return any(isinstance(value, str | bytes) for value in values.flat)


def check_frame(X: Any, *, cells: bool = True) -> None:
    """Raise an error for data that numpy and scikit-learn misread, or refuse unhelpfully.

    With `cells` also for times, which are neither numbers nor categories.
    """
    check_in_memory(X)
    check_no_mask(X, "X")
    _refuse_one_row(X)
    if is_frame(X) and not X.shape[1]:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while at least 1 is required: X is a "
            "DataFrame without columns."
        )
    if cells:
        refuse_times(X)


# Data on a disk or on other machines, by the module of their type.
_ELSEWHERE = (
    "dask.",
    "dask_expr.",
    "datasets.arrow_dataset",
    "datasets.iterable_dataset",
    "polars.lazyframe",
    "pyarrow.",
    "zarr.",
)


def check_in_memory(X: Any, name: str = "X") -> None:
    """Raise an error for data that numpy would silently load as a whole, or misinterpret."""
    if isinstance(X, np.ndarray | list):
        return
    kinds = [f"{kind.__module__}.{kind.__name__}" for kind in type(X).__mro__]
    if any(kind.startswith(_ELSEWHERE) for kind in kinds):
        raise ValueError(
            f"{name} is a {kinds[0]}, which would be read as a whole; expected rows in memory or a "
            "memory map. Write them to one by auxcst_sklearn.datasets.to_memmap, or load them if "
            "they are few, by their compute(), collect(), to_pandas() or [:]."
        )


def _refuse_one_row(X: Any) -> None:
    """Raise an error for one row as a dict or a Series, and for a list of dicts."""
    is_series = hasattr(X, "iloc") and X.ndim == 1
    are_dicts = isinstance(X, list) and len(X) > 0 and isinstance(X[0], dict)
    if are_named(X) or is_series or are_dicts:
        kind = "list of dicts" if are_dicts else type(X).__name__
        raise ValueError(
            f"X is a {kind}; expected a table of two dimensions, with one row per sample, such as "
            "pd.DataFrame([row]). Arrays by name, as of a tokenizer, are for CostSensitiveAuxNet."
        )


# Types of columns and of objects that are times; those of pandas are subclasses.
_COLUMNS_OF_TIMES = ("date", "time", "duration", "period")
_MAY_BE_TIMES = (*_COLUMNS_OF_TIMES, "object")
_TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


def refuse_times(X: Any) -> None:
    """Raise an error for dates and times, of which numpy would make numbers of some unit."""
    if is_frame(X):
        kinds = [str(dtype) for dtype in X.dtypes]
        suspects = [j for j, k in enumerate(kinds) if k.lower().startswith(_MAY_BE_TIMES)]
        # Of a few rows all columns at once, because pandas selects columns slowly.
        few = X.to_numpy(dtype=object) if suspects and hasattr(X, "iloc") and len(X) < 20 else None
        for j in suspects:
            is_object, name = kinds[j].lower() == "object", X.columns[j]
            cells = (select(X, j) if few is None else few[:, j]) if is_object else ()
            values = np.asarray(cells, dtype=object)
            _refuse_times(f"Column {name!r} of X", name, kinds[j : j + 1], values)
    elif isinstance(X, list | tuple):
        rows = (row for row in X if isinstance(row, list | tuple))
        of_arrays = {getattr(row, "dtype", None) for row in X}
        _refuse_times("X", "date", of_arrays, chain.from_iterable(rows))
    else:
        kind = str(getattr(X, "dtype", ""))
        _refuse_times("X", "date", [kind], getattr(X, "flat", ()) if kind == "object" else ())


def _refuse_times(where: str, name: Any, dtypes: Iterable[Any], cells: Iterable[Any]) -> None:
    found = [kind for kind in map(str, dtypes) if kind.lower().startswith(_COLUMNS_OF_TIMES)]
    kinds = [kind for kind in set(map(type, cells)) if issubclass(kind, _TIMES)]
    found += [kind.__name__ for kind in kinds if kind.__name__ not in MISSING]
    if found:
        raise ValueError(
            f"{where} holds times ({found[0]}); expected numbers or categories. Make features of "
            f"them, such as X['month'] = X[{name!r}].dt.month and X['days'] = (X.pop({name!r}) - "
            "pd.Timestamp('2026-01-01')).dt.days, or put skrub's DatetimeEncoder in front, in a "
            "pipeline."
        )


def check_no_mask(values: Any, name: str) -> None:
    """Raise an error for masked values, which numpy and scikit-learn read as if not masked."""
    # pandas arrays have a `_mask` too, as may a DataFrame, which numpy would take for its own.
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = np.count_nonzero(np.ma.getmaskarray(values))
        raise ValueError(
            f"{name} holds {n_masked} masked values, which would be read as if they were not; "
            f"expected an array without a mask. Pass {name}.filled(...), with NaN for missing "
            "features, or leave these rows out."
        )


def check_row_order(**named: Any) -> None:
    """Raise an error for two objects whose index has the same label at different positions.

    Rows belong together by position, as everywhere in scikit-learn, so that this is a sign of
    rows that do not. A default index 0 .. n-1, as of a new DataFrame, is a sign only where the
    other one holds the same labels.
    """
    given = dict[str, Any]()
    for name, rows in named.items():
        given |= {f"{name}[{k!r}]": rows[k] for k in rows} if are_named(rows) else {name: rows}
    indexed = {name: rows for name, rows in given.items() if hasattr(rows, "iloc")}
    for (name, rows), (other_name, other_rows) in combinations(indexed.items(), 2):
        own, other = rows.index, other_rows.index
        if len(own) != len(other) or own.equals(other):
            continue
        a, b = np.split(own.append(other).factorize()[0], 2)
        moved = (a != b) & np.isin(b, a)
        same = np.isin(b, a).all() and np.isin(a, b).all()
        if not moved.any() or (not same and any(_is_default(index) for index in (own, other))):
            continue
        row = int(moved.argmax())
        place = int((a == b[row]).argmax())
        raise ValueError(
            f"The index of {other_name} has labels of that of {name} "
            f"{'in another order' if same else 'at other positions'}: "
            f"{other[[row]].tolist()[0]!r} is row {row} of {other_name}, but row {place} of "
            f"{name}. Expected the same rows in the same order: select them by "
            f"{other_name}.loc[{name}.index]; or, if rows belong together by position, pass "
            f"{other_name}.to_numpy(), or {other_name}.set_axis({name}.index) to keep columns."
        )


def _is_default(index: Any) -> bool:
    return np.array_equal(index, np.arange(len(index)))


def check_weight(sample_weight: Any, like: Any) -> NDArray[np.float64] | None:
    """Non-negative weights, one for each row of `like`; None for equal ones."""
    if sample_weight is None:
        return None
    check_no_mask(sample_weight, "sample_weight")
    if len(shape := np.asarray(sample_weight).shape) > 1:
        raise ValueError(
            f"sample_weight has shape {shape}; expected (n_samples,). Costs are passed by keyword, "
            "as in fit(X, y, cost=C)."
        )
    return _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)


def check_some_weight(weight: NDArray[Any]) -> None:
    """Raise an error for weights that are all zero, or whose sum is not finite."""
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight sums to {total}; expected finite weights with a finite sum. "
            "Divide all of them by the largest, say; only their ratios matter."
        )
    if not (weight > 0).any():
        raise ValueError(
            "sample_weight is zero for every sample; some must be positive. Leave it out to weigh "
            "all samples alike."
        )
