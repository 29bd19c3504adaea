"""Statistics of the features, and the centre and scale of each, if the training needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.stats import norm
from sklearn.utils import assert_all_finite
from sklearn.utils.sparsefuncs import mean_variance_axis

from .._checks.lazy_rows import ROUNDING, row_blocks

# Quantiles are computed from all rows, or a random sample of this many; wide tables have smaller
# samples, of about this many values.
MOST_SAMPLED, LEAST_SAMPLED, SAMPLED_VALUES = 2**14, 2**10, 2**21
# An unusual seed, so that keys do not equal values of data drawn from a seed.
SEED = 8_316_470_529
# Quantiles are computed again when there are more rows by this factor.
GROWTH = 1.02
# Shares of the rows below the quantiles: sixty-fourths, and smaller steps at both ends.
EVEN_SHARES = np.linspace(0, 1, 65)
_ENDS = np.array([1 / 512, 1 / 256, 1 / 128])
SHARES = np.sort(np.concatenate([EVEN_SHARES, _ENDS, 1 - _ENDS]))
IS_EVEN = np.isin(SHARES, EVEN_SHARES)
# Deviations, and root mean squares of features with a common unit, that suit initial weights and
# learning rates; and the largest distance of a mean from zero, in deviations.
SMALLEST_DEVIATION, LARGEST_DEVIATION, FARTHEST_MEAN = 0.1, 10.0, 10.0
# Features with values this many deviations from their mean have outliers, and are clipped softly.
OUTLYING = 10.0
# Values merge where an eighth of the rows that differ is within the first distance after scaling;
# beyond the clipping, where this share and number of rows is, in steps of the second distance.
MERGED, MERGED_OUTSIDE = 0.01, 0.1
MERGED_SHARE, MERGED_ROWS = 1 / 128, 10
# Distance between the outer quartiles of a normal distribution, in deviations.
NORMAL_IQR = 1.349


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
            self.quantiles = np.zeros((len(SHARES), d))
            self.some_rows = _RandomRows(d)
        for block in row_blocks(X):  # without a copy of all rows
            rows = X[block]
            if sparse.issparse(rows) and self.sparse:
                rows = rows.astype(np.float64)
                rows.sum_duplicates()  # entries of one place count as one value
                mean, var = mean_variance_axis(rows, axis=0)
                self._join(np.full(d, float(rows.shape[0])), mean, var)
            else:
                self._add(rows)
        if not self.sparse:
            constant = self.low == self.high  # whose moments have errors of rounding
            self.mean[constant], self.var[constant] = self.low[constant], 0.0
            if self.some_rows.n_rows > GROWTH * self.some_rows.n_rows_before:
                self.quantiles = self.some_rows.quantiles(self.mean)
        return self

    @property
    def quartiles(self) -> NDArray[Any]:
        """Quartiles of the features, (3, n_features)."""
        return self.quantiles[IS_EVEN][[16, 32, 48]]

    def deviation(self) -> NDArray[Any]:
        """Deviations, zero for features that are constant up to rounding."""
        if not np.isfinite(self.var).all():
            column = np.flatnonzero(~np.isfinite(self.var))[0]
            raise ValueError(
                f"Column {column} of X has values too large to be squared in float64; divide it by "
                "a constant first."
            )
        deviation = np.sqrt(self.var)
        return np.where(deviation > ROUNDING * abs(self.mean), deviation, 0.0)

    def _add(self, rows: Any) -> None:
        """Add dense rows, or sparse ones of features that do not count as sparse."""
        rows = (rows.toarray() if sparse.issparse(rows) else rows).astype(np.float64)
        if self.categorical is not None:
            rows[:, self.categorical] = np.nan
        if not self.sparse:
            self.some_rows.add(rows)
        self.low = np.fmin(self.low, np.fmin.reduce(rows))
        self.high = np.fmax(self.high, np.fmax.reduce(rows))
        known = ~np.isnan(rows)
        count = known.sum(axis=0).astype(np.float64)
        mean = np.sum(rows, axis=0, where=known) / np.maximum(count, 1)
        rows -= mean
        self._join(count, mean, np.sum(rows**2, axis=0, where=known) / np.maximum(count, 1))

    def _join(self, count: NDArray[Any], mean: NDArray[Any], var: NDArray[Any]) -> None:
        """Moments of all rows, from earlier moments and from new rows."""
        total = np.maximum(self.count + count, 1)
        share, apart = count / total, mean - self.mean
        self.var = (1 - share) * self.var + share * var + share * (1 - share) * apart**2
        self.mean = self.mean + share * apart
        self.count = self.count + count


class _RandomRows:
    """All rows, or a random sample of them, whatever their order and blocks.

    Every row draws a random key; those with the smallest keys are kept.
    """

    def __init__(self, n_features: int) -> None:
        self.size = min(max(SAMPLED_VALUES // max(1, n_features), LEAST_SAMPLED), MOST_SAMPLED)
        self.rng = np.random.default_rng(SEED)
        self.keys, self.rows = np.empty(0), np.empty((0, n_features))
        self.new: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self.n_rows, self.n_rows_before = 0, 0  # so far, and at the last quantiles

    def add(self, rows: NDArray[Any]) -> None:
        """Add rows, of which some are copied."""
        keys = self.rng.random(len(rows))
        kept = keys < (np.inf if len(self.keys) < self.size else self.keys.max())
        self.new.append((keys[kept], rows[kept]))
        self.n_rows += len(rows)
        if sum(len(keys) for keys, _ in self.new) >= self.size:
            self._join()

    def _join(self) -> None:
        keys, rows = zip((self.keys, self.rows), *self.new)
        self.keys, self.rows, self.new = np.concatenate(keys), np.concatenate(rows), []
        if len(self.keys) > self.size:
            kept = np.argpartition(self.keys, self.size)[: self.size]
            self.keys, self.rows = self.keys[kept], self.rows[kept]

    def quantiles(self, default: NDArray[Any]) -> NDArray[Any]:
        """Quantiles (n_levels, n_features); `default` where all sampled values are missing."""
        self._join()
        self.n_rows_before = self.n_rows
        rows = np.where(np.isnan(self.rows).all(axis=0), default, self.rows)
        return np.nanquantile(rows, SHARES, axis=0)


@dataclass
class Scaling:
    """Scaling of each feature: ``(X - center) / scale``, clipped softly if it is heavy-tailed.

    Features of several scales are `ranked` instead: they become the normal scores of their ranks,
    interpolated from `quantiles` and `scores` (n_levels, n_ranked). `fill` is the median after
    scaling, for missing values. Sparse rows would become dense, so the network scales them.
    """

    center: NDArray[Any]
    scale: NDArray[Any]
    heavy: NDArray[Any]
    ranked: NDArray[Any]
    quantiles: NDArray[Any]
    scores: NDArray[Any]
    fill: NDArray[Any]
    in_network: bool

    def __post_init__(self) -> None:
        self.has_heavy = bool(self.heavy.any())
        self.columns_ranked = np.flatnonzero(self.ranked).tolist()
        self.changes = bool((self.center != 0).any() or (self.scale != 1).any())
        # Whether rows without missing values change at all.
        self.moves = self.changes or self.has_heavy or bool(self.columns_ranked)

    def apply(self, X: Any, keep: NDArray[np.bool_]) -> Any:
        """Float32 rows; NaN is kept in the columns `keep`, and replaced by the median in others."""
        has_nan = bool(np.isnan(X.sum(dtype=np.float64)))
        if not (self.moves or has_nan):
            return as_float32(X)
        scaled = np.empty(X.shape, np.float32)
        with np.errstate(over="ignore"):  # found below
            for block in row_blocks(X):
                rows = self.scale_rows(X[block].toarray() if sparse.issparse(X) else X[block])
                if has_nan:
                    rows = np.where(np.isnan(rows) & ~keep, self.fill, rows)
                scaled[block] = rows
        if not np.isfinite(scaled.sum()):  # faster than the check
            assert_all_finite(scaled, allow_nan=True, input_name="X")
        return scaled

    def scale_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows in float64, after scaling."""
        scaled: NDArray[Any] = (rows - self.center) / self.scale  # float64, whatever the rows are
        if self.has_heavy:
            scaled[:, self.heavy] = _clip(scaled[:, self.heavy])
        for i, j in enumerate(self.columns_ranked):
            scaled[:, j] = np.interp(rows[:, j], self.quantiles[:, i], self.scores[:, i])
        return scaled


