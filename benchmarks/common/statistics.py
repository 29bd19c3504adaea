"""Statistics that several benchmarks report."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def standard_error(values: ArrayLike) -> float:
    """Standard error of the mean; NaN where there is but one value."""
    values = np.asarray(values)
    if len(values) < 2:
        return float("nan")
    return float(values.std(ddof=1) / np.sqrt(len(values)))
