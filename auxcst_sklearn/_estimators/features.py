"""Features of any kind for a network: categories, missing values, and scales."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

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

from .._checks.array_api import numpy_arrays
from .._checks.frames import as_numbers, check_frame
from .._checks.warn import warn
from .._features.bins import Bins
from .._features.columns import (
    CategoryCodes,
    as_table,
    find_categories,
    is_of_strings,
    refuse_objects,
    refuse_strings,
)
from .._features.float32 import as_float32, check_resolution, row_blocks
from .._features.lazy import LazyRows, row_order, stays_lazy
from .._features.levels import Levels
from .._features.scale import FeatureStatistics, Scaling
from ..modules import AuxNetwork, Standardize
from ..modules._bins import PiecewiseLinear
from ..modules._feature_input import FeatureInput
from .base import BaseCostSensitiveNet

if TYPE_CHECKING:
    from .._training.net import CostNet

# A column with more distinct values than this fraction of the rows is no useful category.
MOST_DISTINCT, FEWEST_ROWS_TO_WARN = 0.5, 50

_DENSE = {"dtype": "numeric", "ensure_all_finite": "allow-nan"}


class FeatureNet(BaseCostSensitiveNet):
    """An estimator whose inputs are columns: numbers, with missing values, and categories.

    Validated rows hold unscaled numbers, NaN for missing values, and codes of categories;
    `_to_inputs` converts them to the inputs of the network.
    """

    categorical_features: ArrayLike | Literal["from_dtype"] | None
    standardize: bool | Literal["auto"]
    n_bins: int

    is_categorical_: NDArray[np.bool_] | None
    _codes: CategoryCodes | None
    input_center_: NDArray[Any] | None
    input_scale_: NDArray[Any] | None

    # -------------------------------------------------------------- validate

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        check_frame(X)
        with numpy_arrays():
            if reset:
                self.is_categorical_ = find_categories(X, self.categorical_features)
            try:
                validated = self._validate_columns(X, y, reset)
            except ValueError as error:
                if is_of_strings(error):
                    refuse_strings(X, self.is_categorical_, self.categorical_features)
                raise
            except TypeError as error:
                refuse_objects(X, self.is_categorical_, error)
                raise
        rows = validated[0] if isinstance(validated, tuple) else validated
        if sparse.issparse(rows) and np.isnan(rows.data).any():
            raise ValueError(
                "X is sparse and holds NaN; expected numbers. Missing values are for dense X: pass "
                "X.toarray(), or fill the gaps first."
            )
        return validated

    def _validate_columns(self, X: Any, y: Any, reset: bool) -> Any:
        if self.is_categorical_ is None:
            self._codes = None
            validated = validate_data(
                self, X, y, reset=reset, accept_sparse="csr", order=row_order(X), **_DENSE
            )
            rows, *labels = validated if isinstance(validated, tuple) else (validated,)
            rows = as_numbers(rows)  # objects of a DataFrame with categories
            return (rows, *labels) if labels else rows
        X = as_table(X)
        if sparse.issparse(X):
            raise ValueError(
                "X is sparse, but some of its columns are categories; expected a DataFrame or an "
                "array, as in the training."
            )
        validate_data(self, X, reset=reset, skip_check_array=True)
        if reset:
            self._codes = CategoryCodes(self.is_categorical_).fit(X)
            if isinstance(self.categorical_features, str):  # "from_dtype"
                self._warn_of_distinct_values(X)
        if stays_lazy(X):
            return self._validate_lazily(X, y)
        X = self._codes.transform(X)  # type: ignore[union-attr]
        return check_array(X, **_DENSE) if isinstance(y, str) else check_X_y(X, y, **_DENSE)

    def _warn_of_distinct_values(self, X: Any) -> None:
        """Warn of columns of strings that hold dates or identifiers rather than categories."""
        names = np.asarray(X.columns, dtype=object)[self.is_categorical_]
        for name, size in zip(names, self._codes.sizes):  # type: ignore[union-attr]
            if len(X) >= FEWEST_ROWS_TO_WARN and size > MOST_DISTINCT * len(X):
                warn(
                    f"Column {name!r} of X is used as categories (categorical_features="
                    f"'from_dtype'), but has {size} distinct values in {len(X)} rows. Categories "
                    "in one or two rows carry almost no information: rare ones share one level, "
                    "together with those that are not in the training set. Convert dates to "
                    "numbers, such as the days since a date, and drop identifiers.",
                )

    def _validate_lazily(self, X: NDArray[Any], y: Any) -> Any:
        """Rows too many to be copied, whose categories are encoded when read."""
        codes, dtype = self._codes, np.float32 if X.dtype == np.float32 else np.float64
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

    def _learn_inputs(self, X: Any, *, stream: bool) -> None:
        features = FeatureStatistics(self.is_categorical_).update(X)
        self._features = features if stream else None
        self._levels = Levels(X, self.is_categorical_, self._codes.sizes if self._codes else [])
        self._set_scaling(features.scaling(self.standardize), stream)
        n_bins = self.n_bins if self.n_networks > 1 else 0  # the first network uses none
        self._bins = Bins(features, self._scaling, n_bins)
        if self.input_scale_ is None:
            check_resolution(X)

    def _follow_inputs(self, net: CostNet, X: Any) -> None:
        if self._features is None:
            return
        self._features = deepcopy(self._features).update(X)
        self._set_scaling(self._features.scaling(self.standardize), stream=True)
        for part in net.module_.modules():
            if isinstance(part, Standardize):
                part.set(self._scaling.center, self._scaling.scale)
            elif isinstance(part, FeatureInput):
                part.set_fill(self._scaling.fill)
            elif isinstance(part, PiecewiseLinear):
                part.set(*self._bins.bounds(self._scaling))

    def _set_scaling(self, scaling: Scaling, stream: bool) -> None:
        self._scaling = scaling
        scaled = scaling.changes or (stream and self.standardize)  # later rows may need a scale
        self.input_center_ = scaling.center if scaled else None
        self.input_scale_ = scaling.scale if scaled else None

    # --------------------------------------------------------------- prepare

    def _to_inputs(self, X: Any) -> Any:
        if stays_lazy(X):
            return LazyRows(X, self._to_inputs_now, dtype=np.float32)
        return self._to_inputs_now(X)

    def _to_inputs_now(self, X: Any) -> Any:
        if self._scaling.in_network:
            if not sparse.issparse(X) and np.isnan(X.sum(dtype=np.float64)):
                raise ValueError(
                    "X holds NaN, but the rows of the training were sparse, of which no medians "
                    "are known; expected numbers. Fill the gaps first."
                )
            return as_float32(X)
        return self._scaling.apply(X, self._levels.kept)

    def _make_inputs(self) -> FeatureInput | Standardize | None:
        """The first module of the network; None if prepared rows need none."""
        if self._scaling.in_network and self.input_scale_ is not None:
            return Standardize(self._scaling.center, self._scaling.scale)
        bins = self._bins.make_encoding(self._scaling, self._levels.numbers)
        return self._levels.make_input(self._scaling.fill, bins)

    def _vary(self, module: AuxNetwork, i: int) -> None:
        """Give bins to every second network of a stack."""
        for part in module.modules():
            if isinstance(part, FeatureInput):
                part.sees_bins.fill_(i % 2)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