def as_float32(X: Any) -> Any:
    """A validated dense array in C order, or a sparse matrix, as float32."""
    if X.dtype == np.float32:
        return X
    with np.errstate(over="ignore"):  # detected below
        X = X.astype(np.float32) if sparse.issparse(X) else X.astype(np.float32, order="C")
    assert_all_finite(X.data if sparse.issparse(X) else X, input_name="X", allow_nan=True)
    return X


def _clip(scaled: NDArray[Any]) -> NDArray[Any]:
    """Scaled values, clipped softly."""
    return scaled / np.hypot(1, scaled / OUTLYING)


def scaling_of(statistics: FeatureStatistics, which: str) -> Scaling:
    """The scaling of every feature: of "none", of "each", or "as_needed".

    As needed, features with a common unit, such as pixels, share one scale, and each of the others
    has its own; groups of order one are not scaled.
    """
    d = len(statistics.mean)
    center, scale, (heavy, ranked) = np.zeros(d), np.ones(d), np.zeros((2, d), dtype=bool)
    if which != "none":
        deviation = statistics.deviation()
        alike = np.zeros(d, dtype=bool)
        if which == "as_needed":
            alike = have_common_unit(statistics)
        heavy = _are_heavy(statistics, deviation) & ~alike
        # A few outliers inflate mean and deviation, and would squeeze all other values together.
        # Quartiles do not depend on them.
        low, median, high = statistics.quartiles
        robust = heavy & (high > low)  # centres and deviations from the quartiles
        mean = np.where(robust, median, statistics.mean)
        deviation = np.where(robust, (high - low) / NORMAL_IQR, deviation)
        ranked = _merge(statistics, mean, deviation, heavy) & ~alike
        heavy &= ~ranked
        move = np.ones(d, dtype=bool)
        if which == "as_needed":
            # Features that are of order one already keep their values, so that a caller's own
            # scaling is not undone.
            move = ~_stay(mean, deviation, alike, heavy | ranked)
        # A constant column has the scale 1, so that other values do not become large inputs.
        unit = np.where(deviation > 0, deviation, np.maximum(np.abs(mean), 1.0))
        if (alike & (deviation > 0)).any():
            unit[alike] = np.sqrt(np.mean(deviation[alike & (deviation > 0)] ** 2))
        center[move], scale[move] = mean[move], unit[move]
    quantiles = statistics.quantiles[:, ranked]
    scores = _normal_scores(quantiles)
    scaling = Scaling(
        center, scale, heavy, ranked, quantiles, scores, np.zeros(d), statistics.sparse
    )
    if not statistics.sparse:
        scaling.fill = scaling.scale_rows(statistics.quartiles[[1]])[0]
    return scaling


