import numpy as np
import pytest
from sklearn.datasets import load_digits, make_classification

from auxcst_sklearn import CostSensitiveAuxMLP
from tests.factories import small_cnn, small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(
        300, n_features=6, n_informative=5, n_redundant=0, n_classes=3, random_state=0
    )


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
