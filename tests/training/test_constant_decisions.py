"""The warning where a constant decision is cheaper than those of the network."""

import warnings

import numpy as np
import pytest
from torch import nn

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet


def overconfident(ratio, kind="mlp", **parameters):
    """With 2 % wrong labels and a temperature of 0.2, misses seem impossible."""
    known = {"cost_matrix": [[0, 1], [ratio, 0]], "temperature": 0.2, "random_state": 0}
    if kind == "module":
        module = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
        known |= {"alpha": 0, "early_stopping": True, "pretrained": False, "learning_rate": 0.02}
        return CostSensitiveAuxNet(module, max_epochs=10, **known, **parameters)
    return CostSensitiveAuxMLP(1, 16, max_epochs=5, **known, **parameters)


def problem(wrong=0.02, n=1000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2)).astype(np.float32)
    y = (X[:, 0] > 0) ^ (rng.random(n) < wrong)
    return X, y.astype(int)


@pytest.mark.parametrize("kind", ["mlp", "module"])
def test_a_constant_that_is_cheaper_on_unseen_samples_is_named(kind):
    X, y = problem()
    with pytest.warns(UserWarning, match=r"always 1 costs 0\.\d+ a sample, .* cost \d") as found:
        overconfident(300, kind).fit(X, y)
    assert sum("always 1" in str(one.message) for one in found) == 1


@pytest.mark.parametrize(
    ("ratio", "wrong", "parameters"),
    [
        (20, 0.02, {}),  # no extreme costs
        (300, 0, {"temperature": "auto"}),  # a good network
        (300, 0.02, {"early_stopping": False}),  # all samples were trained on
    ],
)
def test_otherwise_there_is_no_warning(ratio, wrong, parameters):
    X, y = problem(wrong)
    model = overconfident(ratio).set_params(**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)


def test_costs_known_for_each_sample_decide():
    X, y = problem()
    costs = np.zeros((1000, 2, 2))
    costs[:, 0, 1], costs[:, 1, 0] = 1, 300
    known = overconfident(300).set_params(cost_matrix=None)
    with pytest.warns(UserWarning, match="always 1 costs"):
        known.fit(X, y, cost=costs)
