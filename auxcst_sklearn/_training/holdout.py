"""Which rows a training holds out."""

from __future__ import annotations

import numpy as np
from sklearn.model_selection import train_test_split


def hold_out(
    label: np.ndarray, fraction: float, *, name: str, remedy: str, random_state: int
) -> tuple[np.ndarray, np.ndarray]:
    """Indices of training and held-out rows, stratified where every class is large enough."""
    n = len(label)
    n_held_out = max(1, round(fraction * n))
    if n_held_out >= n:
        raise ValueError(
            f"{name}={fraction} holds out {n_held_out} of {n} rows and leaves none to train on. "
            f"Lower it, or set {remedy}."
        )
    count = np.unique(label, return_counts=True)[1]
    possible = count.min() > 1 and len(count) <= min(n_held_out, n - n_held_out)
    return tuple(
        train_test_split(
            np.arange(n),
            test_size=n_held_out,
            stratify=label if possible else None,
            random_state=random_state,
        )
    )
