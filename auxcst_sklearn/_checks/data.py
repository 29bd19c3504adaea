"""What users pass: DataFrames, masks, rows that belong together, weights and labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from itertools import chain, combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import config_context
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _check_sample_weight, _num_samples

from .calls import warn


@contextmanager
def numpy_arrays() -> Iterator[None]:
    """Make scikit-learn's checks return numpy arrays, whatever its ``array_api_dispatch``."""
    with config_context(array_api_dispatch=False):
        yield


def on_host(values: Any) -> Any:
    """A tensor of any device as an array, without its gradient; all else as it is."""
    if type(values).__module__.partition(".")[0] != "torch":  # which need not be imported for this
        return values
    return (values.float() if "bfloat16" in str(values.dtype) else values).numpy(force=True)


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars DataFrame."""
    cls = type(X)  # of a DataFrame itself, pandas would make a Series of the types
    return hasattr(cls, "columns") and hasattr(cls, "dtypes")


def are_named(X: Any) -> bool:
    """Whether X is a mapping of arrays; sparse matrices of keys are also mappings."""
    return isinstance(X, Mapping) and not sparse.issparse(X)


def select(X: Any, columns: int | Sequence[int]) -> Any:
    """A column by its position, or a DataFrame of several."""
    return X.iloc[:, columns] if hasattr(X, "iloc") else X[:, columns]


def objects(column: Any) -> NDArray[Any]:
    """The values of a column, with NaN for missing ones."""
    name = str(column.dtype)
    values: NDArray[Any]
    if hasattr(column, "iloc") and (name == "str" or name.startswith("string")):
        codes, levels = column.factorize()  # one object for each string, not for each cell
        values = np.append(levels.to_numpy(dtype=object), np.nan)[codes]
    elif hasattr(column, "iloc"):
        values = column.to_numpy(dtype=object, na_value=np.nan)
    else:
        values = np.empty(len(column), dtype=object)
        values[:] = [np.nan if value is None else value for value in column.to_list()]
    return values


# Names of the types of missing values; pandas is not imported for its types.
MISSING = {"NoneType", "NAType", "NaTType"}


def without_gaps(values: NDArray[Any]) -> NDArray[Any]:
    """Objects with NaN for missing ones, and floats for decimals, which equal no float."""

    def plain(value: Any) -> Any:
        if type(value).__name__ in MISSING:
            return np.nan
        return float(value) if isinstance(value, Decimal) else value

    types = set(map(type, values.flat))  # far faster than a call for each value
    change = any(cls.__name__ in MISSING or issubclass(cls, Decimal) for cls in types)
    return np.frompyfunc(plain, 1, 1)(values) if change else values.copy()


def as_floats(values: NDArray[Any]) -> NDArray[Any]:
    """Objects as floats, with NaN for missing ones; other arrays as they are."""
    return without_gaps(values).astype(np.float64) if values.dtype.kind == "O" else values


def decode(column: Any) -> Any:
    """A column; of Arrow without a dictionary, in which numpy reads gaps as values."""
    dtype: Any = getattr(column, "type", None)
    return column.cast(dtype.value_type) if hasattr(dtype, "index_type") else column


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


def check_frame(X: Any) -> None:
    """Raise an error for masked values, times and no columns, which others misread."""
    is_array = hasattr(X, "shape") or hasattr(X, "__array__")
    if not (is_array or isinstance(X, list | tuple | Mapping)):
        raise TypeError(f"X is a {type(X).__name__}; expected an array, a table or arrays by name.")
    check_no_mask(X, "X")
    refuse_times(X)
    if is_frame(X) and not len(X.columns):
        raise ValueError("X has no columns; expected one at least.")


# How the names of types of times begin: of numpy, pandas, Arrow and polars.
_TIMES = ("date", "time", "duration", "period")


def refuse_times(X: Any) -> None:
    """Raise an error for times, of which numpy would make numbers of some unit."""
    if is_frame(X):
        types = [(f"Column {k!r} of X", str(dtype)) for k, dtype in zip(X.columns, X.dtypes)]
    elif isinstance(X, list | tuple):
        rows = (row for row in X if isinstance(row, list | tuple | np.ndarray))
        types = [("X", cls.__name__) for cls in set(map(type, chain.from_iterable(rows)))]
    else:
        types = [("X", str(getattr(X, "dtype", "")))]
    for where, name in types:
        if name.lower().startswith(_TIMES):
            raise ValueError(
                f"{where} contains times ({name}); expected numbers or categories. Make features "
                "of them, such as X['month'] = X['day'].dt.month, or put skrub's DatetimeEncoder "
                "in front, in a pipeline."
            )


def check_no_mask(values: Any, name: str) -> None:
    """Raise an error for masked values, which numpy and scikit-learn read as if not masked."""
    parts = values if isinstance(values, list | tuple) else [values]
    # pandas arrays have a `_mask` too, as may a DataFrame, which numpy would take for its own.
    masks = [np.ma.getmaskarray(part) for part in parts if isinstance(part, np.ma.MaskedArray)]
    if n_masked := sum(map(np.count_nonzero, masks)):
        raise ValueError(
            f"{name} contains {n_masked} masked values, which would be read as if they were not; "
            f"expected an array without a mask. Pass {name}.filled(...), with NaN for missing "
            "features, or leave these rows out."
        )


def plain_array(values: Any, name: str) -> NDArray[Any]:
    """Values as an array of numpy's own class, because subclasses compute in other ways."""
    check_no_mask(values, name)
    return np.asarray(on_host(values))


