"""What a file of an estimator contains, and which files load."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from auxcst_sklearn import CSAEPretrainedMLP
from auxcst_sklearn._training.state import FORMAT, from_state, to_state
from auxcst_sklearn.losses import CrossEntropy
from tests.factories import QUICK, small_cnn, small_mlp, small_net, small_stack


class Tied(nn.Module):
    """A module of the user's: two layers share their weights, and a tensor is an attribute."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 3)
        self.second.weight = self.first.weight
        self.scales = [torch.full((4,), 2.0)]

    def forward(self, x):
        return self.last(torch.tanh(self.second(torch.relu(self.first(x))) * self.scales[0]))


class LastOfSequence(nn.Module):
    """An LSTM has attributes that are no tensors of its own, and leaves some behind."""

    def __init__(self):
        super().__init__()
        self.lstm, self.output = nn.LSTM(2, 5, batch_first=True), nn.Linear(5, 3)

    def forward(self, x):
        return self.output(self.lstm(x.unflatten(1, (2, 2)))[0][:, -1])


def images(problem):
    return np.random.default_rng(0).integers(0, 255, size=(60, 8, 8), dtype=np.uint8)


def frame(problem):
    words = np.array(["u", "v", None], dtype=object)[problem.y]
    number = np.where(problem.X[:, 1] > 1, np.nan, problem.X[:, 1])
    return pd.DataFrame({"number": number, "word": words})


def rows(problem):
    return problem.X


# Estimator, rows, and whether costs per sample are passed.
MODELS = {
    "network": (lambda: small_mlp(loss="one_sided"), rows, True),
    "stack": (small_stack, rows, False),
    "cost network": (small_stack, rows, True),
    "columns": (small_stack, frame, True),
    "images": (lambda: small_cnn(augmentation="flip", n_networks=2), images, False),
    "auto-encoders": (lambda: CSAEPretrainedMLP(2, 8, pretrain_epochs=1, **QUICK), rows, True),
    "tied": (lambda: small_net(Tied), rows, False),
    "tied instance": (lambda: small_net(Tied()), rows, True),
    "recurrent": (lambda: small_net(LastOfSequence, alpha=0), rows, False),
}


def fitted(name, problem):
    make, make_rows, per_sample = MODELS[name]
    X = make_rows(problem)
    return make().fit(X, problem.y, cost=problem.cost if per_sample else None), X


@pytest.mark.parametrize("name", MODELS)
def test_a_pickle_holds_numpy_arrays_and_loads_to_the_same_costs(name, problem):
    model, X = fitted(name, problem)
    data = pickle.dumps(model)
    copy = pickle.loads(data)
    assert not any(name in data for name in (b"_rebuild_", b"_load_from_bytes"))
    assert_same_costs(name, copy.predict_cost(X), model.predict_cost(X))
    for own, other in zip(model.net_.module_.parameters(), copy.net_.module_.parameters()):
        assert own.requires_grad == other.requires_grad
    assert pickle.loads(pickle.dumps(copy)).history_ == model.history_

    cost = problem.cost if MODELS[name][-1] else None
    copy.set_params(warm_start=True).fit(X, problem.y, cost=cost)
    assert len(copy.history_) > len(model.history_)
    assert not np.array_equal(copy.predict_cost(X), model.predict_cost(X))


def assert_same_costs(name, found, expected):
    """To the last bit; a convolution depends on the layout of its weights, which a file has not."""
    np.testing.assert_allclose(found, expected, rtol=1e-5 if name == "images" else 0)


@pytest.mark.parametrize("name", MODELS)
def test_skops_needs_trust_in_types_of_the_package_and_of_torch_only(name, problem):
    io_ = pytest.importorskip("skops.io", reason="skops is not installed")
    model, X = fitted(name, problem)
    data = io_.dumps(model)

    types = io_.get_untrusted_types(data=data)
    own = [t for t in types if t.startswith(("auxcst_sklearn.", "torch.", f"{Tied.__module__}."))]
    assert types == own
    copy = io_.loads(data, trusted=own)
    assert_same_costs(name, copy.predict_cost(X), model.predict_cost(X))


def test_shared_weights_stay_shared(problem):
    copy = pickle.loads(pickle.dumps(fitted("tied", problem)[0]))
    body = copy.net_.module_.networks[0].body
    assert body.first.weight is body.second.weight


# ------------------------------------------------------------------------------------- versions


@pytest.mark.parametrize("number", [99, 0, None])
def test_files_of_another_format_are_refused(number, problem):
    model = small_mlp().fit(problem.X, problem.y)
    for part, name in ((model, "_format"), (model.net_, "format")):
        state = part.__getstate__()
        assert state[name] == FORMAT
        with pytest.raises(ValueError, match=f"in format {number} by another .* fit it anew"):
            type(part).__new__(type(part)).__setstate__({**state, name: number})


# ------------------------------------------------------------------------------------- states


def test_states_of_values_of_any_kind():
    tensor = torch.arange(6.0).view(2, 3).t()
    half = torch.ones(2, dtype=torch.bfloat16)
    value = {"a": [tensor, tensor], "b": (CrossEntropy(0.1), torch.Size([2])), "c": half}
    found = from_state(to_state(value))
    assert found["a"][0] is found["a"][1]
    assert found["a"][0] is not tensor
    assert found["a"][0].stride() == tensor.stride()
    torch.testing.assert_close(found["a"][0], tensor)
    assert found["b"] == (CrossEntropy(0.1), (2,))
    assert found["c"] is half
