"""Rows that a training set rarely has, on which converters of other packages go wrong."""

from itertools import pairwise

import numpy as np
import pandas as pd

SHARE = 0.3  # of unusual values in a column


def with_unusual(X, n=300, missing=False):
    """X, and rows whose values are drawn column by column, some of them unusual ones.

    These are half-way between neighbours, where trees split, zero, beyond all others, and
    categories never seen; with `missing` also missing values.
    """
    rng = np.random.default_rng(0)
    if isinstance(X, pd.DataFrame):
        new = pd.DataFrame({name: _column(X[name].to_numpy(), n, rng, missing) for name in X})
        return pd.concat([X, new.astype(X.dtypes)], ignore_index=True)
    if X.ndim == 1:  # two texts in one, so that words occur twice and beside others
        pairs = [f"{a} \u00a0 {b}" for a, b in zip(rng.choice(X, n), rng.choice(X, n))]
        return np.append(X.astype(object), np.array(pairs, object))
    columns = X.reshape(len(X), -1).T
    new = np.column_stack([_column(column, n, rng, missing) for column in columns])
    return np.concatenate([X, new.reshape(-1, *X.shape[1:]).astype(X.dtype)])


def _column(column, n, rng, missing):
    unusual = _unusual(column)
    if missing:
        unusual = np.append(unusual, [np.nan] * (1 + len(unusual)))
    drawn = rng.choice(column, n)
    return np.where(rng.uniform(size=n) < SHARE, rng.choice(unusual, n), drawn)


def _unusual(column):
    if column.dtype.kind not in "iuf":
        texts = [value for value in column if isinstance(value, str)]
        twice = [f"{a} \u00a0 {a} {b}" for a, b in pairwise(texts)]
        return np.array(["never seen", *twice], object)
    known = np.unique(column[column == column])
    middle = known[:-1] / 2 + known[1:] / 2
    if (known == np.floor(known)).all():  # perhaps codes of categories
        middle = np.floor(middle)
    beyond = [0, known[0] - 1 - np.ptp(known), known[-1] + 1 + np.ptp(known)]
    return np.append(middle, beyond * (1 + len(middle) // 10)).astype(column.dtype)
