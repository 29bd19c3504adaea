"""Tables: columns of numbers, with missing values, and of categories."""

from __future__ import annotations

from copy import deepcopy
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.stats import norm
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import validate_data
from torch import nn

from .._checks.calls import warn
from .._checks.data import holds_categories, is_frame, select
from .._checks.lazy_rows import (
    LazyRows,
    check_resolution,
    check_row_labels,
    convert_rows,
    row_blocks,
    row_order,
    stays_lazy,
)
from ..modules._layers import Generators
from ..modules._tables import FeatureInput, PiecewiseLinear, Standardize
from .arrays import Preprocessor, has_columns_of_fit
from .columns import CategoryCodes, as_table
from .scaling import (
    SHARES,
    FeatureStatistics,
    Scaling,
    as_float32,
    have_common_unit,
    rounding_of,
    scaling_of,
)

# A column with more distinct values than this fraction of the rows is not a useful category.
MOST_DISTINCT, FEWEST_ROWS_TO_WARN = 0.5, 50
# Up to this many levels have an indicator each; more have embedding vectors.
MOST_INDICATORS = 32
# Levels in fewer rows than this, or than a hundredth of all, share a code with unknown levels. Of a
# thousand levels in 6,000 rows, levels in 3 to 9 rows were worth learning, in 1 or 2 rows not.
RARE = 3
# Features whose quantiles have a lower correlation than this with normal quantiles are encoded as
# bins. For normal features, bins raised the cost by 2 to 7 %.
NORMAL = 0.98
# Number of bins of all features together; with more features, each has fewer.
MOST_BINS = 1024
FEWEST_BINS = 3
# At least this many columns with a common unit are pixels; fewer may be grades or months.
PIXELS = 17
# Bins with fewer rows are not informative.
ROWS_OF_BIN = 100
# Narrower bins, relative to their bounds, are below the resolution of float32.
NARROWEST_BIN = 1e-6

_DENSE = {"dtype": "numeric", "ensure_all_finite": "allow-nan"}


