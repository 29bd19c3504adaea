"""`fit` on a sample and then `partial_fit`: rows that come in blocks."""

import pickle

import numpy as np
import pandas as pd
import pytest

from auxcst_sklearn import CostSensitiveAuxMLP

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
    return CostSensitiveAuxMLP(**{**given, "max_epochs": 1, **parameters})


def cut(X, y, size=100):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def trained(model, blocks, epochs=3):
    for _ in range(epochs):
        for block in blocks:
            model.partial_fit(*block)
    return model


def test_after_a_fit_on_a_sample_the_order_of_blocks_hardly_matters(data):
    X, y = data
    X_test, y_test, X, y = X[900:], y[900:], X[:900], y[:900]
    sample = np.random.RandomState(0).permutation(900)[:200]
    mixed = -trained(mlp().fit(X[sample], y[sample]), cut(X, y)).score(X_test, y_test)
    narrow = np.argsort(X[:, 0])  # a first block from the edge of the first feature
    blocks = cut(X[narrow], y[narrow])
    rest = [blocks[0], *(blocks[i] for i in np.random.RandomState(0).permutation(range(1, 9)))]
    odd = trained(mlp().fit(X[sample], y[sample]), rest)
    assert -odd.score(X_test, y_test) < 1.2 * mixed


def test_scales_and_bins_of_the_sample_stay(data):
    X, y = data
    model = mlp().fit(X[:300], y[:300])
    center, scale = model.input_center_.copy(), model.input_scale_.copy()
    for one in (model, pickle.loads(pickle.dumps(model))):
        bins = one._inputs.bins
        one.partial_fit(X[300:] + 1e5, y[300:])
        np.testing.assert_array_equal(one.input_center_, center)
        np.testing.assert_array_equal(one.input_scale_, scale)
        assert one._inputs.bins is bins


def test_without_a_fit_scales_follow_the_blocks(data):
    X, y = data
    model = mlp(standardize=True).partial_fit(X[:300], y[:300], classes=[0, 1, 2])
    model.partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(model.input_center_, X.mean(axis=0))
    np.testing.assert_allclose(model.input_scale_, X.std(axis=0))


def test_categories_of_the_sample_stay_and_later_ones_are_unknown(data):
    X, y = data
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"])
    frame["c"] = np.array(["red", "green"])[y % 2]
    model = mlp().fit(frame[:200], y[:200])
    frame.loc[600:, "c"] = "blue"
    model.partial_fit(frame[600:], y[600:])
    (levels,) = model._inputs.categories.values()
    assert levels.tolist() == ["green", "red"]
    unknown = model.predict_cost(frame[600:601].assign(c="violet"))
    np.testing.assert_array_equal(model.predict_cost(frame[600:601]), unknown)


@pytest.mark.parametrize("start", ["fit", "partial_fit"])
def test_the_unit_of_the_weights_of_a_block_has_no_effect(data, start):
    X, y = data
    first = np.where(np.arange(600) % 5 == 0, y[:600], 0)  # another mixture of classes
    amount = np.where(np.arange(N) < 600, 1.0, 9.0)[:, np.newaxis]
    cost = amount * np.array(COST)[np.r_[first, y[600:]]]
    models = []
    for weight in (1.0, 100.0):
        model = mlp(cost_matrix=None)
        given = {"cost": cost[:600], "sample_weight": np.full(600, weight)}
        known = {"classes": [0, 1, 2]} if start == "partial_fit" else {}
        getattr(model, start)(X[:600], first, **given, **known)
        models.append(model.partial_fit(X[600:], y[600:], cost=cost[600:]))
    shares = [np.bincount(part) / N for part in (first, y[600:])]
    for model in models:
        np.testing.assert_allclose(model.class_prior_, sum(shares))
    expected, found = (model.net_.statistics for model in models)
    assert (found.unit, found.offset) == pytest.approx((expected.unit, expected.offset))
    expected, found = (model.net_.statistics.class_mean for model in models)
    np.testing.assert_allclose(found, expected)


def test_a_block_in_the_memory_of_the_one_before(data):
    X, y = data
    expected = trained(mlp().fit(X, y), cut(X, y), epochs=1).predict_cost(X)
    model, block = mlp().fit(X, y), np.empty((100, 5))
    for part, labels in cut(X, y):
        block[:] = part
        model.partial_fit(block, labels)
    np.testing.assert_array_equal(model.predict_cost(X), expected)
