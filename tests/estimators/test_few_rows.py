"""Few rows take a short way to the same bits; whatever is unusual takes the other."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from torch import nn

from auxcst_sklearn import CSAEPretrainedMLP
from auxcst_sklearn._estimators.few_rows import MOST_ROWS, predict_few
from tests.factories import QUICK, small_cnn, small_mlp, small_net, small_stack

SMALL = {"depth": 2, "width": 8, "max_epochs": 2, **QUICK}


def rows(n):
    """Numbers of several sizes, one of them with outliers and far from normal."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5)) * [1, 100, 1, 1e-3, 1]
    X[:, 4] = np.exp(3 * X[:, 4])
    return X


MODELS = {
    "network": lambda: small_mlp(depth=3, width=(7, 9, 5)),
    "silu": lambda: small_mlp(activation="silu", dropout=0.5),
    "tanh": lambda: small_mlp(activation="tanh", standardize=False),
    "stack": lambda: small_stack(depth=3, width=(7, 9, 5)),
    "one-sided": lambda: small_stack(loss="one_sided"),
    "softmin": lambda: small_mlp(loss="softmin"),
    "auto-encoders": lambda: CSAEPretrainedMLP(pretrain_epochs=1, **SMALL),
}


def fitted(name, per_sample=False):
    X, rng = rows(400), np.random.default_rng(0)
    cost = rng.uniform(0.1, 1, size=(400, 3))
    cost[np.arange(400), np.arange(400) % 3] *= 0.2
    return MODELS[name]().fit(X, np.arange(400) % 3, cost=cost if per_sample else None)


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_the_bits_are_those_of_the_usual_way(name, per_sample):
    model, X = fitted(name, per_sample), rows(50)
    dtype = np.float32 if isinstance(model, CSAEPretrainedMLP) else np.float64
    for n in (1, 2, 3, 5, MOST_ROWS):
        few = X[7 : 7 + n]
        usual = model._inputs.transform(few.astype(dtype))
        cost = model.net_.predict_heads(usual)[0]
        assert predict_few(model, few, "to_cost") is not None
        np.testing.assert_array_equal(model.predict_cost(few), cost)
        np.testing.assert_array_equal(model.predict(few), model.classes_[cost.argmin(axis=1)])
        if hasattr(model, "predict_proba"):
            np.testing.assert_array_equal(model.predict_proba(few), model.net_.predict_proba(usual))


@pytest.mark.parametrize("make", [small_mlp, small_stack])
def test_the_bits_are_those_among_many_rows(make):
    """Torch itself rounds layers of fewer than 16 units by the number of rows."""
    model, X = make(width=32).fit(rows(400), np.arange(400) % 3), rows(50)
    for n in (1, 2, 3, 4):
        np.testing.assert_array_equal(
            model.predict_cost(X[9 : 9 + n]), model.predict_cost(X)[9:][:n]
        )


def test_the_bits_of_float32_rows():
    model, X = fitted("stack"), rows(2).astype(np.float32)
    assert predict_few(model, X, "to_cost") is not None
    expected = model.net_.predict_heads(model._inputs.transform(X))[0]
    np.testing.assert_array_equal(model.predict_cost(X), expected)


@pytest.mark.parametrize(
    "change",
    [
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X),
        lambda X: sparse.csr_matrix(X),
        lambda X: X[:, ::-1],
        lambda X: np.asfortranarray(X),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(object),
        lambda X: np.where(X[0, 0] == X, np.nan, X),
        lambda X: np.ma.masked_array(X),
    ],
)
def test_unusual_rows_take_the_usual_way(change):
    model, X = fitted("stack"), change(rows(2))
    assert predict_few(model, X, "to_cost") is None
    assert model.predict_cost(X).shape == (2, 3)


def frame(n, **columns):
    return pd.DataFrame(rows(n), columns=list("abcde")).assign(**columns)


@pytest.mark.parametrize("per_sample", [False, True])
def test_frames_of_numbers_take_the_short_way(per_sample):
    y, cost = np.arange(400) % 3, None
    if per_sample:
        cost = np.random.default_rng(0).uniform(size=(400, 3)) * (np.arange(3) != y[:, None])
    model = MODELS["stack"]().fit(frame(400), y, cost=cost)
    for few in (
        frame(1),
        frame(3),
        frame(2).astype({"a": np.float32}),
        frame(2, b=[3, 4]),
        frame(2, b=pd.Categorical([1.5, 2.5])),
        frame(2).set_axis([7, 5]),
    ):
        assert predict_few(model, few, "to_cost") is not None
        usual = model.net_.predict_heads(model._inputs.transform(few.to_numpy(np.float64)))[0]
        np.testing.assert_array_equal(model.predict_cost(few), usual)


