"""Numbers that the network maps to [0, 1], as auto-encoders need."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis

from ..modules._feature_input import UnitRange
from .base import Inputs
from .float32 import bounds_of


class NumberInputs(Inputs):
    """Numbers in [0, 1]; features beyond it are mapped to it by their smallest and largest value.

    The network does so a batch at a time, so that sparse rows stay sparse.
    """

    def learn(self, X: Any, *, stream: bool) -> None:
        bounds = min_max_axis(X, axis=0) if sparse.issparse(X) else bounds_of(X)
        inside = (bounds[0] >= 0) & (bounds[1] <= 1)
        self.range = np.where(inside, [[0.0], [1.0]], bounds)

    def make_module(self) -> UnitRange:
        return UnitRange(*self.range)

    def attributes(self) -> dict[str, Any]:
        return {"input_range_": self.range}
