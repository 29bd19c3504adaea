"""Tables: columns of numbers, with missing values, and of categories."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import (
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_X_y,
    column_or_1d,
)
from sklearn.utils.validation import validate_data
from torch import nn

from .._checks.warn import warn
from ..modules._bins import PiecewiseLinear
from ..modules._feature_input import FeatureInput, Standardize
from .base import Inputs
from .bins import Bins
from .columns import CategoryCodes, as_table, find_categories, refuse_strings
from .float32 import as_float32, check_resolution, row_blocks
from .lazy import LazyRows, row_order, stays_lazy
from .levels import Levels
from .scaling import Scaling, scaling_of
from .statistics import FeatureStatistics

# A column with more distinct values than this fraction of the rows is no useful category.
MOST_DISTINCT, FEWEST_ROWS_TO_WARN = 0.5, 50

_DENSE = {"dtype": "numeric", "ensure_all_finite": "allow-nan"}


class TableInputs(Inputs):
    """Columns of numbers, with missing values, and of categories.

    Validated rows hold unscaled numbers, NaN for missing values, and codes of categories;
    `transform` scales the numbers. In a stack with bins every third network has them.
    """

    is_categorical: NDArray[np.bool_] | None
    codes: CategoryCodes | None

    def __init__(
        self,
        categorical_features: ArrayLike | Literal["from_dtype"] | None,
        standardize: bool | Literal["auto"],
        n_bins: int,
    ) -> None:
        self.categorical_features = categorical_features
        self.standardize, self.n_bins = standardize, n_bins

    # -------------------------------------------------------------- validate

    def _as_arrays(self, estimator: Any, X: Any, y: Any, reset: bool) -> Any:
        if reset:
            self.is_categorical = find_categories(X, self.categorical_features)
        if self.is_categorical is None:
            self.codes = None
            return validate_data(
                estimator, X, y, reset=reset, accept_sparse="csr", order=row_order(X), **_DENSE
            )
        X = as_table(X)
        if sparse.issparse(X):
            raise ValueError(
                "X is sparse, but some of its columns are categories; expected a DataFrame or an "
                "array, as in the training."
            )
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        if reset:
            self.codes = CategoryCodes(self.is_categorical).fit(X)
            if isinstance(self.categorical_features, str):  # "from_dtype"
                self._warn_of_distinct_values(X)
        if stays_lazy(X):
            return self._encode_lazily(X, y)
        X = self.codes.transform(X)  # type: ignore[union-attr]
        return check_array(X, **_DENSE) if isinstance(y, str) else check_X_y(X, y, **_DENSE)

    def _categorical(self) -> NDArray[np.bool_] | None:
        return self.is_categorical

    def _refuse_strings(self, X: Any, error: ValueError) -> None:
        refuse_strings(X, self.is_categorical, self.categorical_features)

    def _checked(self, rows: Any, reset: bool) -> Any:
        if sparse.issparse(rows) and np.isnan(rows.data).any():
            raise ValueError(
                "X is sparse and holds NaN; expected numbers. Missing values are for dense X: pass "
                "X.toarray(), or fill the gaps first."
            )
        return rows

    def _warn_of_distinct_values(self, X: Any) -> None:
        """Warn of columns of strings that hold dates or identifiers rather than categories."""
        names = np.asarray(X.columns, dtype=object)[self.is_categorical]
        for name, size in zip(names, self.codes.sizes):  # type: ignore[union-attr]
            if len(X) >= FEWEST_ROWS_TO_WARN and size > MOST_DISTINCT * len(X):
                warn(
                    f"Column {name!r} of X is used as categories (categorical_features="
                    f"'from_dtype'), but has {size} distinct values in {len(X)} rows. Categories "
                    "in one or two rows carry almost no information: rare ones share one level, "
                    "together with those that are not in the training set. Convert dates to "
                    "numbers, such as the days since a date, and drop identifiers."
                )

    def _encode_lazily(self, X: NDArray[Any], y: Any) -> Any:
        """Rows too many to be copied, whose categories are encoded when read."""
        codes, dtype = self.codes, np.float32 if X.dtype == np.float32 else np.float64
        rows = LazyRows(X, codes.transform, dtype=dtype)  # type: ignore[union-attr]
        for part in row_blocks(X):
            check_array(rows[part], **_DENSE)
        if isinstance(y, str):
            return rows
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        return rows, y

    # ----------------------------------------------------------------- learn

    def learn(self, X: Any, *, stream: bool) -> None:
        statistics = FeatureStatistics(self.is_categorical).update(X)
        self.statistics = statistics if stream else None
        self.levels = Levels(X, self.is_categorical, self.codes.sizes if self.codes else [])
        self.scaling = scaling_of(statistics, self.standardize)
        # A later block of a stream may need a scale.
        self.is_scaled = bool(self.scaling.changes or (stream and self.standardize))
        self.bins = Bins(statistics, self.scaling, self.n_bins)
        if not self.is_scaled:
            check_resolution(X)

    def update(self, X: Any, module: nn.Module) -> None:
        if self.statistics is None:
            return
        self.statistics = deepcopy(self.statistics).update(X)
        self.scaling = scaling_of(self.statistics, self.standardize)
        self.is_scaled = bool(self.scaling.changes or self.standardize)
        for part in module.modules():
            if isinstance(part, Standardize):
                part.set(self.scaling.center, self.scaling.scale)
            elif isinstance(part, FeatureInput):
                part.set_fill(self.scaling.fill)
            elif isinstance(part, PiecewiseLinear):
                part.set(*self.bins.bounds(self.scaling))

    def attributes(self) -> dict[str, Any]:
        center, scale = self.scaling.center, self.scaling.scale
        return {
            "input_center_": center if self.is_scaled else None,
            "input_scale_": scale if self.is_scaled else None,
            "is_categorical_": self.is_categorical,
        }

    # ------------------------------------------------------------- transform

    def transform(self, X: Any) -> Any:
        if stays_lazy(X):
            return LazyRows(X, self._transform, dtype=np.float32)
        return self._transform(X)

    def _transform(self, X: Any) -> Any:
        if self.scaling.in_network:
            if not sparse.issparse(X) and np.isnan(X.sum(dtype=np.float64)):
                raise ValueError(
                    "X holds NaN, but the rows of the training were sparse, of which no medians "
                    "are known; expected numbers. Fill the gaps first."
                )
            return as_float32(X)
        return self.scaling.apply(X, self.levels.kept)

    @property
    def row_scaling(self) -> tuple[Scaling, NDArray[np.bool_]] | None:
        """How `transform` scales, and the columns that keep NaN; None if the network scales."""
        return None if self.scaling.in_network else (self.scaling, self.levels.kept)

    @property
    def categories(self) -> dict[int, NDArray[Any]]:
        """Categories of each column that has some, in the order of their codes."""
        if self.codes is None:
            return {}
        columns = np.flatnonzero(self.codes.mask).tolist()
        return dict(zip(columns, self.codes.encoder.categories_))

    # ---------------------------------------------------------------- module

    def make_module(self) -> FeatureInput | Standardize | None:
        if self.scaling.in_network and self.is_scaled:
            return Standardize(self.scaling.center, self.scaling.scale)
        bins = self.bins.make_encoding(self.scaling, self.levels.numbers)
        return self.levels.make_input(self.scaling.fill, bins)

    def vary(self, module: nn.Module, i: int) -> None:
        for part in module.modules():
            if isinstance(part, FeatureInput):
                part.sees_bins.fill_(i % 3 == 1)
