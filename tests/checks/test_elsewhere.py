"""Data on a disk or on other machines are refused with a remedy, not read in silence."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CSAEPretrainedMLP
from tests.factories import small_cnn, small_mlp, small_stack

X = np.random.default_rng(0).normal(size=(60, 4)).astype(np.float32)
Y = (X[:, 0] > 0).astype(int)
FRAME = pd.DataFrame(X, columns=list("abcd"))


def need(name):
    return pytest.importorskip(name)


def dask_frame(frame):
    need("pyarrow")
    return need("dask.dataframe").from_pandas(frame, npartitions=2)


def arrow(frame):
    return need("pyarrow").Table.from_pandas(frame)


ELSEWHERE = {
    "dask array": lambda f: need("dask.array").from_array(f.to_numpy()),
    "dask frame": dask_frame,
    "zarr": lambda f: need("zarr").array(f.to_numpy()),
    "arrow": arrow,
    "batch of arrow": lambda f: arrow(f).to_batches()[0],
    "Hugging Face": lambda f: need("datasets").Dataset.from_pandas(f),
    "polars": lambda f: pl.DataFrame(f).lazy(),
}


@pytest.mark.parametrize("kind", ELSEWHERE)
def test_the_message_names_the_remedy(kind):
    elsewhere = ELSEWHERE[kind](FRAME)
    message = "X is a .*, which would be read as a whole; .*to_memmap, or load them"
    for model in (small_stack(), CSAEPretrainedMLP(max_epochs=1)):
        with pytest.raises(ValueError, match=message):
            model.fit(elsewhere, Y)
    with pytest.raises(ValueError, match=message):
        small_cnn(image_shape=(1, 2, 2), channels=(2,)).fit(elsewhere, Y)
    model = small_mlp().fit(X, Y)
    for call in (model.predict, model.predict_cost, lambda x: model.partial_fit(x, Y)):
        with pytest.raises(ValueError, match=message):
            call(elsewhere)
    with pytest.raises(ValueError, match=message):
        model.set_params(early_stopping=True).fit(X, Y, X_val=elsewhere, y_val=Y)


def test_costs():
    costs = ELSEWHERE["dask array"](FRAME.iloc[:, :2].abs())
    with pytest.raises(ValueError, match="cost is a .*to_memmap, or load them"):
        small_mlp().fit(X, Y, cost=costs)


def test_what_lies_in_memory_is_taken():
    class Frame(pd.DataFrame):
        __module__ = "datasets.of_a_user"

    small_mlp().fit(Frame(FRAME), Y)
    make_pipeline(StandardScaler(), small_mlp()).fit(FRAME, Y)
    BayesMinimumRiskClassifier(small_mlp(), cost_matrix=1 - np.eye(2)).fit(X, Y)
