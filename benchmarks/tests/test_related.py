"""What MetaCost, threshold-moving and weights teach a network, with a model that can be checked."""

import numpy as np
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix

from auxcst_sklearn.metrics import mean_cost
from benchmarks.paper.related import RELATED

COSTS = np.array([[0, 1, 1], [9, 0, 1], [1, 2, 0]])
X, y = make_blobs([300, 200, 100], centers=np.eye(3) * 2, random_state=0)
MODEL = LogisticRegression(random_state=0)
BLIND = clone(MODEL).fit(X, y)


def fitted(name):
    return RELATED[name](MODEL, COSTS).fit(X, y)


def test_each_is_cheaper_than_the_blind_model():
    costs = {name: mean_cost(y, fitted(name).predict(X), cost_matrix=COSTS) for name in RELATED}
    assert max(costs.values()) < mean_cost(y, BLIND.predict(X), cost_matrix=COSTS)


def test_meta_cost_learns_the_decisions_of_least_expected_cost():
    cheapest = (BLIND.predict_proba(X) @ COSTS).argmin(axis=1)
    agree = confusion_matrix(cheapest, fitted("MetaCost").predict(X), normalize="all").trace()
    assert agree > 0.93 > (cheapest == BLIND.predict(X)).mean()


def test_threshold_moving_multiplies_by_sums_of_costs():
    moved = (BLIND.predict_proba(X) * [2, 10, 3]).argmax(axis=1)
    np.testing.assert_array_equal(fitted("Zhou-Liu").predict(X), moved)


def test_weights_are_expected_costs_of_a_mistake():
    """Of a mistake on class 1, three of four predict class 0: 3/4 of 9 and 1/4 of 1."""
    weight = np.array([1, 7, 1.4])[y]
    expected = clone(MODEL).fit(X, y, sample_weight=weight / weight.mean())
    np.testing.assert_allclose(fitted("Kukar").network_.coef_, expected.coef_)
