"""DataFrames with strings, categories and gaps, straight into the estimators."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import torch
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet
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


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    columns, y = table()
    return FRAMES[request.param](columns), y


def learner(**parameters):
    return small_mlp(**{"max_epochs": 30, "width": 16, "learning_rate": 1e-2, **parameters})


@pytest.fixture(scope="module")
def reference():
    columns, y = table()
    return learner().fit(pd.DataFrame(columns), y)


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_gives_the_same_network(kind, reference):
    columns, y = table()
    X = FRAMES[kind](columns)
    expected = reference.predict_cost(pd.DataFrame(columns))

    found = learner().fit(X, y)

    assert found.is_categorical_.tolist() == [True, False, False]
    assert found.feature_names_in_.tolist() == ["city", "age", "size"]
    assert found.n_features_in_ == 3
    assert found.score(X, y) > 0.85
    np.testing.assert_array_equal(found.predict_cost(X), expected)
    np.testing.assert_array_equal(reference.predict_cost(X), expected)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found)).predict_cost(X), expected)


def test_an_array_of_objects_gives_the_same_network(reference):
    columns, y = table()
    X = np.column_stack([columns["city"], columns["age"].astype(object), columns["size"]])

    found = learner(categorical_features=[0]).fit(X, y)

    expected = reference.predict_cost(pd.DataFrame(columns))
    np.testing.assert_array_equal(found.predict_cost(X), expected)


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_behind_transformers_that_put_out_frames(output):
    columns, y = table()
    X = FRAMES[output](columns)
    steps = [("scale", StandardScaler(), ["age", "size"])]
    scaled = ColumnTransformer(steps, remainder="passthrough", verbose_feature_names_out=False)

    with sklearn.config_context(transform_output=output):
        model = make_pipeline(scaled, learner()).fit(X, y)

        assert model[-1].is_categorical_.tolist() == [False, False, True]
        assert model.score(X, y) > 0.85


def test_later_blocks_may_have_other_categories_and_gaps(frame):
    X, y = frame
    rest = pd.DataFrame(table()[0]).assign(size=np.nan)
    rest.loc[::2, "city"] = "Rome"
    model = learner().partial_fit(X, y, classes=[0, 1])

    for _ in range(30):
        model.partial_fit(X, y)
    before = model.input_scale_
    model.partial_fit(rest, y)

    assert model.score(X, y) > 0.85
    np.testing.assert_allclose(model.input_scale_, before, rtol=1e-6)
    assert np.isfinite(model.predict_cost(rest)).all()


@pytest.mark.slow
def test_many_levels_are_learnt():
    rng = np.random.default_rng(0)
    shop = rng.integers(60, size=1200)
    y = (rng.random(60) < 0.5)[shop].astype(int)
    X = pd.DataFrame({"shop": [f"shop {i}" for i in shop], "noise": rng.normal(size=1200)})

    model = learner().fit(X, y)

    assert model.net_.module_.inputs.table.shape[-2:] == (61, 3)
    assert model.score(X, y) > 0.95
    unknown = model.predict_cost(X.assign(shop="another"))
    np.testing.assert_array_equal(unknown, model.predict_cost(X.assign(shop=None)))


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, i):
        return np.zeros(3), 0


@pytest.mark.parametrize(
    "other",
    [
        Samples(),
        torch.utils.data.DataLoader(Samples()),
        pl.DataFrame({"a": [0.0, 1.0]}).lazy(),
        (row for row in np.eye(3)),
        None,
        7,
    ],
    ids=lambda other: type(other).__name__,
)
def test_what_is_no_x_is_named(other):
    dense = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    for model in (CostSensitiveAuxMLP(), CostSensitiveAuxNet(dense, pretrained=False)):
        with pytest.raises(TypeError, match=rf"^X is a {type(other).__name__}; expected an array"):
            model.fit(other, [0, 1] * 10)
