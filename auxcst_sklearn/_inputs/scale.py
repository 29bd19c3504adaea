"""Centre and scale of the features, if the training set needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.sparsefuncs import mean_variance_axis

from .float32 import as_float32, row_blocks

# Deviations, and root mean squares of features with a common unit, that suit initial weights and
# learning rates; and the largest distance of a mean from zero, in deviations.
SMALLEST, LARGEST, FARTHEST = 0.1, 10.0, 10.0
# Features with values this many deviations from their mean have outliers, and are clipped softly.
OUTLYING = 10.0
# Quantiles are computed from this many rows, evenly spaced.
QUANTILE_ROWS = 4096
QUANTILES = np.linspace(0, 1, 65)
# Distance between the outer quartiles of a normal distribution, in deviations.
NORMAL_IQR = 1.349


@dataclass
class Scaling:
    """Scaling of each feature: ``(X - center) / scale``, clipped softly if it is heavy-tailed.

    `fill` is the median after scaling, for missing values. Sparse rows would become dense, so the
    network scales them.
    """

    center: NDArray[Any]
    scale: NDArray[Any]
    heavy: NDArray[Any]
    fill: NDArray[Any]
    in_network: bool

    def __post_init__(self) -> None:
        self.has_heavy = bool(self.heavy.any())
        self.changes = bool((self.center != 0).any() or (self.scale != 1).any())

    @property
    def moves(self) -> bool:
        """Whether rows without missing values change at all."""
        return self.changes or self.has_heavy

    def apply(self, X: Any, keep: NDArray[np.bool_]) -> Any:
        """Float32 rows; NaN is kept in the columns `keep`, and replaced by the median in others."""
        has_nan = bool(np.isnan(X.sum(dtype=np.float64)))
        if not (self.moves or has_nan):
            return as_float32(X)
        scaled = np.empty(X.shape, np.float32)
        with np.errstate(over="ignore"):  # found below
            for part in row_blocks(X):
                rows = self.scaled(X[part].toarray() if sparse.issparse(X) else X[part])
                if has_nan:
                    rows = np.where(np.isnan(rows) & ~keep, self.fill, rows)
                scaled[part] = rows
        if not np.isfinite(scaled.sum()):  # faster than the check
            assert_all_finite(scaled, allow_nan=True, input_name="X")
        return scaled

    def scaled(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows in float64, after scaling."""
        rows = (rows - self.center) / self.scale  # in float64, whatever the rows are
        if self.has_heavy:
            heavy = rows[:, self.heavy]
            rows[:, self.heavy] = heavy / np.hypot(1, heavy / OUTLYING)
        return rows


