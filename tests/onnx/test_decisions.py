"""Files that decide among other decisions than the classes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.onnx import to_onnx
from tests.factories import small_mlp, small_stack
from tests.onnx.files import assert_agrees, run

X = np.random.default_rng(0).normal(size=(200, 4))
Y = np.array(["ant", "bee", "cat"])[np.digitize(X[:, 0], [-0.5, 0.5])]
COSTS = pd.DataFrame(
    [[0.0, 2, 0.9, 0.5, 4], [3, 0, 0.2, 0.9, 1], [8, 1, 0.6, 0.3, 0]],
    ["ant", "bee", "cat"],
    ["ant", "bee", "refer", "hold", "cat"],
)
MODELS = {
    "network": small_mlp,
    "one_sided": lambda **more: small_mlp(loss="one_sided", **more),
    "rule": lambda **more: BayesMinimumRiskClassifier(LogisticRegression(), **more),
    "ensemble": lambda **more: CostSensitiveEnsembleClassifier(
        [("logistic", LogisticRegression()), ("network", small_stack(n_networks=2))],
        cv=2,
        random_state=0,
        **more,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MODELS)
def test_costs_and_index_are_of_decisions(kind):
    model = MODELS[kind](cost_matrix=COSTS).fit(X, Y)

    assert_agrees(model, X, to_onnx(model, X))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["network", "rule"])
def test_matrices_of_rows_have_a_column_for_each_decision(kind):
    C = np.random.default_rng(1).uniform(size=(200, 3, 2))
    model = MODELS[kind](decisions=["refer", "hold"]).fit(X, Y, cost=C)

    file = to_onnx(model, X)
    assert_agrees(model, X, file, cost=C, cost_matrices=C)
    found = run(file, X, cost_matrices=C[:1])["cost"]  # one matrix for all rows
    np.testing.assert_allclose(found, model.predict_cost(X, cost=C[0]), rtol=1e-5)


def test_a_pipeline_decides_by_its_last_step():
    model = make_pipeline(StandardScaler(), MODELS["rule"](cost_matrix=COSTS)).fit(X, Y)

    assert_agrees(model, X, to_onnx(model, X))
