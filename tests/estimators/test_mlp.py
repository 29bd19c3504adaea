import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification

from auxcst_sklearn import CostSensitiveAuxMLP
from tests.factories import small_cnn, small_mlp, small_stack

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(300, 6, n_informative=4, n_classes=3, random_state=0)


def small(**parameters):
    return small_mlp(**{"depth": 3, **parameters})


@pytest.mark.parametrize(
    ("parameters", "layers", "widths", "alphas"),
    [
        ({"depth": 4, "width": [8, 7, 6, 5]}, [1, 2, 3], [8, 7, 6], [0.2, 0.2, 0.2]),
        ({"depth": 1, "alpha": 0.5}, [], [], []),
        ({"alpha": [0.0, 0.7]}, [2], [8], [0.7]),
    ],
)
def test_every_hidden_layer_but_the_last_has_a_head(data, parameters, layers, widths, alphas):
    estimator = small(**parameters).fit(*data)

    assert estimator.hidden_layers_ == [f"hidden{number}" for number in layers]
    shapes = [head.weight.shape for head in estimator.net_.module_.heads.values()]
    assert shapes == [(1, 3, width) for width in widths]
    assert estimator.net_.criterion_.alphas.flatten().tolist() == pytest.approx([*alphas, 1])
    assert len(list(estimator.staged_predict(data[0]))) == len(layers) + 1


@pytest.mark.parametrize("activation", ["sigmoid", "tanh"])
def test_sigmoid_layers_start_with_longer_weights_and_without_biases(data, activation):
    model = small(activation=activation, width=[50, 80, 40], learning_rate=1e-30, max_epochs=1)
    module = model.fit(*data).net_.module_
    for linear, *_ in module.hidden.values():
        _, n_outputs, n_inputs = linear.weight.shape
        longer = 4 * np.sqrt(6 / (n_inputs + n_outputs)) if activation == "sigmoid" else 0
        bound = longer or 1 / np.sqrt(n_inputs)
        assert 0.97 * bound < linear.weight.abs().max() <= 1.01 * bound
        assert (linear.bias.abs().max() > 0.01) == (activation == "tanh")


def test_history_has_the_loss_of_every_layer(data):
    estimator = small(alpha=[0.3, 0.5], max_epochs=4).fit(*data)

    assert [record["epoch"] for record in estimator.history_] == [1, 2, 3, 4]
    for record in estimator.history_:
        total = 0.3 * record["train_loss_hidden1"] + 0.5 * record["train_loss_hidden2"]
        total += record["train_loss_output"]
        assert record["train_loss"] == pytest.approx(total)
    assert estimator.history_[-1]["train_loss"] < estimator.history_[0]["train_loss"]


def test_heads_may_learn_another_loss(data):
    estimator = small(loss="cross_entropy", aux_loss="squared").fit(*data)

    hidden, _, output = estimator.staged_predict_cost(data[0])
    np.testing.assert_allclose(output.sum(axis=1), 2, rtol=1e-5)  # 0/1 costs times probabilities
    assert not np.allclose(hidden.sum(axis=1), 2, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [
        CostSensitiveAuxMLP(2, 64, n_networks=1, max_epochs=20, random_state=0),
        small_cnn(image_shape=(8, 8), channels=(8, 16), loss="cross_entropy", max_epochs=4),
    ],
)
def test_costs_are_lower_than_those_of_the_cost_blind_network(model):
    X, y = load_digits(return_X_y=True)
    cost = np.random.RandomState(0).lognormal(sigma=2, size=(10, 10)) * (1 - np.eye(10))
    bills = []
    for cost_matrix in (cost, None):
        y_pred = model.set_params(cost_matrix=cost_matrix).fit(X[::2] / 16, y[::2]).predict(X / 16)
        bills.append(cost[y[1::2], y_pred[1::2]].mean())

    assert bills[0] < 0.8 * bills[1]


def test_of_small_weights_only_the_ratios_count(problem, mlp):
    X, y, cost = problem
    weight = np.linspace(0.5, 1, len(y))

    one, other = (
        mlp().fit(X, y, cost=cost, sample_weight=w).predict_cost(X) for w in (weight, weight / 1024)
    )

    np.testing.assert_array_equal(one, other)


def test_without_a_random_state_two_networks_go_on_with_different_numbers(problem, mlp):
    X, y, _ = problem
    models = [mlp(random_state=None).partial_fit(X, y, classes=[0, 1, 2]) for _ in range(2)]

    for model in models:
        model.partial_fit(X, y)

    seeds = [model._random_state.randint(2**31) for model in models]
    assert seeds[0] != seeds[1]


# --------------------------------------------------------------------- several networks


def test_stages_are_means_of_the_heads_of_the_networks(problem):
    model = small_stack(depth=3, loss="squared").fit(problem.X, problem.y, cost=problem.cost)

    with torch.no_grad():
        heads = model.net_.module_.forward_heads(torch.from_numpy(problem.X)[None])
    for found, of_networks in zip(model.staged_predict_cost(problem.X), heads, strict=True):
        expected = model.net_.statistics.to_currency(of_networks.double().numpy().mean(axis=0))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found, model.predict_cost(problem.X))
    for cost, labels in zip(
        model.staged_predict_cost(problem.X), model.staged_predict(problem.X), strict=True
    ):
        np.testing.assert_array_equal(labels, cost.argmin(axis=1))


def test_bfloat16_reaches_every_network(problem):
    X, y, _ = problem
    parameters = {"max_epochs": 5, "early_stopping": False, "temperature": 1.0}
    models = [small_stack(precision=one, **parameters).fit(X, y) for one in ("bf16", "float32")]

    rough, exact = (model.predict_proba(X) for model in models)
    difference = np.abs(rough - exact)
    assert (difference.max(axis=1) > 0).all()
    assert difference.mean() < 0.02
    assert {p.dtype for p in models[0].net_.module_.parameters()} == {torch.float32}
