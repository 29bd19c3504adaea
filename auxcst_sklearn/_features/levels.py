"""Which gaps and levels of the features have an input of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..modules._feature_input import FeatureInput
from .scale import row_blocks

# Up to so many levels have an indicator each; more have vectors that are learnt.
MOST_INDICATORS = 32
# Levels in fewer rows than this, or than a hundredth of all, are too rare to learn from.
RARE = 10


class Levels:
    """Columns with gaps, and the levels of the categories, in the training examples."""

    def __init__(self, X: Any, categorical: NDArray[np.bool_] | None, n_codes: list[int]) -> None:
        n, d = X.shape
        self.categorical = np.zeros(d, dtype=bool) if categorical is None else categorical
        self.gaps = np.zeros(d, dtype=bool)
        if not sparse.issparse(X):
            missing = sum(np.isnan(X[part]).sum(axis=0) for part in row_blocks(X))
            self.gaps = (missing > 0) & (missing < n)
        self.kept = self.gaps | self.categorical  # columns whose NaN the network reads
        self.own = {}
        for j, size in zip(np.flatnonzero(self.categorical), n_codes):
            codes = X[:, j]
            count = np.bincount(codes[codes >= 0].astype(np.int64), minlength=size)
            self.own[int(j)] = count >= np.clip(n // 100, 1, RARE)

    def make_input(self, fill: NDArray) -> FeatureInput | None:
        """The first module of a network, or None if all columns are numbers without gaps."""
        if not (self.gaps.any() or self.categorical.any()):
            return None
        numbers = np.flatnonzero(~self.categorical)
        few: list[Any] = []
        many: list[Any] = []
        for j, own in self.own.items():
            (few if own.sum() <= MOST_INDICATORS else many).append((j, own.tolist()))
        return FeatureInput(
            fill[numbers].tolist(),
            numbers.tolist(),
            gaps=np.flatnonzero(self.gaps).tolist(),
            few=few,
            many=many,
        )
