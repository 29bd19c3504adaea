"""Centre and scale of the features, where the training set needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

# Deviations, and root mean squares of features with a common unit, that suit start weights and
# rates; and the largest distance of a mean from zero, in deviations.
SMALLEST, LARGEST, FARTHEST = 0.1, 10.0, 10.0


class FeatureStatistics:
    """Means, deviations and bounds of features, over one or several blocks of rows."""

    def update(self, X: Any) -> FeatureStatistics:
        """Take in more rows; the first ones decide whether the features count as sparse."""
        if not hasattr(self, "scaler"):
            self.sparse = sparse.issparse(X)
            self.scaler = StandardScaler(with_mean=not self.sparse)
            self.low, self.high = np.full((2, X.shape[1]), [[np.inf], [-np.inf]])
        for part in gen_batches(X.shape[0], 4096):  # without a copy of all rows
            rows = X[part]
            if sparse.issparse(rows) and not self.sparse:
                rows = rows.toarray()
            self.scaler.partial_fit(rows)
            if not self.sparse:
                self.low = np.minimum(self.low, rows.min(axis=0))
                self.high = np.maximum(self.high, rows.max(axis=0))
        return self

    def scale(self, standardize: bool | str) -> tuple[NDArray, NDArray] | None:
        """Centre and scale of every feature, or None to leave them as they are.

        With "auto" features of a common unit, such as pixels, share one scale, and the others have
        their own; a group that is of order one stays as it is, and so do sparse rows.
        """
        if standardize is False or (standardize == "auto" and self.sparse):
            return None
        mean, deviation = self._moments()
        scale = np.where(deviation > 0, deviation, 1.0)
        if standardize is True:
            return mean, scale
        varying = deviation > 0
        alike = self._have_common_unit(varying)
        largest = np.sqrt(mean**2 + deviation**2)[alike].max(initial=0)
        if alike.any():
            scale[alike] = np.sqrt(np.mean(deviation[alike & varying] ** 2))
        own = varying & ~alike
        wide = (deviation >= SMALLEST) & (deviation <= LARGEST)
        near = np.abs(mean) <= FARTHEST * deviation
        stay = np.zeros_like(varying)
        stay[alike] = SMALLEST <= largest <= LARGEST
        stay[~alike] = (wide & near)[own].all()
        return None if stay.all() else (np.where(stay, 0.0, mean), np.where(stay, 1.0, scale))

    def _moments(self) -> tuple[NDArray, NDArray]:
        mean, var = self.scaler.mean_, self.scaler.var_
        constant = self.scaler.scale_ == 1  # up to rounding, as the scaler decides it
        return mean, np.where(constant & (var < 0.5), 0.0, np.sqrt(var))

    def _have_common_unit(self, varying: NDArray) -> NDArray:
        """Mask of features between common bounds, the lower of which they all reach."""
        none = np.zeros_like(varying)
        if not varying.any():
            return none
        both = np.stack([self.low, self.high])
        bounds, counts = np.unique(both[:, varying], axis=1, return_counts=True)
        bottom, top = bounds[:, counts.argmax()]
        if counts.max() < max(4, varying.sum() / 8):
            return none
        return (self.low == bottom) & (self.high <= top)