def check_row_order(**named: Any) -> None:
    """Raise an error for two objects whose index has the same label at different positions.

    For X and y, it is a warning. Rows belong together by position, as everywhere in scikit-learn,
    so that this is a sign of rows that do not. A default index 0 .. n-1, as of a new DataFrame, is
    a sign only where the other one contains the same labels.
    """
    tables = dict[str, Any]()
    for name, rows in named.items():
        tables |= {f"{name}[{k!r}]": rows[k] for k in rows} if are_named(rows) else {name: rows}
    indexed = {name: rows for name, rows in tables.items() if hasattr(rows, "iloc")}
    for (name, rows), (other_name, other_rows) in combinations(indexed.items(), 2):
        own, other = rows.index, other_rows.index
        if len(own) != len(other) or own.equals(other):
            continue
        a, b = np.split(own.append(other).factorize()[0], 2)
        moved = (a != b) & np.isin(b, a)
        same = np.isin(b, a).all() and np.isin(a, b).all()
        is_default = [np.array_equal(index, np.arange(len(index))) for index in (own, other)]
        if not moved.any() or (not same and any(is_default)):
            continue
        row = int(moved.argmax())
        place = int((a == b[row]).argmax())
        message = (
            f"The index of {other_name} has labels of that of {name} "
            f"{'in another order' if same else 'at other positions'}: "
            f"{other[[row]].tolist()[0]!r} is row {row} of {other_name}, but row {place} of "
            f"{name}. Expected the same rows in the same order: select them by "
            f"{other_name}.loc[{name}.index]; or, if rows belong together by position, pass "
            f"{other_name}.to_numpy(), or {other_name}.set_axis({name}.index) to keep columns."
        )
        if (name, other_name) != ("X", "y"):  # which scikit-learn permutes to test a score
            raise ValueError(message)
        warn(message)


class RowsByName(dict[str, Any]):
    """Arrays by name whose rows scikit-learn can count and select, in the type of each."""

    def __len__(self) -> int:
        return int(_num_samples(next(iter(self.values()), [])))

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, by which scikit-learn takes this for an array."""
        return (len(self),)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            return super().__getitem__(at)
        rows = at[0] if isinstance(at, tuple) else at  # scikit-learn asks for X[rows, ...]
        return RowsByName({name: _safe_indexing(part, rows) for name, part in self.items()})


def sliceable(X: Any) -> Any:
    """Arrays by name whose rows scikit-learn can count and select; all else as it is."""
    if not are_named(X) or hasattr(X, "shape"):
        return on_host(X)
    check_consistent_length(*X.values())
    return RowsByName({str(name): part for name, part in X.items()})


def check_weight(sample_weight: Any, like: Any) -> NDArray[np.float64] | None:
    """Weights, one for each row of `like`, some positive and none negative; None for equal ones."""
    if sample_weight is None:
        return None
    check_no_mask(sample_weight, "sample_weight")
    weight: NDArray[np.float64] = _check_sample_weight(
        on_host(sample_weight), like, dtype=np.float64, ensure_non_negative=True
    )
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
    return weight
