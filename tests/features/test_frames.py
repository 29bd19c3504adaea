"""DataFrames with strings, categories and gaps, straight into the estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_predict

from auxcst_sklearn import CostSensitiveAuxMLPCV, alpha_path
from tests.factories import small_mlp

CITIES = np.array(["Bonn", "Kyiv", "Lima", "Oslo"])


def table(n=240):
    """Labels that depend on a city and on an age, both with gaps."""
    rng = np.random.default_rng(0)
    city, age = rng.integers(4, size=n), rng.normal(50, 20, size=n)
    y = (city % 2 == 0) ^ (age > 60)
    names = CITIES[city].astype(object)
    names[rng.random(n) < 0.1] = None
    age[rng.random(n) < 0.1] = np.nan
    return {"city": names, "age": age, "size": rng.normal(size=n)}, y.astype(int)


FRAMES = {
    "pandas": pd.DataFrame,
    "pandas category": lambda d: pd.DataFrame(d).astype({"city": "category"}),
    "pandas object": lambda d: pd.DataFrame(d).astype({"city": object}),
    "pandas string": lambda d: pd.DataFrame(d).astype({"city": "string", "age": "Float64"}),
    "polars": lambda d: pl.DataFrame({**d, "city": d["city"].tolist()}),
    "polars Categorical": lambda d: FRAMES["polars"](d).cast({"city": pl.Categorical}),
    "polars Enum": lambda d: FRAMES["polars"](d).cast({"city": pl.Enum(CITIES)}),
}


@pytest.fixture(params=FRAMES)
def problem(request):
    columns, y = table()
    return FRAMES[request.param](columns), y


def learner(**parameters):
    return small_mlp(**{"max_epochs": 40, "width": 32, "learning_rate": 1e-2, **parameters})


def test_every_frame_gives_the_same_network(problem):
    X, y = problem
    expected = learner().fit(pd.DataFrame(table()[0]), y)

    found = learner().fit(X, y)

    assert found.is_categorical_.tolist() == [True, False, False]
    assert found.feature_names_in_.tolist() == ["city", "age", "size"]
    assert found.n_features_in_ == 3
    assert found.score(X, y) > 0.85
    np.testing.assert_array_equal(
        found.predict_cost(X), expected.predict_cost(pd.DataFrame(table()[0]))
    )
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict(X), found.predict(X))
    for other in FRAMES.values():
        np.testing.assert_array_equal(found.predict_cost(other(table()[0])), found.predict_cost(X))


def test_searches_and_folds(problem):
    X, y = problem

    search = GridSearchCV(learner(), {"alpha": [0, 0.5]}, cv=2, error_score="raise").fit(X, y)

    assert search.best_score_ > 0.7
    assert cross_val_predict(learner(max_epochs=1), X, y, cv=2).shape == y.shape
    model = CostSensitiveAuxMLPCV(
        [0, 0.5], 2, 32, cv=2, max_epochs=40, learning_rate=1e-2, random_state=0
    )
    model.fit(X, y)
    assert model.mean_cost_path_.max() < 0.3
    assert model.score(X, y) > 0.85


def test_a_path_is_what_separate_fits_give(problem):
    X, y = problem

    models = alpha_path(learner(max_epochs=3), [0, 0.5], X, y)

    for alpha, model in zip([0, 0.5], models):
        alone = learner(max_epochs=3, alpha=alpha).fit(X, y)
        np.testing.assert_allclose(model.predict_cost(X), alone.predict_cost(X), atol=1e-4)


def test_a_stream(problem):
    X, y = problem
    model = learner()

    for _ in range(40):
        for block in (slice(0, 100), slice(100, 240)):
            model.partial_fit(X[block], y[block], classes=[0, 1])

    assert model.score(X, y) > 0.85
