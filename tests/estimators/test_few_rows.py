"""Few rows: alone and among others they get the same estimates, whatever form they have."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from auxcst_sklearn import CSAEPretrainedMLP
from tests.factories import QUICK, dense, small_cnn, small_mlp, small_net, small_stack

# The bound of scikit-learn's check, for costs of order one.
same = {"rtol": 0, "atol": 1e-7}


def rows(n):
    """Numbers of several sizes, one of them with outliers and far from normal."""
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 5)) * [1, 100, 1, 1e-3, 1]
    X[:, 4] = np.exp(3 * X[:, 4])
    return X


MODELS = {
    "network": lambda: small_mlp(depth=3, width=(7, 9, 5)),
    "silu": lambda: small_mlp(activation="silu", dropout=0.5),
    "tanh": lambda: small_mlp(activation="tanh", standardize=True),
    "stack": lambda: small_stack(depth=3, width=(7, 9, 5)),
    "one-sided": lambda: small_stack(loss="one_sided"),
    "softmin": lambda: small_mlp(loss="softmin"),
    "auto-encoders": lambda: CSAEPretrainedMLP(2, 8, pretrain_epochs=1, max_epochs=2, **QUICK),
    "convolutions": lambda: small_cnn(image_shape=(1, 5, 1)),
    "modules": lambda: small_net(lambda: dense(5, 16, 16, 3, activation=nn.Tanh), n_networks=2),
}


def fitted(name, per_sample=False):
    X, rng = rows(400), np.random.default_rng(0)
    X = X if name not in ("convolutions", "modules") else np.tanh(X)
    cost = rng.uniform(0.1, 1, size=(400, 3))
    cost[np.arange(400), np.arange(400) % 3] *= 0.2
    return MODELS[name]().fit(X, np.arange(400) % 3, cost=cost if per_sample else None)


@pytest.mark.parametrize("per_sample", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_a_row_gets_alone_what_it_gets_among_twenty(name, per_sample):
    model, X = fitted(name, per_sample), np.tanh(rows(50))
    for method in ("predict_cost", "predict_proba"):
        if not hasattr(model, method):
            continue
        compute = getattr(model, method)
        together = compute(X[7:27])
        for n in (1, 2, 3, 16):
            np.testing.assert_allclose(compute(X[7 : 7 + n]), together[:n], **same)
            np.testing.assert_allclose(compute(X[27 - n : 27]), together[20 - n :], **same)
        np.testing.assert_allclose(compute(X)[7:27], together, rtol=1e-5, atol=1e-6)


def frame(n, **columns):
    return pd.DataFrame(rows(n), columns=list("abcde")).assign(**columns)


@pytest.mark.parametrize(
    "few",
    [
        frame(1),
        frame(3),
        frame(2).astype({"a": np.float32}),
        frame(2, b=[3, 4]),
        frame(2, b=pd.Categorical([1.5, 2.5])),
        frame(2).set_axis([7, 5]),
        frame(2, a=pd.array([3, 4], dtype="Int64")),
        frame(2, a=["1", "2"]),
    ],
)
def test_a_few_rows_of_a_frame_get_what_they_get_among_many(few):
    y = np.arange(400) % 3
    model = MODELS["stack"]().fit(frame(400), y)
    many = pd.concat([few, frame(150)]).astype(np.float64)
    np.testing.assert_allclose(
        model.predict_cost(few), model.predict_cost(many)[: len(few)], rtol=1e-5
    )


@pytest.mark.parametrize(
    ("few", "reason"),
    [
        (frame(2)[list("badce")], "Feature names must be in the same order"),
        (frame(2).rename(columns={"a": "z"}), "Feature names unseen at fit time"),
        (frame(2, a=pd.Timedelta("1h")), "contains times"),
        (frame(2).drop(columns="e"), "Feature names seen at fit time, yet now missing"),
    ],
)
def test_wrong_frames_get_the_usual_errors(few, reason):
    model = small_stack().fit(frame(60), np.arange(60) % 3)
    with pytest.raises(ValueError, match=reason):
        model.predict(few)


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
def test_wrong_rows_get_the_usual_errors(X, reason):
    with pytest.raises(ValueError, match=reason):
        fitted("network").predict(X)


def test_rows_of_a_network_that_changes():
    X, model = rows(400), fitted("stack")
    module = model.net_.module_

    def assert_follows():
        np.testing.assert_allclose(
            model.predict_cost(X[:2]), model.predict_cost(X)[:2], rtol=1e-5, atol=1e-6
        )

    before = model.predict_cost(X[:2])
    model.partial_fit(X, np.arange(400) % 3)
    assert_follows()
    assert not np.array_equal(model.predict_cost(X[:2]), before)
    module.load_state_dict({name: 0.5 * w for name, w in module.state_dict().items()})
    assert_follows()
    module.output.weight = nn.Parameter(torch.ones_like(module.output.weight))
    assert_follows()
    module.output.bias.data = torch.randn_like(module.output.bias)
    assert_follows()
    model.net_.temperature = 3.0
    assert_follows()
    handle = module.output.register_forward_hook(lambda part, args, output: 2 * output)
    assert_follows()
    handle.remove()
    assert_follows()


def test_threads_and_copies():
    model, X = fitted("stack"), rows(200)
    expected = np.concatenate([model.predict_cost(X[i : i + 1]) for i in range(200)])
    copies = [model, deepcopy(model), pickle.loads(pickle.dumps(model))]
    with ThreadPoolExecutor(8) as threads:
        for copy in copies:
            found = list(threads.map(lambda i, m=copy: m.predict_cost(X[i : i + 1]), range(200)))
            np.testing.assert_allclose(np.concatenate(found), expected, rtol=1e-5, atol=1e-6)
