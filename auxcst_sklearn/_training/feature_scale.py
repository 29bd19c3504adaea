"""Centre and scale of the features, where the training set needs them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import gen_batches

# The root mean square of the largest feature, within which start weights and rates are at home.
SMALLEST, LARGEST = 0.1, 10.0

# How many times as much as the median feature the widest may vary: of features that have a unit in
# common, and of features that have not but may stay as they are.
COMMON_UNIT, OWN_UNITS = 10.0, 100.0


def feature_scale(X: Any, standardize: bool | str) -> tuple[NDArray, NDArray] | None:
    """Centre and scale of every feature, or None to leave them as they are.

    With "auto" they stay where they are of order one, or sparse. Else features of a common unit,
    such as pixels, share one scale; those of different units, and with True all, have their own.
    """
    if standardize is False or (standardize == "auto" and sparse.issparse(X)):
        return None
    mean, deviation = _moments(X)
    if standardize is True:
        return mean, np.where(deviation > 0, deviation, 1.0)
    largest = np.sqrt(mean**2 + deviation**2).max()
    varying = deviation[deviation > 0]
    ratio = varying.max() / np.median(varying) if varying.size else 0.0
    if varying.size == 0 or (SMALLEST <= largest <= LARGEST and ratio <= OWN_UNITS):
        return None
    if ratio <= COMMON_UNIT:
        return mean, np.full_like(mean, np.sqrt(np.mean(varying**2)))
    return mean, np.where(deviation > 0, deviation, 1.0)


def _moments(X: Any) -> tuple[NDArray, NDArray]:
    scaler = StandardScaler(with_mean=not sparse.issparse(X))
    for rows in gen_batches(X.shape[0], 4096):  # without a copy of all rows
        scaler.partial_fit(X[rows])
    constant = scaler.scale_ == 1  # up to rounding, as the scaler decides it
    return scaler.mean_, np.where(constant & (scaler.var_ < 0.5), 0.0, np.sqrt(scaler.var_))
