"""The interface of all inputs, and the validation of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data
from torch import nn

from .._checks.array_api import numpy_arrays
from .._checks.frames import as_numbers, check_frame
from .columns import is_of_strings, refuse_objects
from .float32 import as_float32, check_resolution
from .lazy import LazyRows, row_order, stays_lazy

# Up to this many rows are looked at by `plain_rows`, which may do so in vain.
FEW_ROWS = 100


def plain_rows(estimator: Any, X: Any) -> NDArray[Any] | None:
    """A few rows of finite floats with the features of a fit; None if X may be anything else.

    One look replaces scikit-learn's validation, which takes longer than the estimates of a row.
    """
    attributes = vars(estimator)
    names, rows = attributes.get("feature_names_in_"), X
    if names is not None:
        is_pandas = type(X).__module__.partition(".")[0] == "pandas" and X.ndim == 2
        if not is_pandas or len(X) > FEW_ROWS or list(X.columns) != list(names):
            return None
        rows = np.ascontiguousarray(X.to_numpy())
    is_plain = (
        type(rows) is np.ndarray
        and rows.ndim == 2
        and 0 < len(rows) <= FEW_ROWS
        and rows.shape[1] == attributes.get("n_features_in_")
        and rows.dtype in (np.float32, np.float64)
        and rows.dtype.isnative
        and rows.flags.c_contiguous
        and np.isfinite(rows).all()
    )
    return rows if is_plain else None


class Inputs:
    """What X becomes: validated rows, and from them the float32 rows of a network.

    An estimator makes its inputs when a fit begins. It calls `validate` for every X, `learn` for
    the rows it trains on, and `transform` for validated rows; `make_module` builds the first
    module of a network. Later blocks of a stream call `update`.
    """

    # Validated rows of these types are not converted.
    dtypes: tuple[Any, ...] = (np.float32,)
    allow_nd = False

    def validate(self, estimator: Any, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Rows, and labels if given, as arrays; `reset` sets the features of the estimator."""
        alone = isinstance(y, str) and not (reset or self.categories)
        if alone and (plain := plain_rows(estimator, X)) is not None:
            return self._checked(plain, reset)
        check_frame(X)
        with numpy_arrays():
            try:
                validated = self._as_arrays(estimator, X, y, reset)
                rows, *labels = validated if isinstance(validated, tuple) else (validated,)
                rows = as_numbers(rows)  # objects of a DataFrame with categories
            except ValueError as error:
                if is_of_strings(error):
                    self._refuse_strings(X, error)
                raise
            except TypeError as error:
                refuse_objects(X, self._categorical(), error)
                raise
        rows = self._checked(rows, reset)
        return (rows, *labels) if labels else rows

    def _as_arrays(self, estimator: Any, X: Any, y: Any, reset: bool) -> Any:
        """The arrays of scikit-learn's validation, in any type of numbers."""
        order = {"order": row_order(X), "allow_nd": self.allow_nd}
        return validate_data(
            estimator, X, y, reset=reset, accept_sparse="csr", dtype="numeric", **order
        )

    def _categorical(self) -> Any:
        """Mask of the columns with categories; None without any."""
        return None

    def _refuse_strings(self, X: Any, error: ValueError) -> None:
        raise ValueError(
            f"X holds strings ({error}); expected numbers. Encode them first, such as by "
            "OneHotEncoder; CostSensitiveAuxMLP takes them as they are."
        ) from error

    def _checked(self, rows: Any, reset: bool) -> Any:
        """Rows in one of the types that the network reads."""
        if reset and rows.ndim == 2:
            check_resolution(rows)
        if rows.dtype in self.dtypes:
            return rows
        if stays_lazy(rows):
            return LazyRows(rows, as_float32, dtype=np.float32)
        return as_float32(rows)

    def learn(self, X: Any, *, stream: bool) -> None:
        """Learn from the training rows what `transform` and `make_module` need; here nothing."""

    def update(self, X: Any, module: nn.Module) -> None:
        """Continue learning from the next block of a stream, for a network; here nothing."""

    def transform(self, X: Any) -> Any:
        """Rows of the network, from validated ones; here unchanged."""
        return X

    @property
    def row_scaling(self) -> tuple[Any, Any] | None:
        """How `transform` scales, and the columns that keep NaN; None if it does not scale."""
        return None

    @property
    def categories(self) -> dict[int, Any]:
        """Categories of each column that has some, in the order of their codes."""
        return {}

    def make_module(self) -> nn.Module | None:
        """The first module of a network; None if it reads the rows as they are."""
        return None

    def vary(self, module: nn.Module, i: int) -> None:
        """Make network i of a stack see its inputs differently; here nothing."""

    def attributes(self) -> dict[str, Any]:
        """Fitted attributes of the estimator."""
        return {}

    def net_arguments(self) -> dict[str, Any]:
        """Arguments of the skorch net that these inputs need."""
        return {}
