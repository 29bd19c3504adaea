"""Bins for the piecewise linear encoding of numbers that are far from normal."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from ..modules._bins import PiecewiseLinear
from .scale import QUANTILES, FeatureStatistics, Scaling

# Features whose quantiles correlate by less than this with those of a normal distribution are
# encoded. Of normal ones bins raised the cost by 2 to 7 %.
NORMAL = 0.98
# Bins of all features; more features have fewer each.
MOST_BINS = 1024
FEWEST_BINS = 3
# A common unit of so many columns is that of pixels; fewer may be grades or months, worth bins.
PIXELS = 17
# A bin of fewer rows says little.
ROWS_OF_BIN = 100
# Narrower bins, after scaling, are below the resolution of float32.
NARROWEST = 1e-6


class Bins:
    """Bins between quantiles of the features that are far from normal.

    Pixels have none, nor do flags and sparse rows.
    """

    def __init__(self, statistics: FeatureStatistics, scaling: Scaling, n_bins: int) -> None:
        d = len(scaling.center)
        self.edges = np.zeros((1, d))
        self.kept = np.zeros((d, 0), dtype=bool)
        if not n_bins or statistics.sparse:
            return
        quantiles = scaling.scaled(statistics.quantiles)
        encoded = _far_from_normal(quantiles)
        alike = statistics.have_common_unit()
        if alike.sum() >= PIXELS:
            encoded &= ~alike
        n_rows = int(statistics.count.max(initial=0))
        n_each = min(n_bins, MOST_BINS // max(1, encoded.sum()), n_rows // ROWS_OF_BIN)
        if n_each < FEWEST_BINS:
            return
        self.edges = _at(np.linspace(0, 1, n_each + 1), statistics.quantiles)
        self.kept = np.diff(scaling.scaled(self.edges), axis=0).T > NARROWEST
        self.kept[~encoded | (self.kept.sum(axis=1) < FEWEST_BINS)] = False

    def bounds(self, scaling: Scaling) -> tuple[NDArray[Any], NDArray[Any]]:
        """Lower bounds and widths of the bins after scaling."""
        edges = scaling.scaled(self.edges).T
        low, width = edges[:, :-1][self.kept], np.diff(edges)[self.kept]
        return low, np.maximum(width, NARROWEST)

    def make_encoding(self, scaling: Scaling, numbers: NDArray[Any]) -> PiecewiseLinear | None:
        """The encoding of numbers, of which `numbers` are the columns; None without a bin."""
        if not self.kept.any():
            return None
        columns = np.searchsorted(numbers, np.nonzero(self.kept)[0])
        return PiecewiseLinear(columns, *self.bounds(scaling))


def _far_from_normal(quantiles: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of features whose inner quantiles are not on a line with normal ones."""
    inner = np.linspace(0, 1, 17)[1:-1]
    found, normal = _at(inner, quantiles), norm.ppf(inner)
    found = found - found.mean(axis=0)
    lengths = np.sqrt((found**2).sum(axis=0) * (normal**2).sum())
    far: NDArray[np.bool_] = normal @ found < NORMAL * lengths
    return far


def _at(levels: NDArray[Any], quantiles: NDArray[Any]) -> NDArray[Any]:
    """Quantiles (n_levels, n_features) of other levels, from those of `QUANTILES`."""
    columns = [np.interp(levels, QUANTILES, column) for column in quantiles.T]
    found: NDArray[Any] = np.array(columns).T
    return found
