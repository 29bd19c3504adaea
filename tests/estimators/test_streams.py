"""`prepare` and `partial_fit`: rows that come in blocks."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxMLPCV
from auxcst_sklearn._estimators import streams

COST = [[0, 1, 5], [2, 0, 1], [10, 4, 0]]
N = 1200


@pytest.fixture
def data():
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=N)
    X = 100 * (rng.randn(N, 5) + 1.5 * np.eye(3, 5)[y]) + 1e4
    return X, y


def mlp(**parameters):
    given = {"width": 16, "n_networks": 2, "random_state": 0, "cost_matrix": COST}
    return CostSensitiveAuxMLP(**{**given, **parameters})


def cut(*fields, size=100):
    return [tuple(f[i : i + size] for f in fields) for i in range(0, len(fields[0]), size)]


def trained(model, blocks, epochs=3):
    for _ in range(epochs):
        for block in blocks:
            model.partial_fit(*block)
    return model


def test_the_order_of_blocks_hardly_matters(data):
    X, y = data
    X_test, y_test, X, y = X[900:], y[900:], X[:900], y[:900]
    narrow = np.argsort(X[:, 0])  # a first block from the edge of the first feature
    mixed = -trained(mlp().prepare(cut(X, y)), cut(X, y)).score(X_test, y_test)
    blocks = cut(X[narrow], y[narrow])
    odd = mlp().prepare(blocks)
    rest = [blocks[0], *(blocks[i] for i in np.random.RandomState(0).permutation(range(1, 9)))]
    assert -trained(odd, rest).score(X_test, y_test) < 1.2 * mixed


def test_it_learns_what_a_fit_on_all_rows_learns(data):
    X, y = data
    prepared = mlp().prepare(block for block in cut(X, y))
    with pytest.raises(NotFittedError):
        check_is_fitted(prepared)
    prepared.partial_fit(X[:50], y[:50])
    fitted = mlp(max_epochs=1).fit(X, y)
    np.testing.assert_allclose(prepared.input_center_, fitted.input_center_)
    np.testing.assert_allclose(prepared.input_scale_, fitted.input_scale_)
    assert prepared.net_.scale == fitted.net_.scale
    assert prepared.net_.batch_size == fitted.net_.batch_size
    np.testing.assert_array_equal(prepared.net_.statistics.weight, fitted.net_.statistics.weight)
    center = prepared.input_center_.copy()
    prepared.partial_fit(X[:100] + 1e5, y[:100])  # no longer follows
    np.testing.assert_array_equal(prepared.input_center_, center)


def test_a_sample_of_all_blocks(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(streams, "SAMPLED_ROWS", 200)
    X = np.column_stack([X, np.repeat([0.0, 1], N // 2)])
    prepared = mlp().prepare(cut(X, y, size=50))
    assert abs(prepared._features.mean[-1] - 0.5) < 0.15
    assert prepared._features.count[0] == 200
    assert prepared._prepared.batch_size == mlp(max_epochs=1).fit(X, y).net_.batch_size


def test_costs_and_weights_of_samples_and_labels_of_later_blocks(data):
    X, y = data
    order = y.argsort(kind="stable")
    X, y = X[order], np.array(["a", "b", "c"])[y[order]]
    cost = np.array(COST)[order % 3] * np.linspace(1, 2, N)[:, None]
    weight = np.linspace(0, 2, N)
    blocks = cut(X, y, cost, weight)
    model = mlp(cost_matrix=None).prepare(blocks)
    for i in (0, 11, 5):
        X_block, y_block, *rest = blocks[i]
        model.partial_fit(X_block, y_block, cost=rest[0], sample_weight=rest[1])
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert model.predict_cost(X).shape == (N, 3)


def test_frames_and_sparse_rows(data):
    X, y = data
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["c"] = np.array(["red", "green"])[y % 2]
    frame.loc[1000:, "c"] = "blue"
    model = mlp().prepare(cut(frame, y))
    model.partial_fit(frame[:100], y[:100])
    assert model.is_categorical_.tolist() == [False, False, True]
    assert model._codes.sizes == [3]  # the first block lacks one
    rows = sparse.csr_matrix(X)
    model = mlp().prepare([(rows[:600], y[:600]), (rows[600:], y[600:])])
    assert model.partial_fit(rows, y).predict(rows).shape == (N,)


def test_blocks_in_the_same_memory_and_categories_that_differ(data):
    X, y = data

    def reused():
        block = np.empty((100, 5))
        for part, labels in cut(X, y):
            block[:] = part
            yield block, labels

    expected = mlp(standardize=True).prepare(cut(X, y)).input_center_
    np.testing.assert_array_equal(mlp(standardize=True).prepare(reused()).input_center_, expected)
    frames = [
        (pd.DataFrame({"v": X[:100, 0], "c": pd.Categorical([1, other] * 50)}), y[:100])
        for other in (2, 3)
    ]
    model = mlp().prepare(frames)
    assert model.is_categorical_.tolist() == [False, True]
    assert model._codes.sizes == [3]


def test_pickles_clones_and_fits_of_what_is_prepared(data):
    X, y = data
    prepared = mlp().prepare(cut(X, y))
    expected = mlp().prepare(cut(X, y)).partial_fit(X, y).predict_cost(X)
    loaded = pickle.loads(pickle.dumps(prepared))
    np.testing.assert_array_equal(loaded.partial_fit(X, y).predict_cost(X), expected)
    loaded = pickle.loads(pickle.dumps(loaded))
    np.testing.assert_array_equal(loaded.predict_cost(X), expected)
    center = loaded.input_center_
    np.testing.assert_array_equal(loaded.partial_fit(X + 1e5, y).input_center_, center)
    assert clone(prepared)._prepared is None
    short = {"max_epochs": 2}
    fitted = mlp(**short).prepare(cut(X[:300], y[:300])).fit(X, y).predict_cost(X)
    np.testing.assert_array_equal(fitted, mlp(**short).fit(X, y).predict_cost(X))


def test_mistakes(data):
    X, y = data
    with pytest.raises(ValueError, match="blocks is empty"):
        mlp().prepare([])
    for blocks, message in (
        ([(X,)], "Block 0 is a tuple of 1 parts; expected"),
        ((X, y), "Block 0 is a ndarray; expected .* pass a list of it"),
        ([(X, y), (X, y, None)], "Block 1 is .* but the first one"),
        ([(X, y, None), (X, y, np.array(COST)[y])], "Block 1 is .* but the first one"),
        ([(X, y), (X[:50], y[:40])], r"In block 1: .*inconsistent numbers of samples"),
        ([(X, y), (X[:, :3], y)], "Block 1 is .*3.* but the first one"),
        ([(X, y), (sparse.csr_matrix(X), y)], "Block 1 is .*sparse.* but the first one"),
        ([(X, y), (X, y.astype(str))], "Block 1 is .*texts.* but the first one"),
        ([(pd.DataFrame(X), y), (pd.DataFrame(X[:, ::-1]).add_prefix("c"), y)], "Block 1 is"),
    ):
        with pytest.raises(ValueError, match=message):
            mlp().prepare(blocks)
    fitted = mlp(max_epochs=1).fit(X, y)
    expected = fitted.predict_cost(X)
    with pytest.raises(ValueError, match="X contains infinity"):
        fitted.prepare([(X, y), (X * np.inf, y)])
    np.testing.assert_array_equal(fitted.predict_cost(X), expected)
    prepared = mlp().prepare(cut(X, y))
    with pytest.raises(ValueError, match="X has 3 features"):
        prepared.partial_fit(X[:, :3], y)
    with pytest.raises(NotFittedError):
        prepared.predict(X)
    assert not hasattr(CostSensitiveAuxMLPCV(), "prepare")
