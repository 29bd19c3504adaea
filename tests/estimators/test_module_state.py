"""The state of a user's module, in files, copies, checkpoints, and at the best epoch."""

import copy
import pickle

import joblib
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, spectral_norm, weight_norm

from tests.factories import small_net

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 8)).astype(np.float32)
Y = (X[:, 0] * X[:, 1] > 0).astype(int)

WRAPPERS = {
    "spectral": parametrizations.spectral_norm,
    "weight": parametrizations.weight_norm,
    "orthogonal": parametrizations.orthogonal,
    "old spectral": spectral_norm,
    "old weight": weight_norm,
}


def constrained(kind):
    wrap = WRAPPERS[kind]
    hidden = [part for _ in range(2) for part in (wrap(nn.Linear(8, 8)), nn.Tanh())]
    return nn.Sequential(*hidden, nn.Linear(8, 2))


def through_file(model, path):
    joblib.dump(model, path / "model.joblib")
    return joblib.load(path / "model.joblib")


def singular_values(model):
    body = model.net_.module_.networks[0].body
    body(torch.from_numpy(X[:1]))  # old constraints are applied in the forward
    return torch.linalg.svdvals(body[0].weight.detach())


@pytest.mark.filterwarnings("ignore:.*weight_norm.*is deprecated:FutureWarning")
@pytest.mark.parametrize("is_instance", [True, False])
@pytest.mark.parametrize("kind", WRAPPERS)
def test_constraints_of_weights_stay_with_the_module(kind, is_instance, tmp_path):
    torch.manual_seed(0)
    module = constrained(kind) if is_instance else constrained
    given = {} if is_instance else {"module__kind": kind}
    known = {"learning_rate": 1e-2, "pretrained": False, "warm_start": True}
    model = small_net(module, **known, **given).fit(X, Y)
    before = model.predict_proba(X)

    loaded = pickle.loads(pickle.dumps(model)), copy.deepcopy(model), through_file(model, tmp_path)

    np.testing.assert_array_equal(model.predict_proba(X), before)
    if is_instance:
        assert module(torch.from_numpy(X)).shape == (120, 2)
    for again in loaded:
        np.testing.assert_array_equal(again.predict_proba(X), before)
        again.fit(X, Y)
        assert not np.array_equal(again.predict_proba(X), before)
        values = singular_values(again)
        if kind == "orthogonal":
            torch.testing.assert_close(values, torch.ones(8))
        if "spectral" in kind:
            assert abs(values[0] - 1) < 0.05
    model.fit(X, Y)


@pytest.mark.parametrize("kind", ["spectral", "weight", "orthogonal"])
def test_a_worker_trains_the_same_constrained_network(kind):
    torch.manual_seed(0)
    model = small_net(constrained(kind), pretrained=False)

    remote = pickle.loads(pickle.dumps(model)).fit(X, Y)

    np.testing.assert_array_equal(remote.predict_proba(X), model.fit(X, Y).predict_proba(X))


def test_what_cannot_be_pickled_changes_nothing():
    class Local(nn.Module):
        def forward(self, weight):
            return weight.tanh()

    module = constrained("spectral")
    nn.utils.parametrize.register_parametrization(module[2], "weight", Local())
    model = small_net(module, pretrained=False).fit(X, Y)
    before = model.predict_proba(X)

    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(model)

    np.testing.assert_array_equal(model.predict_proba(X), before)


class Centred(nn.Module):
    """Features minus their average, which is kept in one of several ways."""

    dies_at = None

    def __init__(self, kind):
        super().__init__()
        self.a, self.b, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.kind, self.n_steps, self.rate, self.phase = kind, 0, np.float32(1), "start"
        self.register_buffer("mean", torch.zeros(8), persistent=kind == "persistent")

    def forward(self, x):
        h = self.a(x).relu()
        if self.training:
            self.n_steps, self.phase = self.n_steps + 1, None
            self.rate *= self.rate.dtype.type(0.97)
            if self.n_steps == self.dies_at:
                raise KeyboardInterrupt
            self.mean = 0.9 * self.mean + 0.1 * h.detach().mean(0)
        factors = {"int": self.n_steps / 10, "numpy": self.rate, "string": self.phase == "start"}
        return self.out(self.b(h - float(factors.get(self.kind, 1)) * self.mean).relu())


KINDS = ["persistent", "not persistent", "int", "numpy", "string"]


@pytest.mark.parametrize("early_stopping", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_a_killed_fit_resumes_with_all_state(kind, early_stopping, tmp_path, monkeypatch):
    given = {"module__kind": kind, "max_epochs": 4, "early_stopping": early_stopping}
    expected = small_net(Centred, **given).fit(X, Y).predict_proba(X)
    model = small_net(Centred, checkpoint_dir=tmp_path, **given)
    monkeypatch.setattr(Centred, "dies_at", 20)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    monkeypatch.undo()

    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), expected)


@pytest.mark.parametrize("has_costs", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_epoch_is_restored_with_all_state(kind, has_costs):
    given = {"module__kind": kind, "learning_rate": 0.1, "early_stopping": True, "patience": 3}
    cost = RNG.random((120, 2)) if has_costs else None  # a second network learns them

    def fitted(n_epochs):
        model = small_net(Centred, max_epochs=n_epochs, schedule="constant", **given)
        return model.fit(X, Y, cost=cost)

    model = fitted(30)
    losses = [record.get("valid_refinement", record["valid_cost"]) for record in model.history_]
    best = int(np.argmin(losses)) + 1
    assert best < len(losses) < 30

    found = fitted(best)

    np.testing.assert_array_equal(model.predict_proba(X), found.predict_proba(X))
    np.testing.assert_array_equal(model.predict_cost(X), found.predict_cost(X))
