"""Weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from .masks import check_no_mask


def check_weight(sample_weight: Any, like: Any) -> NDArray[np.float64] | None:
    """Non-negative weights, one for each row of `like`; None for equal ones."""
    if sample_weight is None:
        return None
    check_no_mask(sample_weight, "sample_weight")
    if len(shape := np.asarray(sample_weight).shape) > 1:
        raise ValueError(
            f"sample_weight has shape {shape}; expected (n_samples,). Costs are passed by keyword, "
            "as in fit(X, y, cost=C)."
        )
    weight: NDArray[np.float64] = _check_sample_weight(
        sample_weight, like, dtype=np.float64, ensure_non_negative=True
    )
    return weight


def check_some_weight(weight: NDArray[Any]) -> None:
    """Raise an error for weights that are all zero, or whose sum is not finite."""
    with np.errstate(over="ignore"):
        total = weight.sum()
    if not np.isfinite(total):
        raise ValueError(
            f"sample_weight sums to {total}; expected finite weights with a finite sum. "
            "Divide all of them by the largest, say; only their ratios matter."
        )
    if not (weight > 0).any():
        raise ValueError(
            "sample_weight is zero for every sample; some must be positive. Leave it out to weigh "
            "all samples alike."
        )
