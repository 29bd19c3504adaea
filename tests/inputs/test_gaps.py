"""Missing values, and infinite ones."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from tests.factories import small_mlp


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) * [1, 50, 1]
    y = (X[:, 0] > 0).astype(int)
    return X, y


def with_gaps(X, columns=(0,)):
    X = X.copy()
    for j in columns:
        X[np.random.RandomState(j).rand(len(X)) < 0.2, j] = np.nan
    return X


@pytest.mark.parametrize("standardize", [False, "auto", True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_network_reads_the_median_and_an_indicator(data, standardize, dtype):
    X, y = data
    X = with_gaps(X, [0, 1]).astype(dtype)
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    center, scale = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    if standardize is not True:  # all features have scales of their own, or none has
        center, scale = (0, 1) if standardize is False else (center, scale)
    by_hand = np.column_stack([(filled - center) / scale, np.isnan(X[:, :2])])

    model = small_mlp(standardize=standardize).fit(X, y)
    expected = small_mlp(standardize=False).fit(by_hand, y)

    np.testing.assert_allclose(model.predict_cost(X), expected.predict_cost(by_hand), atol=1e-3)


@pytest.mark.parametrize("standardize", [False, True])
def test_gaps_that_training_did_not_have_become_the_median(data, standardize):
    X, y = data
    model = small_mlp(standardize=standardize).fit(X, y)
    gaps = with_gaps(X, [0, 1, 2])

    found = model.predict_cost(gaps)

    expected = model.predict_cost(np.where(np.isnan(gaps), np.median(X, axis=0), gaps))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert (model.predict_cost(pd.DataFrame(gaps)) == found).all()


def test_a_column_without_any_value_is_zero(data):
    X, y = data
    empty = np.column_stack([X, np.full(200, np.nan)])

    found = small_mlp().fit(empty, y)

    zeros = np.column_stack([X, np.zeros(200)])
    expected = small_mlp().fit(zeros, y).predict_cost(zeros)
    np.testing.assert_allclose(found.predict_cost(empty), expected, atol=1e-6)


def test_rows_without_weight_have_no_gaps_and_no_levels(data):
    X, y = data
    X = pd.DataFrame(X).rename(columns=str).assign(word="a")
    more = X.assign(word="b").where(X["0"] > 1e9)
    weight = np.repeat([1.0, 0.0], 200)

    found = small_mlp().fit(pd.concat([X, more]), np.tile(y, 2), sample_weight=weight)

    np.testing.assert_array_equal(found.predict_cost(X), small_mlp().fit(X, y).predict_cost(X))


@pytest.mark.parametrize("kind", [np.asarray, pd.DataFrame, sparse.csr_array])
@pytest.mark.parametrize("standardize", [False, "auto", True])
def test_infinite_values_are_refused(data, kind, standardize):
    X, y = data
    model = small_mlp(standardize=standardize)
    X[3, 1] = -np.inf

    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.fit(kind(X), y)
    model.fit(kind(X[4:]), y[4:])
    with pytest.raises(ValueError, match="Input X contains infinity"):
        model.predict(kind(X))


def test_values_whose_squares_overflow_are_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="Column 0 of X has values too large to be squared"):
        small_mlp().fit(1e300 * X, y)


def test_sparse_rows_have_no_gaps(data):
    X, y = data
    gaps = with_gaps(X)
    with pytest.raises(ValueError, match="X is sparse and contains NaN; expected numbers"):
        small_mlp().fit(sparse.csr_array(gaps), y)
    model = small_mlp().fit(sparse.csr_array(X), y)
    with pytest.raises(ValueError, match="X contains NaN, but the rows of the training were"):
        model.predict(gaps)


def test_gaps_of_labels_and_costs_stay_refused(data):
    X, y = data
    with pytest.raises(ValueError, match="NaN"):
        small_mlp().fit(X, np.where(y == 1, np.nan, y))
    with pytest.raises(ValueError, match="cost contains nan"):
        small_mlp().fit(X, y, cost=np.full((200, 2), np.nan))
