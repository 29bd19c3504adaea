"""A warning points at the user's line, however deep in the package it arises."""

import warnings

import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import savings_score

X, Y = [[0.0], [1.0], [2.0], [3.0]] * 4, [0, 1, 0, 1] * 4
# The true class costs most, which looks like a transposed matrix.
M = [[2, 1], [0, 1]]
MLP = CostSensitiveAuxMLP(cost_matrix=M, max_epochs=1, width=2)

CALLS = {
    "fit": lambda: MLP.fit(X, Y),
    "partial_fit": lambda: MLP.partial_fit(X, Y, classes=[0, 1]),
    "pipeline": lambda: make_pipeline(MLP).fit(X, Y),
    "search": lambda: GridSearchCV(MLP, {"alpha": [0]}, cv=2).fit(X, Y),
    "rule": lambda: BayesMinimumRiskClassifier(cost_matrix=M).fit(X, Y),
    "metric": lambda: savings_score(Y, Y, cost_matrix=[[0, 0], [0, 0]]),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_warning_points_at_the_line_of_the_user(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert caught
    assert {warning.filename for warning in caught} == {__file__}