def _are_heavy(statistics: FeatureStatistics, deviation: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of features whose deviation is dominated by outliers: a few, or many far away."""
    if statistics.sparse:
        return np.zeros(len(deviation), dtype=bool)
    low, _, high = statistics.quartiles
    iqr, mean = high - low, statistics.mean
    farthest = np.maximum(statistics.high - mean, mean - statistics.low)
    # No value of n is farther from the mean than sqrt(n - 1) deviations.
    limit = np.where(iqr > 0, np.minimum(OUTLYING, 0.6 * np.sqrt(statistics.count)), OUTLYING)
    # Both conditions are needed: a far value alone occurs in any large sample, and a deviation
    # above the quartiles' alone in any skewed column.
    few = (farthest > limit * deviation) & (deviation > 1.5 * iqr / NORMAL_IQR)
    # Such as -999 for a missing value in every twentieth row.
    far = (iqr > 0) & (iqr / NORMAL_IQR < SMALLEST_DEVIATION * deviation)
    return (deviation > 0) & (few | far)


def _merge(
    statistics: FeatureStatistics, mean: NDArray[Any], deviation: NDArray[Any], heavy: NDArray[Any]
) -> NDArray[np.bool_]:
    """Mask of features of several scales, of which one scale makes frequent values almost equal."""
    quantiles = statistics.quantiles
    far = z = (quantiles - mean) / np.where(deviation > 0, deviation, 1.0)
    z = np.where(heavy, _clip(z), z)
    even, scaled, resolution = quantiles[IS_EVEN], z[IS_EVEN], rounding_of(quantiles)
    differ = even[6:-2] - even[2:-6] > resolution
    inside = differ & (scaled[8:] - scaled[:-8] < MERGED)
    outlying = heavy & (np.minimum(abs(far[1:]), abs(far[:-1])) > OUTLYING)
    step = (np.diff(quantiles, axis=0) > resolution) & (np.diff(z, axis=0) < MERGED_OUTSIDE)
    share = np.diff(SHARES) @ (outlying & step)
    outside = (share >= MERGED_SHARE) & (share * statistics.count >= MERGED_ROWS)
    return (deviation > 0) & (inside.any(axis=0) | outside)


def _normal_scores(quantiles: NDArray[Any]) -> NDArray[Any]:
    """Normal quantiles at the levels of the quantiles; of equal ones, at the middle level."""
    scores = np.empty_like(quantiles)
    for j, starts in enumerate((np.diff(quantiles, axis=0) > rounding_of(quantiles)).T):
        first = np.flatnonzero(np.r_[True, starts])
        last = np.r_[first[1:], len(SHARES)] - 1
        middle = (SHARES[first] + SHARES[last]) / 2
        lowest = SHARES[1] / 2
        # The lowest and the highest level would have infinite scores.
        score = norm.ppf(middle.clip(lowest, 1 - lowest))
        scores[:, j] = np.repeat(score, last - first + 1)
    return scores


def rounding_of(quantiles: NDArray[Any]) -> NDArray[Any]:
    """Differences that may be errors of rounding of frequent values, for each feature."""
    frequent = quantiles[IS_EVEN][1:-1]
    return ROUNDING * abs(frequent).max(axis=0)


def _stay(
    mean: NDArray[Any], deviation: NDArray[Any], alike: NDArray[Any], moved: NDArray[Any]
) -> NDArray[np.bool_]:
    """Mask of the features of order one, group by group; of those that are not `moved` anyway."""
    varying = deviation > 0
    largest = np.sqrt(mean**2 + deviation**2)[alike].max(initial=0)
    wide = (deviation >= SMALLEST_DEVIATION) & (deviation <= LARGEST_DEVIATION)
    near = np.abs(mean) <= FARTHEST_MEAN * deviation
    stay = np.zeros_like(varying)
    stay[alike] = SMALLEST_DEVIATION <= largest <= LARGEST_DEVIATION
    others = ~alike & ~moved
    stay[others] = (wide & near)[others & varying].all()
    stay[others & ~varying] &= np.abs(mean[others & ~varying]) <= LARGEST_DEVIATION
    return stay


def have_common_unit(statistics: FeatureStatistics) -> NDArray[np.bool_]:
    """Mask of features with common bounds that all reach the lower bound.

    A pixel at the rim varies less than the others, and differs from the lower bound in few
    rows. A feature that varies as little in many rows, as a flag beside percentages, has
    another unit.
    """
    deviation, low, high = statistics.deviation(), statistics.low, statistics.high
    varying = deviation > 0
    none = np.zeros_like(varying)
    if not varying.any():
        return none
    both = np.stack([low, high])
    bounds, counts = np.unique(both[:, varying], axis=1, return_counts=True)
    bottom, top = bounds[:, counts.argmax()]
    if counts.max() < max(4, varying.sum() / 8):
        return none
    within: NDArray[np.bool_] = (low == bottom) & (high <= top)
    # The typical deviation of features that reach both bounds, such as pixels in the middle of an
    # image.
    unit = np.sqrt(np.mean(deviation[within & (high == top)] ** 2))
    within &= (deviation >= SMALLEST_DEVIATION * unit) | (statistics.quantiles[IS_EVEN][-2] <= low)
    return within
