"""Moments, bounds and quantiles of the features, over one or several blocks of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.sparsefuncs import mean_variance_axis

from .float32 import row_blocks

# Quantiles are computed from all rows, or a random sample of this many; wide tables have smaller
# samples, of about this many values.
MOST_SAMPLED, LEAST_SAMPLED, SAMPLED_VALUES = 2**14, 2**10, 2**21
# A seed that nobody draws data with, whose values would be the keys.
SEED = 8_316_470_529
# Quantiles are computed again when there are more rows by this factor.
GROWTH = 1.02
# Levels of the quantiles: sixty-fourths, and smaller steps at both ends.
EVEN_LEVELS = np.linspace(0, 1, 65)
_ENDS = np.array([1 / 512, 1 / 256, 1 / 128])
LEVELS = np.sort(np.concatenate([EVEN_LEVELS, _ENDS, 1 - _ENDS]))
IS_EVEN = np.isin(LEVELS, EVEN_LEVELS)


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
            self.quantiles = np.zeros((len(LEVELS), d))
            self.sample = _Sample(d)
        for part in row_blocks(X):  # without a copy of all rows
            rows = X[part]
            if sparse.issparse(rows) and self.sparse:
                rows = rows.astype(np.float64)
                rows.sum_duplicates()  # entries of one place count as one value
                mean, var = mean_variance_axis(rows, axis=0)
                self._join(np.full(d, float(rows.shape[0])), mean, var)
            else:
                self._add(self._numbers(rows))
        if not self.sparse:
            constant = self.low == self.high  # whose moments have errors of rounding
            self.mean[constant], self.var[constant] = self.low[constant], 0.0
            if self.sample.has_grown():
                self.quantiles = self.sample.quantiles(self.mean)
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
        return np.where(deviation > 100 * np.finfo(np.float64).eps * abs(self.mean), deviation, 0.0)

    def _numbers(self, rows: Any) -> NDArray[Any]:
        """Rows in float64, NaN for anything but numbers."""
        rows = rows.toarray() if sparse.issparse(rows) else rows
        numbers: NDArray[Any] = rows.astype(np.float64)
        if self.categorical is not None:
            numbers[:, self.categorical] = np.nan
        return numbers

    def _add(self, rows: NDArray[Any]) -> None:
        if not self.sparse:
            self.sample.add(rows)
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


class _Sample:
    """All rows, or a random sample of them, whatever their order and blocks.

    Every row draws a random key; those with the smallest keys are kept.
    """

    def __init__(self, n_features: int) -> None:
        self.size = min(max(SAMPLED_VALUES // max(1, n_features), LEAST_SAMPLED), MOST_SAMPLED)
        self.rng = np.random.default_rng(SEED)
        self.keys, self.rows = np.empty(0), np.empty((0, n_features))
        self.new: list[tuple[NDArray[Any], NDArray[Any]]] = []
        self.n_rows, self.n_rows_before = 0, 0

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

    def has_grown(self) -> bool:
        """Whether there are many more rows than at the last quantiles."""
        return self.n_rows > GROWTH * self.n_rows_before

    def quantiles(self, default: NDArray[Any]) -> NDArray[Any]:
        """Quantiles (n_levels, n_features); `default` where all sampled values are missing."""
        self._join()
        self.n_rows_before = self.n_rows
        if not np.isnan(self.rows.sum()):
            return _quantiles(self.rows)
        columns = [column[~np.isnan(column)] for column in self.rows.T]
        pairs = zip(columns, default, strict=True)
        found = [_quantiles(c if len(c) else np.array([value])) for c, value in pairs]
        return np.column_stack(found)


def _quantiles(values: NDArray[Any]) -> NDArray[Any]:
    quantiles: NDArray[Any] = np.quantile(values, LEVELS, axis=0)
    return quantiles
