"""Boosting and logistic regression for tables as they are: members of the ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from .._checks.data import check_frame, holds_categories, is_frame, refuse_times, select
from .._inputs.columns import UNKNOWN, CategoryCodes, Cells
from .._inputs.tables import find_categories
from .._training.threads import one_openmp_thread

# scikit-learn's boosting takes at most this number of categories in a column.
MOST_LEVELS = 255
# For fewer cells than this, threads wait longer for a busy core than they compute.
FEWEST_CELLS = 1_000_000
# Of the logistic regression: steps, and rows of a category with an indicator of its own.
MOST_STEPS, MIN_FREQUENCY = 500, 5


class TableBoosting(HistGradientBoostingClassifier):
    """`HistGradientBoostingClassifier` whose categories may be strings, of any number.

    Columns of strings and categories of a DataFrame are categorical; in a column with very many,
    the rarest count as missing.
    """

    categorical_features: Any
    _codes: CategoryCodes | None

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
        sample_weight_val: Any = None,
    ) -> Self:
        check_frame(X)
        mask = find_categories(X, self.categorical_features)
        self._codes = None if mask is None else CategoryCodes(mask).fit(X)
        validation = {}
        if X_val is not None:
            validation = {"X_val": X_val, "y_val": y_val, "sample_weight_val": sample_weight_val}
        with one_openmp_thread() if np.prod(np.shape(X)) < FEWEST_CELLS else nullcontext():
            super().fit(X, y, sample_weight, **validation)
        return self

    def _predict_iterations(
        self, X: Any, predictors: Any, raw_predictions: Any, is_binned: bool, n_threads: int
    ) -> None:
        n_threads = 1 if X.size < FEWEST_CELLS else n_threads
        super()._predict_iterations(X, predictors, raw_predictions, is_binned, n_threads)

    def _preprocess_X(self, X: Any, *, reset: bool) -> Any:  # noqa: N802
        """Categories first, with the codes of scikit-learn's encoder, which takes 6 ms a row."""
        if not isinstance(X, Cells):
            refuse_times(X)
        if self._codes is None:
            return super()._preprocess_X(X, reset=reset)
        rows, of_codes = self._codes.transform(X), self._codes.mask
        if reset:
            self._kept = [_most_frequent(rows[:, j]) for j in np.flatnonzero(of_codes)]
        for j, kept in zip(np.flatnonzero(of_codes), self._kept):
            code = rows[:, j]
            known = ~np.isnan(code) & (code != UNKNOWN)
            rows[known, j] = kept[code[known].astype(int)]
            rows[~known, j] = np.nan
        if not reset:
            return np.hstack([rows[:, of_codes], rows[:, ~of_codes]]).astype(np.float64, copy=False)
        prepared = HistGradientBoostingClassifier(
            categorical_features=of_codes, max_bins=self.max_bins
        )
        binned = prepared._preprocess_X(rows, reset=True)
        for name in vars(prepared).keys() - prepared.get_params().keys():
            setattr(self, name, getattr(prepared, name))
        return binned


def read_once(models: Sequence[Any], X: Any) -> Any:
    """The cells of a table, if all models are boosting with categories in the same columns."""
    all_codes = [model._codes for model in models if isinstance(model, TableBoosting)]
    codes = [c for c in all_codes if c is not None and c.reads_like(all_codes[0])]
    if not 0 < len(codes) == len(models):
        return X
    refuse_times(X)
    return codes[0].read(X)


def _most_frequent(codes: NDArray[Any]) -> NDArray[Any]:
    """A new code for each code: from 0 on for the most frequent, NaN for others."""
    count = np.bincount(codes[~np.isnan(codes)].astype(int), minlength=1)
    kept = np.sort(np.argsort(-count, kind="stable")[:MOST_LEVELS])
    new = np.full(len(count), np.nan)
    new[kept] = np.arange(len(kept))
    return new


class TableLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression of scaled numbers, and of indicators of categories, strings and gaps."""

    def __init__(self, C: float = 0.1) -> None:
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        check_frame(X)
        self.encoder_ = _encoder(X)
        model = LogisticRegression(C=self.C, max_iter=MOST_STEPS)
        self.model_ = model.fit(self.encoder_.fit_transform(X), y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities."""
        return self.model_.predict_proba(self._encode(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable labels."""
        return self.model_.predict(self._encode(X))

    def _encode(self, X: Any) -> Any:
        refuse_times(X)
        return self.encoder_.transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags


def _encoder(X: Any) -> Any:
    """Transformers of the columns, by their types."""
    if sparse.issparse(X):
        return MaxAbsScaler()
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    columns = range(X.shape[1]) if is_frame(X) else ()
    chosen = [j for j in columns if holds_categories(select(X, j))]
    if not chosen:
        return numbers
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=MIN_FREQUENCY)
    others = [j for j in columns if j not in chosen]
    return make_column_transformer((one_hot, chosen), (numbers, others))
