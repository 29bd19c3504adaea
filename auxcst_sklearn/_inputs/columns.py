"""Categorical columns, and the codes of their categories."""

from __future__ import annotations

from functools import cached_property
from itertools import count, repeat
from numbers import Number
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import OrdinalEncoder
from sklearn.utils import assert_all_finite, check_array

from .._checks.data import MISSING, as_floats, is_frame, objects, select, without_gaps
from .._checks.lazy_rows import PLAIN_ROWS, row_blocks, stays_lazy

UNKNOWN = -1
MOST_EXACT = 2**53  # larger integers may be equal as float64


class Cells(NamedTuple):
    """Cells of a table: numbers, if there are any, and categories, with NaN for missing ones."""

    X: Any
    numbers: NDArray[Any] | None
    categories: NDArray[Any]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the categories, with the number of rows first, as for an array."""
        return self.categories.shape


class CategoryCodes:
    """Convert X with categories in some columns to numbers, with codes in these columns.

    Codes count from 0. A category that was not in `fit` becomes `UNKNOWN`. A missing one, or "",
    becomes NaN, or unknown if none was missing in `fit`.
    """

    def __init__(self, mask: NDArray[np.bool_]) -> None:
        self.mask = mask

    def fit(self, X: Any) -> CategoryCodes:
        """Learn the categories."""
        values = self._levels(X) if stays_lazy(X) else self._categories(X)
        self.is_object = values.dtype == object
        self.encoder = OrdinalEncoder(
            handle_unknown="use_encoded_value", unknown_value=UNKNOWN, encoded_missing_value=np.nan
        ).set_output(transform="default")
        self.encoder.fit(values)
        return self

    def _levels(self, X: NDArray[Any]) -> NDArray[Any]:
        """The distinct values of each column, padded to equal length with the last value."""
        levels: list[NDArray[Any]] = [np.empty(0)] * int(self.mask.sum())
        for block in row_blocks(X):
            columns = self._categories(X[block]).T
            levels = [np.union1d(level, column) for level, column in zip(levels, columns)]
        n = max(map(len, levels))
        return np.column_stack([np.pad(level, (0, n - len(level)), "edge") for level in levels])

    @cached_property
    def _places(self) -> list[dict[Any, int]]:
        """The code of each category, of each column; for one row, the encoder takes 1 ms."""
        return [dict(zip(levels.tolist(), count())) for levels in self.encoder.categories_]

    def __getstate__(self) -> dict[str, Any]:
        """Attributes, without attributes that follow from others."""
        return {name: value for name, value in vars(self).items() if name != "_places"}

    @property
    def sizes(self) -> list[int]:
        """Number of codes of each column."""
        return [sum(level == level for level in levels) for levels in self.encoder.categories_]

    def read(self, X: Any) -> Cells:
        """The cells of X, which `CategoryCodes` of the same columns can transform."""
        if hasattr(X, "iloc") and len(X) <= PLAIN_ROWS and (cells := self._read_few(X)) is not None:
            return cells
        return Cells(X, self._numbers(X), self._categories(X, exact=self.is_object))

    def _read_few(self, X: Any) -> Cells | None:
        """Like `read`, for all columns at once, because pandas selects columns slowly."""
        dtypes = X.dtypes.to_numpy()
        numbers = dtypes[~self.mask].tolist()
        are_plain = all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in numbers)
        if not are_plain:
            return None
        cells = X.to_numpy(dtype=object)
        values = cells[:, ~self.mask].astype(np.result_type(*numbers)) if numbers else None
        if values is not None and np.isinf(values).any():
            return None
        return Cells(X, values, _as_categories(cells[:, self.mask]))

    def reads_like(self, other: CategoryCodes | None) -> bool:
        """Whether the other codes are of the same columns, and of values of the same kind."""
        if other is None or self.is_object != other.is_object:
            return False
        return np.array_equal(self.mask, other.mask)

    def transform(self, X: Any) -> NDArray[Any]:
        """One array of floats, with the columns of X."""
        cells = X if isinstance(X, Cells) else self.read(X)
        single = cells.numbers is not None and cells.numbers.dtype == np.float32
        encoded = np.empty((cells.shape[0], len(self.mask)), np.float32 if single else np.float64)
        if cells.numbers is not None:
            encoded[:, ~self.mask] = cells.numbers
        encoded[:, self.mask] = self._encode(cells.X, cells.categories)
        return encoded

    def _encode(self, X: Any, values: Any) -> NDArray[Any]:
        if values.dtype == object and not self.is_object:
            self._check_kinds(X, values)
        values = values.astype(object if self.is_object else np.float64)
        if not self.is_object:
            assert_all_finite(values, allow_nan=True, input_name="X")
        codes, missing = np.empty(values.shape), values != values
        for j, (levels, code) in enumerate(zip(self.encoder.categories_, self._places)):
            codes[:, j] = [*map(code.get, values[:, j].tolist(), repeat(UNKNOWN))]
            codes[missing[:, j], j] = np.nan if levels[-1] != levels[-1] else UNKNOWN
        unknown = codes == UNKNOWN
        if self.is_object and unknown.any():
            self._check_kinds(X, np.where(unknown, values, None))
        return codes

    def _check_kinds(self, X: Any, values: Any) -> None:
        """Raise an error for a category of another kind than in `fit`, which would be unknown."""
        for j, column, known in zip(
            np.flatnonzero(self.mask).tolist(), values.T, self.encoder.categories_, strict=True
        ):
            expected = _type_of(known[0])
            other = next((v for v in column if _type_of(v) not in (None, expected)), None)
            if expected is not None and other is not None:
                raise ValueError(
                    f"Column {_name(X, j)} of X contains {_type_of(other)}, such as {other!r}, but "
                    f"its categories in the training are {expected}, such as {known[0]!r}; "
                    "expected the same. Convert it, such as with astype."
                )

    def _numbers(self, X: Any) -> NDArray[Any] | None:
        if self.mask.all():
            return None
        cells = select(X, np.flatnonzero(~self.mask).tolist()) if is_frame(X) else X[:, ~self.mask]
        # Old scikit-learn returns objects for nullable columns next to columns of objects.
        return as_floats(
            check_array(cells, dtype="numeric", ensure_all_finite="allow-nan", input_name="X")
        )

    def _categories(self, X: Any, exact: bool = False) -> NDArray[Any]:
        if is_frame(X):
            columns = [objects(select(X, j)) for j in np.flatnonzero(self.mask).tolist()]
            return _as_categories(np.column_stack(columns))
        cells: NDArray[Any] = X[:, self.mask]
        if cells.dtype.kind in "OUS":
            return _as_categories(cells.astype(object))
        if cells.dtype.kind in "iu" and (exact or _exceeds_float64(cells)):
            return cells.astype(object)  # identifiers that float64 would merge
        return cells.astype(np.float64)


def _as_categories(values: NDArray[Any]) -> NDArray[Any]:
    """Categories with NaN for missing ones, and for "", as files and most tables have it."""
    filled = without_gaps(values)
    filled[filled == ""] = np.nan
    return filled


def _exceeds_float64(part: NDArray[Any]) -> bool:
    return part.size > 0 and (part.max() > MOST_EXACT or part.min() < -MOST_EXACT)


def as_table(X: Any) -> Any:
    """X as a DataFrame, an array, or a sparse matrix; lists may mix strings and numbers."""
    if is_frame(X) or sparse.issparse(X) or isinstance(X, np.ndarray):
        return X
    return np.asarray(X, dtype=object if isinstance(X, (list, tuple)) else None)


def _name(X: Any, j: int) -> str | int:
    """A column in a message: its name, or its position."""
    return repr(X.columns[j]) if is_frame(X) else j


def _type_of(value: Any) -> str | None:
    """What a category is; None for a missing one."""
    if isinstance(value, str):
        return "strings"
    if isinstance(value, bytes):
        return "bytes"
    if isinstance(value, Number | np.bool_):
        return "numbers" if value == value else None
    name = type(value).__name__
    return None if name in MISSING else name
