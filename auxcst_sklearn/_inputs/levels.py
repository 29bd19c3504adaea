"""Which missing values and levels of the features have their own input."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..modules._bins import PiecewiseLinear
from ..modules._feature_input import FeatureInput
from .float32 import row_blocks

# Up to this many levels have an indicator each; more have embedding vectors.
MOST_INDICATORS = 32
# Levels in fewer rows than this, or than a hundredth of all, share one with unknown ones. Of a
# thousand levels in 6,000 rows, those in 3 to 9 rows were worth learning, those in 1 or 2 were not.
RARE = 3


class Levels:
    """Columns with missing values, and the levels of the categories, in the training samples."""

    def __init__(self, X: Any, categorical: NDArray[np.bool_] | None, n_codes: list[int]) -> None:
        n, d = X.shape
        self.categorical = np.zeros(d, dtype=bool) if categorical is None else categorical
        self.gaps = np.zeros(d, dtype=bool)
        if not sparse.issparse(X):
            missing = sum(np.isnan(X[part]).sum(axis=0) for part in row_blocks(X))
            # Without any number a column is zero; a categorical column still has this one input.
            self.gaps = (missing > 0) & ((missing < n) | self.categorical)
        self.kept = self.gaps | self.categorical  # columns in which the network receives NaN
        columns = np.flatnonzero(self.categorical).tolist()
        counts = {j: np.zeros(size, dtype=np.int64) for j, size in zip(columns, n_codes)}
        for part in row_blocks(X) if columns else ():
            rows = X[part]  # read, and encoded, only once
            for j, count in counts.items():
                codes = rows[:, j]
                count += np.bincount(codes[codes >= 0].astype(np.int64), minlength=len(count))
        fewest = np.clip(n // 100, 1, RARE)
        self.frequent = {j: c >= min(fewest, c.max(initial=1)) for j, c in counts.items()}

    @property
    def numbers(self) -> NDArray[Any]:
        """Columns of numbers."""
        return np.flatnonzero(~self.categorical)

    def make_input(self, fill: NDArray[Any], bins: PiecewiseLinear | None) -> FeatureInput | None:
        """The first module of a network, or None for numbers without missing values and bins."""
        if not (self.gaps.any() or self.categorical.any() or bins is not None):
            return None
        numbers = self.numbers
        indicated: list[Any] = []
        embedded: list[Any] = []
        for j, frequent in self.frequent.items():
            into = indicated if frequent.sum() <= MOST_INDICATORS else embedded
            into.append((j, frequent.tolist()))
        return FeatureInput(
            fill[numbers].tolist(),
            numbers.tolist(),
            gaps=np.flatnonzero(self.gaps).tolist(),
            few=indicated,
            many=embedded,
            bins=bins,
        )
