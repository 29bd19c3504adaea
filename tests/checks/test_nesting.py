"""Models inside of models, as scikit-learn nests them."""

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from auxcst_sklearn._checks.nesting import chain, delegate, is_search, walk

X, Y = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 2
NB = GaussianNB()


def search(model):
    return GridSearchCV(model, {}, cv=2)


def found(model, kind, **options):
    return [part for part in walk(model, **options) if isinstance(part, kind)]


@pytest.mark.parametrize(
    "model",
    [
        NB,
        make_pipeline(StandardScaler(), NB),
        make_pipeline(StandardScaler(), make_pipeline(MinMaxScaler(), NB)),
        search(make_pipeline(StandardScaler(), search(NB))),
        FrozenEstimator(make_pipeline(StandardScaler(), NB)),
    ],
)
def test_a_chain_ends_in_the_last_model(model):
    first, *rest = chain(model, fitted=False)

    assert first is model
    assert [first, *rest][-1] is NB


def test_a_fitted_search_and_a_frozen_model_delegate():
    fitted = search(make_pipeline(StandardScaler(), NB)).fit(X, Y)

    assert delegate(fitted) is fitted.best_estimator_
    assert [*chain(FrozenEstimator(fitted))][-1] is fitted.best_estimator_[-1]
    assert is_search(fitted)
    assert not is_search(FrozenEstimator(fitted))
    assert delegate(NB) is None
    unfitted = search(NB)
    assert delegate(unfitted) is None
    assert delegate(unfitted, fitted=False) is NB


def test_a_walk_finds_the_fitted_models_and_not_their_templates():
    template = CalibratedClassifierCV(LogisticRegression(), cv=2)
    columns = make_column_transformer((MinMaxScaler(), [0, 1]))
    model = make_pipeline(columns, VotingClassifier([("two", template)]))

    assert found(model, LogisticRegression) == [template.estimator]
    model.fit(X, Y)
    inside = found(model, LogisticRegression)
    assert len(inside) == 2  # one for each fold
    assert all(hasattr(part, "coef_") for part in inside)
    assert found(model, MinMaxScaler) == [columns.named_transformers_["minmaxscaler"]]
    assert found(model, LogisticRegression, fitted=False) == [template.estimator]
    outside = {"into": lambda part: not isinstance(part, CalibratedClassifierCV)}
    assert found(model, LogisticRegression, **outside) == []