class TablePreprocessor(Preprocessor):
    """Columns of numbers, with missing values, and of categories.

    Validated rows hold unscaled numbers, NaN for missing values, and codes of categories;
    `transform` scales the numbers. Of several networks every third sees bins, from the second on.
    """

    converts = False  # before they are scaled
    codes: CategoryCodes  # if there are columns with categories

    def __init__(self, categorical_features: ArrayLike | Literal["from_dtype"] | None) -> None:
        self.categorical_features = categorical_features

    # -------------------------------------------------------------- validate

    def _as_arrays(self, estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
        if reset:
            self.is_categorical = find_categories(X, self.categorical_features)
        if self.is_categorical is None:
            arrays = validate_data(
                estimator, X, *y, reset=reset, accept_sparse="csr", order=row_order(X), **_DENSE
            )
            rows = arrays[0] if isinstance(arrays, tuple) else arrays
            if sparse.issparse(rows) and np.isnan(rows.data).any():
                raise ValueError(
                    "X is sparse and contains NaN; expected numbers. Missing values are for dense "
                    "X: pass X.toarray(), or fill the gaps first."
                )
            return arrays
        X = as_table(X)
        if sparse.issparse(X):
            raise ValueError(
                "X is sparse, but some of its columns are categories; expected a DataFrame or an "
                "array, as in the training."
            )
        if reset or not has_columns_of_fit(estimator, X):  # The second check is slower.
            validate_data(estimator, X, reset=reset, skip_check_array=True)
        if reset:
            self.codes = CategoryCodes(self.is_categorical).fit(X)
            if isinstance(self.categorical_features, str):  # "from_dtype"
                self._warn_of_distinct_values(X)
        if stays_lazy(X):  # Categories of many rows are encoded when they are read.
            dtype = np.float32 if X.dtype == np.float32 else np.float64
            rows = LazyRows(X, self.codes.transform, dtype=dtype)
            for block in row_blocks(X):
                check_array(rows[block], **_DENSE)
            return (rows, check_row_labels(X, *y)) if y else rows
        X = self.codes.transform(X)
        return check_X_y(X, *y, **_DENSE) if y else check_array(X, **_DENSE)

    def _warn_of_distinct_values(self, X: Any) -> None:
        """Warn of columns of strings that hold dates or identifiers rather than categories."""
        names = np.asarray(X.columns, dtype=object)[self.is_categorical]
        for name, size in zip(names, self.codes.sizes):
            if len(X) >= FEWEST_ROWS_TO_WARN and size > MOST_DISTINCT * len(X):
                warn(
                    f"Column {name!r} of X is used as categories (categorical_features="
                    f"'from_dtype'), but has {size} distinct values in {len(X)} rows. Categories "
                    "have no order, and rare ones share one level, together with those that are "
                    "not in the training set. Make features of dates, by pandas.to_datetime and "
                    "its .dt, and drop identifiers."
                )

    # ----------------------------------------------------------------- learn

    def learn(self, X: Any, *, stream: bool, scaling: str = "none", n_bins: int = 0) -> None:
        self.which = scaling
        statistics = FeatureStatistics(self.is_categorical).update(X)
        self.statistics = statistics if stream else None
        n_codes = [] if self.is_categorical is None else self.codes.sizes
        self.scaling = scaling_of(statistics, scaling)
        self.levels = Levels(X, statistics, self.is_categorical, n_codes)
        # A later block of a stream may need a scale.
        self.is_scaled = self.scaling.changes or (stream and scaling != "none")
        self.bins = Bins(statistics, self.scaling, n_bins)
        if not self.is_scaled:
            check_resolution(X, bounds=(statistics.low, statistics.high))

    def update(self, X: Any) -> None:
        if self.statistics is not None:
            self.statistics = deepcopy(self.statistics).update(X)
            self.scaling = scaling_of(self.statistics, self.which)
            self.is_scaled = self.scaling.changes or self.which != "none"

    def set_scaling(self, module: nn.Module) -> None:
        for layer in module.modules() if self.statistics is not None else ():
            if isinstance(layer, FeatureInput):
                layer.set_fill(self.scaling.fill)
            elif isinstance(layer, PiecewiseLinear):
                layer.set(*self.bins.bounds(self.scaling))
            elif isinstance(layer, Standardize):
                layer.set(self.scaling.center, self.scaling.scale)

    def attributes(self) -> dict[str, Any]:
        center, scale = self.scaling.center, self.scaling.scale
        return {
            "input_center_": center if self.is_scaled else None,
            "input_scale_": scale if self.is_scaled else None,
            "is_categorical_": self.is_categorical,
        }

    # ------------------------------------------------------------- transform

    def transform(self, X: Any) -> Any:
        if self.scaling.in_network:
            return convert_rows(X, _without_nan)
        return convert_rows(X, partial(self.scaling.apply, keep=self.levels.kept))

    @property
    def row_scaling(self) -> tuple[Scaling, NDArray[np.bool_]] | None:
        """How `transform` scales, and the columns that keep NaN; None if the network scales."""
        return None if self.scaling.in_network else (self.scaling, self.levels.kept)

    @property
    def categories(self) -> dict[int, NDArray[Any]]:
        """Categories of each column that has some, in the order of their codes."""
        if self.is_categorical is None:
            return {}
        columns = np.flatnonzero(self.is_categorical).tolist()
        return dict(zip(columns, self.codes.encoder.categories_))

    # ---------------------------------------------------------------- module

    def make_module(self, generators: Generators = (None,)) -> FeatureInput | Standardize | None:
        if self.scaling.in_network and self.is_scaled:
            return Standardize(self.scaling.center, self.scaling.scale)
        bins = self.bins.make_encoding(self.scaling, self.levels.numbers)
        return self.levels.make_input(self.scaling.fill, bins, generators)


def _without_nan(rows: Any) -> Any:
    """Rows as float32; an error for missing values where the training rows were sparse."""
    if not sparse.issparse(rows) and np.isnan(rows.sum(dtype=np.float64)):
        raise ValueError(
            "X contains NaN, but the rows of the training were sparse, of which no medians are "
            "known; expected numbers. Fill the gaps first."
        )
    return as_float32(rows)


class Levels:
    """Columns with missing values, and the levels of the categories, in the training samples."""

    def __init__(
        self,
        X: Any,
        statistics: FeatureStatistics,
        categorical: NDArray[np.bool_] | None,
        n_codes: list[int],
    ) -> None:
        n, d = X.shape
        self.categorical = np.zeros(d, dtype=bool) if categorical is None else categorical
        self.numbers = np.flatnonzero(~self.categorical)  # columns of them
        missing = np.where(self.categorical, 0, n - statistics.count)
        columns = np.flatnonzero(self.categorical).tolist()
        counts = {j: np.zeros(size, dtype=np.int64) for j, size in zip(columns, n_codes)}
        for block in row_blocks(X) if columns else ():
            rows = X[block]  # read, and encoded, only once
            for j, count in counts.items():
                codes = rows[:, j]
                missing[j] += np.isnan(codes).sum()
                count += np.bincount(codes[codes >= 0].astype(np.int64), minlength=len(count))
        # A column without any number is zero; a categorical column keeps one input.
        self.gaps = (missing > 0) & ((missing < n) | self.categorical)
        self.kept = self.gaps | self.categorical  # columns in which the network receives NaN
        fewest = np.clip(n // 100, 1, RARE)
        self.frequent = {j: c >= min(fewest, c.max(initial=1)) for j, c in counts.items()}

    def make_input(
        self, fill: NDArray[Any], bins: PiecewiseLinear | None, generators: Generators
    ) -> FeatureInput | None:
        """The first module of a network, or None for numbers without missing values and bins."""
        if not (self.gaps.any() or self.categorical.any() or bins is not None):
            return None
        indicated: list[Any] = []
        embedded: list[Any] = []
        for j, frequent in self.frequent.items():
            into = indicated if frequent.sum() <= MOST_INDICATORS else embedded
            into.append((j, frequent.tolist()))
        return FeatureInput(
            fill[self.numbers].tolist(),
            self.numbers.tolist(),
            gaps=np.flatnonzero(self.gaps).tolist(),
            few=indicated,
            many=embedded,
            bins=bins,
            generators=generators,
        )


class Bins:
    """Quantile bins of the features that are far from normal.

    Pixels, flags and sparse rows have none.
    """

    def __init__(self, statistics: FeatureStatistics, scaling: Scaling, n_bins: int) -> None:
        d = len(scaling.center)
        self.edges = np.zeros((1, d))
        self.kept = np.zeros((d, 0), dtype=bool)
        if not n_bins or statistics.sparse:
            return
        alike, resolution = have_common_unit(statistics), rounding_of(statistics.quantiles)
        encoded = _far_from_normal(statistics.quantiles)
        if alike.sum() >= PIXELS:
            encoded &= ~alike
        most = min(n_bins, MOST_BINS // max(1, encoded.sum()))
        n_each = np.minimum(most, statistics.count // ROWS_OF_BIN).astype(int)
        levels = np.minimum(np.arange(most + 1)[:, np.newaxis] / np.maximum(n_each, 1), 1)
        self.edges = _at(levels, statistics.quantiles)
        width, narrowest = _widths(scaling.scale_rows(self.edges))
        differ = np.diff(self.edges, axis=0) > resolution
        self.kept = (differ & (width > narrowest)).T
        self.kept[~encoded | (self.kept.sum(axis=1) < FEWEST_BINS)] = False

    def bounds(self, scaling: Scaling) -> tuple[NDArray[Any], NDArray[Any]]:
        """Lower bounds and widths of the bins after scaling."""
        edges = scaling.scale_rows(self.edges)
        return edges[:-1].T[self.kept], np.maximum(*_widths(edges)).T[self.kept]

    def make_encoding(self, scaling: Scaling, numbers: NDArray[Any]) -> PiecewiseLinear | None:
        """The encoding of numbers in the columns `numbers`; None without bins."""
        if not self.kept.any():
            return None
        columns = np.searchsorted(numbers, np.nonzero(self.kept)[0])
        return PiecewiseLinear(columns, *self.bounds(scaling))


def _widths(edges: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Widths of the bins (n_bins, n_features) after scaling, and the narrowest useful ones."""
    largest = np.maximum(abs(edges[:-1]), abs(edges[1:]))
    return np.diff(edges, axis=0), np.maximum(NARROWEST_BIN * largest, np.finfo(np.float32).tiny)


def _far_from_normal(quantiles: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of features whose inner quantiles are not a linear function of normal quantiles."""
    inner = np.isin(SHARES, np.linspace(0, 1, 17)[1:-1])
    values, normal = quantiles[inner], norm.ppf(SHARES[inner, np.newaxis])
    values = values - values.mean(axis=0)
    lengths = np.sqrt((values**2).sum(axis=0) * (normal**2).sum())
    return (normal.T @ values)[0] < NORMAL * lengths


def _at(levels: NDArray[Any], quantiles: NDArray[Any]) -> NDArray[Any]:
    """Quantiles of each feature at other levels (n_levels, n_features), interpolated."""
    pairs = zip(levels.T, quantiles.T, strict=True)
    return np.column_stack([np.interp(level, SHARES, column) for level, column in pairs])


def find_categories(X: Any, categorical_features: Any) -> NDArray[np.bool_] | None:
    """Mask of the columns with categories, or None if there are none."""
    if categorical_features is None:
        return None
    if isinstance(categorical_features, str):  # "from_dtype"
        if not is_frame(X):
            return None
        mask = np.array([holds_categories(select(X, j)) for j in range(X.shape[1])], dtype=bool)
    else:
        X = as_table(X)
        if len(X.shape) != 2:  # scikit-learn raises the error
            return None
        mask = _select(X, categorical_features)
        if sparse.issparse(X) and mask.any():
            raise ValueError(
                f"categorical_features={categorical_features!r}, but X is sparse; expected a "
                "DataFrame or an array. Pass X.toarray(), or encode the categories first."
            )
    return mask if mask.any() else None


def _select(X: Any, categorical_features: ArrayLike) -> NDArray[np.bool_]:
    """Mask of the columns given by a mask, positions or names."""
    chosen: Any = np.asarray(categorical_features)
    if chosen.dtype.kind in "OUS":
        columns = list(X.columns) if is_frame(X) else []
        if unknown := [name for name in chosen.tolist() if name not in columns]:
            raise ValueError(
                f"categorical_features contains {unknown}, but the columns of X are {columns}; "
                "expected names of columns of a DataFrame, a mask, or positions."
            )
        chosen = [columns.index(name) for name in chosen.tolist()]
    mask = np.zeros(X.shape[1], dtype=bool)
    if len(chosen):
        mask[chosen] = True
    return mask
