"""The interface of all inputs; and inputs that are arrays: numbers and images."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import validate_data
from torch import nn

from .._checks.data import as_floats, check_frame, numpy_arrays, on_host
from .._checks.lazy_rows import (
    PLAIN_ROWS,
    PLAIN_VALUES,
    bounds_of,
    check_resolution,
    convert_rows,
    row_order,
)
from ..modules._tables import UnitRange
from .scaling import as_float32


def has_columns_of_fit(estimator: Any, X: Any) -> bool:
    """Whether X is a pandas DataFrame with the columns of `fit`, in their order."""
    names = vars(estimator).get("feature_names_in_")
    is_pandas = type(X).__module__.partition(".")[0] == "pandas" and X.ndim == 2
    return is_pandas and names is not None and X.columns.tolist() == names.tolist()


def plain_rows(estimator: Any, X: Any) -> NDArray[Any] | None:
    """Rows of finite floats with the features of a fit; None if X may be anything else.

    One look replaces scikit-learn's validation, which takes longer than the estimates of a row.
    """
    attributes = vars(estimator)
    rows = X
    if "feature_names_in_" in attributes:
        if not has_columns_of_fit(estimator, X) or len(X) > PLAIN_ROWS:
            return None
        rows = np.ascontiguousarray(X.to_numpy())
    is_plain = (
        type(rows) is np.ndarray
        and rows.ndim == 2
        and 0 < rows.size <= PLAIN_VALUES
        and rows.shape[1] == attributes.get("n_features_in_")
        and rows.dtype in (np.float32, np.float64)
        and rows.dtype.isnative
        and rows.flags.c_contiguous
        and np.isfinite(rows).all()
    )
    return rows if is_plain else None


class Preprocessor:
    """What X becomes: validated rows, and from them the float32 rows of a network.

    An estimator makes its inputs when a fit begins. It calls `validate` for every X, `learn` for
    the rows it trains on, and `transform` for validated rows; `make_module` builds the first
    module of a network. Later blocks of a stream call `update`.
    """

    # Validated rows are converted to the first of these types, unless they have one of them.
    converts = True
    dtypes: tuple[Any, ...] = (np.float32,)
    allow_nd = False
    # Mask of the columns with categories; None without any.
    is_categorical: NDArray[np.bool_] | None = None
    name: str  # of the class of the estimator
    fitted_shape: tuple[int, ...]  # of a sample in the training

    def validate(self, estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
        """Rows, and labels if given, as arrays; `reset` sets the features of the estimator."""
        alone = not y and not reset and self.is_categorical is None
        validated = plain_rows(estimator, X) if alone else None
        if validated is None:
            check_frame(X)
            with numpy_arrays():
                validated = self._as_arrays(estimator, *map(on_host, (X, *y)), reset=reset)
        rows, *labels = validated if isinstance(validated, tuple) else (validated,)
        if rows.dtype.kind == "O":  # of a DataFrame with categories
            rows = as_floats(rows)
        if self.converts:
            rows = self._convert(rows, reset)
        if reset:
            self.name, self.fitted_shape = type(estimator).__name__, rows.shape[1:]
        self.check(rows)
        return (rows, *labels) if labels else rows

    def check(self, X: Any) -> Any:
        """Raise an error if the shape of the samples is not that of the training samples."""
        if tuple(X.shape[1:]) != self.fitted_shape:
            raise ValueError(
                f"X contains samples of shape {tuple(X.shape[1:])}, but {self.name} was fitted on "
                f"samples of shape {self.fitted_shape}; expected the same."
            )

    def _as_arrays(self, estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
        """The arrays of scikit-learn's validation, in any type of numbers."""
        return validate_data(
            estimator,
            X,
            *y,
            reset=reset,
            accept_sparse="csr",
            dtype="numeric",
            order=row_order(X),
            allow_nd=self.allow_nd,
        )

    def _convert(self, rows: Any, reset: bool) -> Any:
        """Rows in one of the types that the network reads."""
        if reset:
            check_resolution(rows)
        if rows.dtype in self.dtypes:
            return rows
        return convert_rows(rows, as_float32)

    def learn(self, X: Any, *, stream: bool, scaling: str = "none", n_bins: int = 0) -> None:
        """Learn from the training rows what `transform` and `make_module` need; here nothing."""

    def update(self, X: Any) -> None:
        """Continue learning from the next block of a stream; here nothing."""

    def set_scaling(self, module: nn.Module) -> None:
        """Set what was learnt from blocks of a stream in a network of earlier blocks."""

    def transform(self, X: Any) -> Any:
        """Rows of the network, from validated ones; here unchanged."""
        return X

    @property
    def row_scaling(self) -> tuple[Any, Any] | None:
        """How `transform` scales, and the columns that keep NaN; None if it does not scale."""
        return None

    def rows_to_try(self, rows: Any) -> Any:
        """Two rows, or the only one, on which a module of the caller is tried."""
        return rows[:2]

    def make_module(self) -> nn.Module | None:
        """The first module of a network; None if it reads the rows as they are."""
        return None

    def as_read_by(self, module: nn.Module) -> Preprocessor:
        """Return the inputs, with what trials of the network have shown; here unchanged."""
        return self

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {}

    @property
    def size_of_sample(self) -> tuple[str, int]:
        """What limits the number of samples predicted at once, and how much a sample has of it."""
        return "samples", 1


class NumberPreprocessor(Preprocessor):
    """Numbers in [0, 1]; features beyond it are mapped to it by their smallest and largest value.

    The network does so a batch at a time, so that sparse rows stay sparse.
    """

    def learn(self, X: Any, *, stream: bool, scaling: str = "none", n_bins: int = 0) -> None:
        bounds = bounds_of_features(X)
        inside = (bounds[0] >= 0) & (bounds[1] <= 1)
        self.range = np.where(inside, [[0.0], [1.0]], bounds)

    def make_module(self) -> UnitRange:
        return UnitRange(*self.range)

    def attributes(self) -> dict[str, Any]:
        return {"input_range_": self.range}


def bounds_of_features(X: Any) -> Any:
    """Smallest and largest value of each feature, of dense or sparse rows."""
    return min_max_axis(X, axis=0) if sparse.issparse(X) else bounds_of(X)