@pytest.mark.parametrize(
    "few",
    [
        frame(2)[list("badce")],
        frame(2).rename(columns={"a": "z"}),
        frame(2, a=pd.Timestamp("2026-01-01")),
        frame(2, a=[1.0, np.nan]),
        frame(2, a=["1", "2"]),
        frame(2, a=pd.array([3, 4], dtype="Int64")),
        frame(17),
        frame(2).drop(columns="e"),
    ],
)
def test_other_frames_take_the_usual_way(few):
    model = small_stack().fit(frame(60), np.arange(60) % 3)
    assert predict_few(model, few, "to_cost") is None


@pytest.mark.parametrize(
    ("X", "reason"),
    [
        (np.ones((1, 4)), "X has 4 features, but .* is expecting 5"),
        (np.full((1, 5), np.inf), "Input X contains infinity"),
        (np.full((1, 5), 1e300), "Input X contains infinity or a value too large"),
        (np.ones(5), "Expected 2D array, got 1D array"),
        (np.ones((1, 5, 1)), "Found array with dim 3"),
        (np.ones((0, 5)), "Found array with 0 sample"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_wrong_rows_get_the_same_errors(X, reason):
    with pytest.raises(ValueError, match=reason):
        fitted("network").predict(X)


def test_names_of_columns_are_asked_for():
    X = pd.DataFrame(rows(60), columns=list("abcde"))
    model = small_mlp().fit(X, np.arange(60) % 3)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X.to_numpy()[:1])


@pytest.mark.parametrize(
    "model",
    [
        lambda X, y: small_mlp(precision="bf16").fit(X, y),
        lambda X, y: small_mlp(categorical_features=[0]).fit(np.abs(X.round()), y),
        lambda X, y: small_net(nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))).fit(
            X, y
        ),
        lambda X, y: small_cnn(image_shape=(1, 5, 1), pool=1).fit(X, y),
        lambda X, y: small_mlp(width=1300, max_epochs=1).fit(X, y),
    ],
    ids=["bf16", "categories", "module", "images", "large"],
)
def test_other_networks_take_the_usual_way(model):
    X = rows(60)
    model = model(X / 1e3, np.arange(60) % 3)
    assert predict_few(model, X[:1], "to_cost") is None


def test_rows_of_a_network_that_changes():
    X, y = rows(400), np.arange(400) % 3
    model = fitted("stack")
    module = model.net_.module_

    def assert_follows():
        expected = model.net_.predict_heads(model._inputs.transform(X[:2]))[0]
        np.testing.assert_array_equal(model.predict_cost(X[:2]), expected)

    assert_follows()
    before = model.predict_cost(X[:2])
    model.partial_fit(X, y)
    assert_follows()
    assert not np.array_equal(model.predict_cost(X[:2]), before)
    module.load_state_dict({name: 0.5 * w for name, w in module.state_dict().items()})
    assert_follows()
    module.output.weight = nn.Parameter(torch.ones_like(module.output.weight))
    assert_follows()
    module.output.bias.data = torch.randn_like(module.output.bias)
    assert_follows()
    module.hidden["hidden1"][1] = nn.Tanh()
    assert_follows()
    model.net_.temperature = 3.0
    assert_follows()
    for part in (module.output, module):
        handle = part.register_forward_hook(lambda part, args, output: 2 * output)
        assert_follows()
        handle.remove()
        assert_follows()
    model.fit(X, y[::-1])
    assert_follows()


def test_training_mode_and_autocast_of_the_caller():
    model, X = fitted("network"), rows(2)
    expected = model.predict_cost(X)
    with torch.autocast("cpu"):
        np.testing.assert_array_equal(model.predict_cost(X), expected)
    with torch.inference_mode():
        np.testing.assert_array_equal(model.predict_cost(X), expected)
    model.net_.module_.train()
    assert predict_few(model, X, "to_cost") is None


def test_threads_and_copies():
    model, X = fitted("stack"), rows(200)
    expected = np.concatenate([model.predict_cost(X[i : i + 1]) for i in range(200)])
    copies = [model, deepcopy(model), pickle.loads(pickle.dumps(model))]
    assert b"few_rows" not in pickle.dumps(model)
    with ThreadPoolExecutor(8) as threads:
        for copy in copies:
            found = list(threads.map(lambda i, m=copy: m.predict_cost(X[i : i + 1]), range(200)))
            np.testing.assert_array_equal(np.concatenate(found), expected)
