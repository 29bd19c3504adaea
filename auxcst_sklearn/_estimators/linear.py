"""Logistic regression for tables as they are: a member of the ensemble, for many classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder, StandardScaler

from .._checks.data import check_frame, date_columns, holds_categories, is_frame, select, with_days

if TYPE_CHECKING:
    from typing_extensions import Self

MOST_STEPS = 500
# A category in fewer rows shares an indicator with unknown ones.
FEWEST_ROWS = 5


class TableLogistic(ClassifierMixin, BaseEstimator):
    """Logistic regression of scaled numbers, and of indicators of categories, strings and gaps."""

    def __init__(self, C: float = 0.1) -> None:
        self.C = C

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        self._dates = [*date_columns(X).values()]
        X = with_days(X)
        check_frame(X)
        self.encoder_ = _encoder(X)
        model = LogisticRegression(C=self.C, max_iter=MOST_STEPS)
        self.model_ = model.fit(self.encoder_.fit_transform(X), y, sample_weight)
        self.classes_ = self.model_.classes_
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities."""
        return self.model_.predict_proba(self.encoder_.transform(with_days(X, self._dates)))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable labels."""
        return self.model_.predict(self.encoder_.transform(with_days(X, self._dates)))

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
    one_hot = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=FEWEST_ROWS)
    others = [j for j in columns if j not in chosen]
    return make_column_transformer((one_hot, chosen), (numbers, others))