class FeatureStatistics:
    """Means, deviations, bounds and quantiles of features, over one or several blocks of rows.

    Missing values and codes of categories are ignored. Sparse rows have no quantiles.
    """

    def __init__(self, categorical: NDArray[np.bool_] | None = None) -> None:
        self.categorical = categorical

    @np.errstate(over="ignore", invalid="ignore")  # detected when deviations are computed
    def update(self, X: Any) -> FeatureStatistics:
        """Add rows; the first ones decide whether the features count as sparse."""
        d = X.shape[1]
        if not hasattr(self, "count"):
            self.sparse = sparse.issparse(X)
            self.count, self.mean, self.var = np.zeros((3, d))
            self.low, self.high = np.full((2, d), [[np.inf], [-np.inf]])
            self.quantiles = np.zeros((len(QUANTILES), d))
        before = self.count
        for part in row_blocks(X):  # without a copy of all rows
            rows = X[part]
            if sparse.issparse(rows) and self.sparse:
                rows = rows.astype(np.float64)
                rows.sum_duplicates()  # entries of one place count as one value
                mean, var = mean_variance_axis(rows, axis=0)
                self._join(np.full(d, float(rows.shape[0])), mean, var)
            else:
                self._take(self._numbers(rows))
        if not self.sparse:
            constant = self.low == self.high  # whose moments have errors of rounding
            self.mean[constant], self.var[constant] = self.low[constant], 0.0
            some = self._numbers(X[:: -(-X.shape[0] // QUANTILE_ROWS)])
            self._take_quantiles(some, self.count - before)
        return self

    @property
    def quartiles(self) -> NDArray[Any]:
        """Quartiles of the features, (3, n_features)."""
        return self.quantiles[[16, 32, 48]]

    def _numbers(self, rows: Any) -> NDArray[Any]:
        """Rows in float64, NaN for anything but numbers."""
        rows = rows.toarray() if sparse.issparse(rows) else rows
        numbers: NDArray[Any] = rows.astype(np.float64)
        if self.categorical is not None:
            numbers[:, self.categorical] = np.nan
        return numbers

    def _take(self, rows: NDArray[Any]) -> None:
        self.low = np.fmin(self.low, np.fmin.reduce(rows))
        self.high = np.fmax(self.high, np.fmax.reduce(rows))
        known = ~np.isnan(rows)
        count = known.sum(axis=0).astype(np.float64)
        mean = np.sum(rows, axis=0, where=known) / np.maximum(count, 1)
        rows -= mean
        self._join(count, mean, np.sum(rows**2, axis=0, where=known) / np.maximum(count, 1))

    def _join(self, count: NDArray[Any], mean: NDArray[Any], var: NDArray[Any]) -> None:
        """Moments of all rows, from those so far and those of new rows."""
        total = np.maximum(self.count + count, 1)
        share, apart = count / total, mean - self.mean
        self.var = (1 - share) * self.var + share * var + share * (1 - share) * apart**2
        self.mean = self.mean + share * apart
        self.count = self.count + count

    def _take_quantiles(self, rows: NDArray[Any], count: NDArray[Any]) -> None:
        """Average the quantiles of blocks of rows, weighted by their numbers of values."""
        if np.isnan(rows.sum()):
            found = np.array([_quantiles(column[~np.isnan(column)]) for column in rows.T]).T
        else:
            found = _quantiles(rows)
        share = np.where(np.isnan(found).any(axis=0), 0, count / np.maximum(self.count, 1))
        self.quantiles = self.quantiles + share * (np.nan_to_num(found) - self.quantiles)

    def scaling(self, standardize: bool | str) -> Scaling:
        """The scaling of every feature.

        With "auto" features with a common unit, such as pixels, share one scale, and each of the
        others has its own; groups of order one, and sparse rows, are not scaled.
        """
        d = len(self.mean)
        center, scale, heavy = np.zeros(d), np.ones(d), np.zeros(d, dtype=bool)
        if standardize is True or (standardize == "auto" and not self.sparse):
            deviation = self._deviation()
            alike = np.zeros(d, dtype=bool)
            if standardize == "auto":
                alike = self.have_common_unit()
            heavy = self._are_heavy(deviation) & ~alike
            mean, deviation = self._robust(deviation, heavy)
            move = np.ones(d, dtype=bool)
            if standardize == "auto":
                move = ~self._stay(mean, deviation, alike, heavy)
            # A value other than that of a constant does not become a large input.
            unit = np.where(deviation > 0, deviation, np.maximum(np.abs(mean), 1.0))
            if (alike & (deviation > 0)).any():
                unit[alike] = np.sqrt(np.mean(deviation[alike & (deviation > 0)] ** 2))
            center[move], scale[move] = mean[move], unit[move]
        scaling = Scaling(center, scale, heavy, np.zeros(d), self.sparse)
        if not self.sparse:
            scaling.fill = scaling.scaled(self.quartiles[[1]])[0]
        return scaling

    def _deviation(self) -> NDArray[Any]:
        """Deviations, zero for features that are constant up to rounding."""
        if not np.isfinite(self.var).all():
            column = np.flatnonzero(~np.isfinite(self.var))[0]
            raise ValueError(
                f"Column {column} of X has values too large to be squared in float64; divide it by "
                "a constant first."
            )
        deviation = np.sqrt(self.var)
        return np.where(deviation > 100 * np.finfo(np.float64).eps * abs(self.mean), deviation, 0.0)

    def _are_heavy(self, deviation: NDArray[Any]) -> NDArray[Any]:
        """Mask of features whose deviation is dominated by outliers: a few, or many far away."""
        if self.sparse:
            return np.zeros(len(deviation), dtype=bool)
        iqr = self.quartiles[2] - self.quartiles[0]
        farthest = np.maximum(self.high - self.mean, self.mean - self.low)
        # No value of n is farther from the mean than sqrt(n - 1) deviations.
        limit = np.where(iqr > 0, np.minimum(OUTLYING, 0.6 * np.sqrt(self.count)), OUTLYING)
        few = (farthest > limit * deviation) & (deviation > 1.5 * iqr / NORMAL_IQR)
        # Such as -999 for a missing value in every twentieth row.
        far = (iqr > 0) & (iqr / NORMAL_IQR < SMALLEST * deviation)
        heavy: NDArray[np.bool_] = (deviation > 0) & (few | far)
        return heavy

    def _robust(
        self, deviation: NDArray[Any], heavy: NDArray[Any]
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Centres and deviations; for heavy-tailed features from the quartiles, if these differ."""
        low, median, high = self.quartiles
        robust = heavy & (high > low)
        center = np.where(robust, median, self.mean)
        return center, np.where(robust, (high - low) / NORMAL_IQR, deviation)

    def _stay(
        self, mean: NDArray[Any], deviation: NDArray[Any], alike: NDArray[Any], heavy: NDArray[Any]
    ) -> NDArray[np.bool_]:
        """Mask of the features of order one, group by group."""
        varying = deviation > 0
        largest = np.sqrt(mean**2 + deviation**2)[alike].max(initial=0)
        wide = (deviation >= SMALLEST) & (deviation <= LARGEST)
        near = np.abs(mean) <= FARTHEST * deviation
        stay = np.zeros_like(varying)
        stay[alike] = SMALLEST <= largest <= LARGEST
        own = ~alike & ~heavy
        stay[own] = (wide & near)[own & varying].all()
        stay[own & ~varying] &= np.abs(mean[own & ~varying]) <= LARGEST
        return stay

    def have_common_unit(self) -> NDArray[np.bool_]:
        """Mask of features with common bounds that all reach the lower bound.

        A pixel at the rim varies less than the others, and differs from the lower bound in few
        rows. A feature that varies as little in many rows, as a flag beside percentages, has
        another unit.
        """
        deviation = self._deviation()
        varying = deviation > 0
        none = np.zeros_like(varying)
        if not varying.any():
            return none
        both = np.stack([self.low, self.high])
        bounds, counts = np.unique(both[:, varying], axis=1, return_counts=True)
        bottom, top = bounds[:, counts.argmax()]
        if counts.max() < max(4, varying.sum() / 8):
            return none
        within: NDArray[np.bool_] = (self.low == bottom) & (self.high <= top)
        unit = np.sqrt(np.mean(deviation[within & (self.high == top)] ** 2))
        within &= (deviation >= SMALLEST * unit) | (self.quantiles[-2] <= self.low)
        return within


def _quantiles(values: NDArray[Any]) -> NDArray[Any]:
    if not len(values):
        return np.full(len(QUANTILES), np.nan)
    quantiles: NDArray[Any] = np.quantile(values, QUANTILES, axis=0)
    return quantiles
