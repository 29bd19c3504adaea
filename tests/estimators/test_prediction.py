import warnings

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.metrics import accuracy_score

from tests.factories import small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(200, n_classes=3, n_informative=5, random_state=0)


@pytest.fixture(scope="module")
def binary():
    return make_classification(200, n_classes=2, random_state=0)


def test_predict_takes_the_smallest_estimated_cost(data):
    X, y = data
    labels = np.array(["x", "y", "z"])
    estimator = small_mlp(cost_matrix=MATRIX).fit(X, labels[y])

    cost = estimator.predict_cost(X)

    assert cost.shape == (200, 3)
    np.testing.assert_array_equal(estimator.predict(X), labels[cost.argmin(axis=1)])


def test_decision_function_of_two_classes(binary):
    X, y = binary
    estimator = small_mlp(loss="softmin", cost_matrix=[[0, 1], [3, 0]]).fit(X, y)

    cost = estimator.predict_cost(X)

    decision = estimator.decision_function(X)
    np.testing.assert_array_equal(decision, cost[:, 0] - cost[:, 1])
    np.testing.assert_array_equal(estimator.predict(X), (decision > 0).astype(int))


def test_stages_are_the_heads_from_first_to_output(data):
    X, y = data
    estimator = small_mlp(depth=3, loss="one_sided", cost_matrix=MATRIX).fit(X, y)
    module = estimator.net_.module_
    scale = estimator.net_.statistics

    stages = list(estimator.staged_predict_cost(X))

    assert len(stages) == 3
    np.testing.assert_array_equal(stages[-1], estimator.predict_cost(X))
    with torch.no_grad():
        x = module.inputs(torch.from_numpy(X.astype(np.float32))[None])
        x = module.hidden["hidden1"](x.mT)
        first = module.heads["hidden1"](x)[0].double().numpy() * scale.unit + scale.offset
    np.testing.assert_allclose(stages[0], first, rtol=1e-5, atol=1e-6)
    for cost, labels in zip(stages, estimator.staged_predict(X)):
        np.testing.assert_array_equal(labels, cost.argmin(axis=1))


def test_estimates_come_in_the_currency_of_the_costs(data):
    X, y = data
    euro = small_mlp(cost_matrix=MATRIX).fit(X, y).predict_cost(X)
    cents_and_fee = small_mlp(cost_matrix=100 * MATRIX + 7).fit(X, y).predict_cost(X)

    np.testing.assert_allclose(cents_and_fee, 100 * euro + 7, rtol=1e-4, atol=1e-3)


def test_regression_estimates_the_expected_cost():
    """Where X says nothing, the best squared-loss estimate is the mean cost vector."""
    random = np.random.RandomState(0)
    cost = random.uniform(10, 20, size=(500, 4))
    X, y = np.zeros((500, 1)), random.randint(4, size=500)

    estimator = small_mlp(loss="squared", max_epochs=30, learning_rate=0.02).fit(X, y, cost=cost)

    np.testing.assert_allclose(estimator.predict_cost(X[:1])[0], cost.mean(axis=0), rtol=0.03)


# ----------------------------------------------------------------------- score


def test_score_is_minus_the_mean_cost_or_the_accuracy(data):
    X, y = data
    cost, weight = np.random.RandomState(0).uniform(size=(2, 200, 3))
    weight = weight[:, 0]
    by_matrix, blind = small_mlp(cost_matrix=MATRIX).fit(X, y), small_mlp().fit(X, y)
    y_pred = by_matrix.predict(X)

    assert by_matrix.score(X, y) == pytest.approx(-MATRIX[y, y_pred].mean())
    weighted = np.average(MATRIX[y, y_pred], weights=weight)
    assert by_matrix.score(X, y, sample_weight=weight) == pytest.approx(-weighted)
    paid = cost[np.arange(200), blind.predict(X)].mean()
    assert blind.score(X, y, cost=cost) == pytest.approx(-paid)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert blind.score(X, y) == accuracy_score(y, blind.predict(X))


def test_score_says_when_it_misses_the_costs_of_the_fit(data):
    X, y = data
    estimator = small_mlp().fit(X, y, cost=MATRIX[y])

    with pytest.warns(UserWarning, match="none reached score, which returns the accuracy"):
        assert estimator.score(X, y) == accuracy_score(y, estimator.predict(X))


def test_score_of_a_part_that_lacks_a_class(data):
    X, y = data
    estimator = small_mlp(cost_matrix=MATRIX).fit(X, y)
    part = y != 1

    found = estimator.score(X[part], y[part])

    assert found == pytest.approx(-MATRIX[y[part], estimator.predict(X[part])].mean())
