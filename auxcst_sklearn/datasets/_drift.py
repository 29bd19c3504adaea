"""Values of a batch that the training rows did not have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .._checks.frames import as_numbers, check_frame, is_frame, objects, select, without_gaps
from .._inputs.columns import as_table, find_categories

if TYPE_CHECKING:
    from pandas import DataFrame


def column_drift(
    X_train: ArrayLike,
    X: ArrayLike,
    *,
    categorical_features: ArrayLike | Literal["from_dtype"] | None = "from_dtype",
) -> DataFrame:
    """Compute the share of each column's values that the training rows did not have.

    Needs pandas, and no model.

    Parameters
    ----------
    X_train : array-like or DataFrame of shape (n_train, n_features)
        The training rows.
    X : array-like or DataFrame of shape (n_samples, n_features)
        A batch of new rows. Columns of DataFrames are matched by name.
    categorical_features : array-like of shape (n_features,) or (n_categorical,), "from_dtype" or \
            None, default="from_dtype"
        Columns with categories, as in :class:`~auxcst_sklearn.CostSensitiveAuxMLP`.

    Returns
    -------
    DataFrame
        A row for each column of `X_train`, with shares of the rows of `X`, from 0 to 1:
        "unknown", with a category that no training row has (NaN for numbers); "outside", with a
        number below the least or above the greatest of the training (NaN for categories);
        "missing", without a value; and "missing_train", the share in `X_train`.

    Raises
    ------
    ValueError
        If the columns differ, or hold values that are neither numbers nor categories.

    Examples
    --------
    >>> import pandas as pd
    >>> from auxcst_sklearn.datasets import column_drift
    >>> X_train = pd.DataFrame({"age": [20, 30, 40], "country": ["NL", "FR", "NL"]})
    >>> X = pd.DataFrame({"age": [25, 50], "country": ["NL", "DE"]})
    >>> column_drift(X_train, X)
             unknown  outside  missing  missing_train
    age          NaN      0.5      0.0            0.0
    country      0.5      NaN      0.0            0.0
    """
    import pandas as pd

    train, batch = _table(X_train, "X_train"), _table(X, "X")
    names = list(train.columns) if is_frame(train) else list(range(train.shape[1]))
    batch = _with_columns(batch, names, by_name=is_frame(train))
    categorical = find_categories(train, categorical_features)
    rows = []
    for j, name in enumerate(names):
        share = _of_categories if categorical is not None and categorical[j] else _of_numbers
        try:
            rows.append(share(_column(train, j), _column(batch, j)))
        except (TypeError, ValueError) as error:
            raise ValueError(
                f"Column {name!r} cannot be compared: {error}. Numbers are compared with numbers; "
                "name columns of categories in categorical_features."
            ) from error
    shares = ["unknown", "outside", "missing", "missing_train"]
    return pd.DataFrame(rows, index=names, columns=shares)


def _table(X: Any, name: str) -> Any:
    check_frame(X)
    X = as_table(X)
    if sparse.issparse(X) or len(X.shape) != 2 or not len(X):
        raise ValueError(
            f"{name} is of type {type(X).__name__} and shape {X.shape}; expected a DataFrame or a "
            "dense array with a column for each feature and at least one row."
        )
    return X


def _with_columns(X: Any, names: list[Any], *, by_name: bool) -> Any:
    """The batch with the columns of the training, in their order."""
    if by_name and is_frame(X):
        if set(X.columns) != set(names):
            wrong = sorted(map(str, set(X.columns) ^ set(names)))
            raise ValueError(f"The columns {wrong} are only in one of X_train and X.")
        return X[names]
    if X.shape[1] != len(names):
        raise ValueError(f"X has {X.shape[1]} columns; expected {len(names)}, as in X_train.")
    return X


def _column(X: Any, j: int) -> NDArray[Any]:
    return objects(select(X, j)) if is_frame(X) else X[:, j]


def _of_categories(train: NDArray[Any], batch: NDArray[Any]) -> tuple[float, ...]:
    import pandas as pd

    known, values = pd.unique(without_gaps(train)), pd.Series(without_gaps(batch))
    unknown = values.notna() & ~values.isin(known)
    return unknown.mean(), np.nan, values.isna().mean(), pd.isna(train).mean()


def _of_numbers(train: NDArray[Any], batch: NDArray[Any]) -> tuple[float, ...]:
    old, new = as_numbers(train).astype(np.float64), as_numbers(batch).astype(np.float64)
    known = old[~np.isnan(old)]
    low, high = (known.min(), known.max()) if len(known) else (np.inf, -np.inf)
    missing = np.isnan(new)
    outside = ~missing & ~((new >= low) & (new <= high))
    return np.nan, outside.mean(), missing.mean(), np.isnan(old).mean()
