"""Imbalanced variants of a data set."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import _safe_indexing, check_random_state, column_or_1d, indexable
from sklearn.utils._param_validation import Interval

from .._checks.decorators import validate_params

_FRACTION = [Interval(Real, 0, 1, closed="both")]


@validate_params(
    {"classes_fraction": _FRACTION, "removed_fraction": _FRACTION},
    prefer_skip_nested_validation=True,
)
def make_imbalanced(
    X: ArrayLike,
    y: ArrayLike,
    *,
    classes_fraction: float = 0.4,
    removed_fraction: float = 0.7,
    random_state: int | np.random.RandomState | None = None,
    return_indices: bool = False,
) -> tuple[Any, ...]:
    """Undersample some classes: random classes lose a random part of their samples.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, ...)
        Samples.
    y : array-like of shape (n_samples,)
        Labels.
    classes_fraction : float, default=0.4
        Fraction of the classes that lose samples, rounded to a number of classes.
    removed_fraction : float, default=0.7
        Fraction of the samples that such a class loses, rounded; each class keeps at least one.
    random_state : int, RandomState instance or None, default=None
        Determines the draw. Pass an int for the same result on every call.
    return_indices : bool, default=False
        Whether to return the indices of the remaining rows too, such as to index costs.

    Returns
    -------
    X : of the type of `X`
        The remaining samples, in their original order; sparse ones in CSR format.
    y : of the type of `y`
        Their labels.
    indices : ndarray of shape (n_left,)
        Their rows in the given data. Only if `return_indices` is True.

    Examples
    --------
    >>> import numpy as np
    >>> from auxcst_sklearn.datasets import make_imbalanced
    >>> X, y = np.arange(50).reshape(50, 1), np.repeat(["a", "b", "c", "d", "e"], 10)
    >>> X_thin, y_thin = make_imbalanced(X, y, random_state=0)
    >>> np.unique(y_thin, return_counts=True)[1]
    array([ 3, 10,  3, 10, 10])
    """
    X, y = indexable(X, y)
    rng = check_random_state(random_state)
    classes, codes = np.unique(column_or_1d(y), return_inverse=True)
    n_thinned = round(classes_fraction * len(classes))
    keep = np.ones(len(codes), dtype=bool)
    for k in rng.choice(len(classes), n_thinned, replace=False):
        rows = np.flatnonzero(codes == k)
        n_removed = min(round(removed_fraction * len(rows)), len(rows) - 1)
        keep[rng.choice(rows, n_removed, replace=False)] = False
    indices = np.flatnonzero(keep)
    thinned = _safe_indexing(X, indices), _safe_indexing(y, indices)
    return (*thinned, indices) if return_indices else thinned
