"""PAPER against the paper: its network and training once more, in float64 and by hand."""

import numpy as np
import pytest
from torch import nn

from auxcst_sklearn import PAPER, CostSensitiveAuxMLP
from auxcst_sklearn.costs import cost_vectors, randomized_proportional_cost_matrix

N_CLASSES, RATE, EPOCHS = 4, 0.2, 30


@pytest.fixture(scope="module")
def problem():
    """Examples, labels and a cost vector for each, with ties and other than zero for the truth."""
    random = np.random.RandomState(0)
    X = random.normal(size=(60, 5)).astype(np.float32)
    y = np.arange(60) % N_CLASSES
    cost = 20 * random.gamma(1.0, size=(60, N_CLASSES)) + 3
    cost[np.arange(60), y] = 2.0
    cost[:5, :2] = 1.0
    return X, y, cost


def start_weights(model):
    """Weights and biases of hidden layers, of heads and of the output."""
    module = model.net_.module_

    def arrays(layer):
        weight, bias = (p.numpy(force=True).astype(float) for p in (layer.weight, layer.bias))
        return [weight[0], bias[0, :, 0]]

    hidden = [arrays(layer[0]) for layer in module.hidden.values()]
    heads = {int(name.removeprefix("hidden")) - 1: arrays(h) for name, h in module.heads.items()}
    return hidden, heads, arrays(module.output)


def one_sided_gradient(r, cost):
    """Of the mean over the rows of sum_k max(z_k (r_k - c_k), 0)."""
    z = np.where(cost == cost.min(axis=1, keepdims=True), 1.0, -1.0)
    return z * (z * (r - cost) > 0) / len(r)


def forward(X, hidden):
    codes = [X]
    for weight, bias in hidden:
        codes.append(np.maximum(codes[-1] @ weight.T + bias, 0))
    return codes


def train(X, cost, hidden, heads, output, alphas):
    """Minimize sum_i alpha_i L_i + L_output by gradient descent on all rows; change the arrays."""
    readers = [(alpha, heads.get(i)) for i, alpha in enumerate(alphas)] + [(1.0, output)]
    for _ in range(EPOCHS):
        codes = forward(X, hidden)
        steps, downward = [], 0.0
        for layer, (alpha, reader), below, code in reversed(
            list(zip(hidden, readers, codes, codes[1:]))
        ):
            if reader is not None:
                slope = alpha * one_sided_gradient(code @ reader[0].T + reader[1], cost)
                steps.append((reader, slope, code))
                downward = downward + slope @ reader[0]
            slope = downward * (code > 0)
            steps.append((layer, slope, below))
            downward = slope @ layer[0]
        for (weight, bias), slope, inputs in steps:
            weight -= RATE * slope.T @ inputs
            bias -= RATE * slope.sum(axis=0)


def estimates(X, hidden, output):
    return forward(X, hidden)[-1] @ output[0].T + output[1]


@pytest.mark.parametrize("alpha", [0.0, 0.2, 1.0, [0.7, 0.0]])
def test_the_whole_training_is_that_of_the_paper(problem, alpha):
    X, y, cost = problem
    parameters = {"width": [8, 7, 6], "alpha": alpha, "batch_size": len(X), "random_state": 0}
    recipe = {**PAPER, **parameters}
    start = CostSensitiveAuxMLP(**{**recipe, "learning_rate": 1e-30, "max_epochs": 1})
    hidden, heads, output = start_weights(start.fit(X, y, cost=cost))
    alphas = [alpha] * 2 if np.isscalar(alpha) else alpha
    assert set(heads) == {i for i, a in enumerate(alphas) if a > 0}

    # Costs are learnt in units of their mean above the smallest.
    least = cost.min(axis=1, keepdims=True)
    offset, unit = least.mean(), (cost - least)[cost > least].mean()
    train(X.astype(float), (cost - offset) / unit, hidden, heads, output, alphas)
    expected = offset + unit * estimates(X, hidden, output)

    model = CostSensitiveAuxMLP(**{**recipe, "learning_rate": RATE, "max_epochs": EPOCHS})
    found = model.fit(X, y, cost=cost).predict_cost(X)
    np.testing.assert_allclose(found / unit, expected / unit, rtol=0, atol=1e-5)
    assert np.abs(found - start.predict_cost(X)).max() > 0.1 * unit  # it did learn
    np.testing.assert_array_equal(model.predict(X), expected.argmin(axis=1))


def test_the_recipe_is_free_of_all_else():
    random = np.random.RandomState(0)
    X = random.lognormal(sigma=2, size=(400, 3)) * [1e-2, 1, 1e2]
    y = np.arange(400) % N_CLASSES
    matrix = randomized_proportional_cost_matrix(y, random_state=0)
    parameters = {"learning_rate": 1e-4, "max_epochs": 3, "random_state": 0}
    model = CostSensitiveAuxMLP(**{**PAPER, **parameters}, cost_matrix=matrix).fit(X, y)
    assert model.training_.n_networks == 1
    assert isinstance(model.net_.module_.inputs, nn.Identity)
    assert [set(record) for record in model.history_] == [set(model.history_[0])] * 3
    assert "valid_loss" not in model.history_[0]
    by_vectors = CostSensitiveAuxMLP(**{**PAPER, **parameters})
    by_vectors.fit(X, y, cost=cost_vectors(y, matrix))
    np.testing.assert_allclose(model.predict_cost(X), by_vectors.predict_cost(X), rtol=1e-4)


def test_the_recipe_decides_on_every_parameter():
    left_open = {"depth", "width", "max_epochs", "batch_size", "cost_matrix", "classes"}
    left_open |= {"decisions", "warm_start", "device", "precision", "random_state", "verbose"}
    left_open |= {"callbacks", "net_params", "checkpoint_dir", "checkpoint_every", "distributed"}
    no_effect = {"aux_loss", "categorical_features", "validation_fraction", "patience"}
    assert set(CostSensitiveAuxMLP().get_params()) == left_open | no_effect | set(PAPER)
