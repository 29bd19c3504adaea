"""Bins for the piecewise linear encoding of numbers that are far from normal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from ..modules._bins import PiecewiseLinear
from .scaling import Scaling, have_common_unit, rounding_of
from .statistics import LEVELS, FeatureStatistics

# Features whose quantiles have a lower correlation than this with those of a normal distribution
# are encoded. For normal features, bins raised the cost by 2 to 7 %.
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
        encoded = _far_from_normal(statistics.quantiles)
        alike = have_common_unit(statistics)
        if alike.sum() >= PIXELS:
            encoded &= ~alike
        most = min(n_bins, MOST_BINS // max(1, encoded.sum()))
        n_each = np.minimum(most, statistics.count // ROWS_OF_BIN).astype(int)
        levels = np.minimum(np.arange(most + 1)[:, np.newaxis] / np.maximum(n_each, 1), 1)
        self.edges = _at(levels, statistics.quantiles)
        width, narrowest = _widths(scaling.scaled(self.edges))
        differ = np.diff(self.edges, axis=0) > rounding_of(statistics.quantiles)
        self.kept = (differ & (width > narrowest)).T
        self.kept[~encoded | (self.kept.sum(axis=1) < FEWEST_BINS)] = False

    def bounds(self, scaling: Scaling) -> tuple[NDArray[Any], NDArray[Any]]:
        """Lower bounds and widths of the bins after scaling."""
        edges = scaling.scaled(self.edges)
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
    inner = np.linspace(0, 1, 17)[1:-1, np.newaxis]
    values, normal = _at(np.repeat(inner, quantiles.shape[1], axis=1), quantiles), norm.ppf(inner)
    values = values - values.mean(axis=0)
    lengths = np.sqrt((values**2).sum(axis=0) * (normal**2).sum())
    far: NDArray[np.bool_] = (normal.T @ values)[0] < NORMAL * lengths
    return far


def _at(levels: NDArray[Any], quantiles: NDArray[Any]) -> NDArray[Any]:
    """Quantiles of each feature at other levels (n_levels, n_features), interpolated."""
    pairs = zip(levels.T, quantiles.T, strict=True)
    return np.column_stack([np.interp(level, LEVELS, column) for level, column in pairs])
