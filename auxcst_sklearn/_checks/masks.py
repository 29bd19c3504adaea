"""Masked arrays, whose masks numpy and scikit-learn ignore."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_no_mask(values: Any, name: str) -> None:
    """Raise an error for masked values, which numpy and scikit-learn read as if not masked."""
    # pandas arrays have a `_mask` too, as may a DataFrame, which numpy would take for its own.
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        n_masked = np.count_nonzero(np.ma.getmaskarray(values))
        raise ValueError(
            f"{name} holds {n_masked} masked values, which would be read as if they were not; "
            f"expected an array without a mask. Pass {name}.filled(...), with NaN for missing "
            "features, or leave these rows out."
        )
