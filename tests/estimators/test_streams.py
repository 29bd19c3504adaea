"""`fit` on a sample and then `partial_fit`: rows that come in blocks."""

import pickle
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
from torch import nn

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet
from auxcst_sklearn.losses import CrossEntropy

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


def pickle_copy(model):
    return pickle.loads(pickle.dumps(model))


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
    blue, violet, green, red = (
        model.predict_cost(frame[600:601].assign(c=c)) for c in ("blue", "violet", "green", "red")
    )
    np.testing.assert_array_equal(blue, violet)
    assert len(np.unique([blue, green, red], axis=0)) == 3


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


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("start", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "changed",
    [
        {"learning_rate": 0.5},
        {"learning_rate": 1e-9},
        {"weight_decay": 50.0},
        {"alpha": [5.0]},
        {"dropout": 0.9},
        {"dropout": 0.0},
    ],
    ids=str,
)
def test_a_stream_uses_the_parameters_of_now(data, changed, start, pickled):
    X, y = data
    given = {"depth": 2, "learning_rate": 1e-2, "optimizer": "adamw"}
    known = {"classes": [0, 1, 2]} if start == "partial_fit" else {}
    moved = []
    for parameters in ({}, {}, changed):
        model = getattr(mlp(**given), start)(X[:300], y[:300], **known)
        model = pickle_copy(model) if pickled else model
        before = model.predict_proba(X)
        model.set_params(**parameters).partial_fit(X[300:600], y[300:600])
        moved.append(np.abs(model.predict_proba(X) - before).max())
    assert moved[0] == moved[1] != moved[2]
    if changed == {"learning_rate": 1e-9}:
        assert moved[2] < 0.5 * moved[0]


def test_the_optimizer_of_a_stream_has_the_rate_and_the_decay_of_now(data):
    X, y = data
    model = mlp(learning_rate=1e-2, net_params={"optimizer__betas": (0.8, 0.99)}).fit(X, y)
    model.set_params(learning_rate=1e-3, weight_decay=0.3).partial_fit(X, y)
    (group,) = model.net_.optimizer_.param_groups
    assert (group["lr"], group["weight_decay"]) == pytest.approx((1e-3, 0.3))
    assert model.training_.learning_rate == 1e-3


@pytest.mark.parametrize("start", ["fit", "partial_fit"])
@pytest.mark.parametrize(
    "changed",
    [
        {"loss": "squared"},
        {"loss": CrossEntropy(smoothing=0.2)},
        {"aux_loss": "cross_entropy"},
        {"optimizer": "sgd"},
        {"net_params": {"optimizer__betas": (0.5, 0.9)}},
        {"depth": 3, "width": 8},
        {"activation": "tanh"},
        {"n_networks": 1},
        {"standardize": True},
        {"precision": "bf16"},
    ],
    ids=str,
)
def test_parameters_that_made_the_net_of_a_stream_must_stay(data, changed, start):
    X, y = data
    model = mlp(depth=2)
    known = {"classes": [0, 1, 2]} if start == "partial_fit" else {}
    getattr(model, start)(X[:300], y[:300], **known)
    before, kept = model.predict_proba(X), model.get_params(deep=False)
    model.set_params(**changed)
    with pytest.raises(ValueError, match=f"{', '.join(sorted(changed))} changed since the first"):
        model.partial_fit(X, y)
    with pytest.raises(ValueError, match="changed since .* Set warm_start=False, and call fit"):
        model.set_params(warm_start=True).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    model.set_params(warm_start=False, **{name: kept[name] for name in changed}).partial_fit(X, y)
    model.set_params(**changed).fit(X, y)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_heads_of_a_continued_training_stay_on_their_layers(data, method):
    X, y = data
    model = mlp(depth=4, alpha=[0.2, 0, 0.1], warm_start=True).fit(X, y)
    model.set_params(alpha=[0.4, 0, 3], weight_decay=0.3, dropout=0.4)
    getattr(model, method)(X, y)
    assert model.net_.optimizer_.param_groups[0]["weight_decay"] == 0.3
    assert model.net_.module_.hidden["hidden1"][-1].p == 0.4
    np.testing.assert_allclose(model.net_.criterion_.alphas.ravel(), [0.4, 3, 1])
    for alpha in (0.2, [0.4, 3, 0], 0, lambda n: [1] * n):
        with pytest.raises(ValueError, match="alpha=.* has heads on other layers"):
            getattr(model.set_params(alpha=alpha), method)(X, y)


@pytest.mark.parametrize("copy", [pickle_copy, deepcopy])
def test_copies_of_streams_go_on(data, copy):
    """Modules, losses with tensors, functions and arrays among the parameters are the same."""
    X, y = data
    module = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    model = CostSensitiveAuxNet(module, pretrained=False, max_epochs=1, hidden_layers=["1"])
    model.fit(X, y)
    copy(model).partial_fit(X, y)
    model = copy(mlp(depth=2, width=np.array([8, 8]), loss=CrossEntropy()).fit(X, y))
    model.set_params(width=[8, 8], loss=CrossEntropy()).partial_fit(X, y)


def test_parameters_without_a_role_in_streams_may_change(data):
    X, y = data
    model, other = (mlp(learning_rate=1e-2).fit(X, y) for _ in range(2))
    other.set_params(
        max_epochs=7, schedule="one_cycle", early_stopping=False, patience=3, ema_epochs=1.0,
        validation_fraction=0.5, random_state=5, warm_start=True, checkpoint_every=4,
    )  # fmt: skip
    expected, found = (m.partial_fit(X, y).predict_proba(X) for m in (model, other))
    np.testing.assert_array_equal(found, expected)
