"""A small problem, and small networks fitted to it."""

from __future__ import annotations

from functools import partial

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import make_cost_scorer

matplotlib.use("Agg")

COST_MATRIX = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def data():
    return make_classification(
        90, n_features=6, n_informative=4, n_classes=3, flip_y=0.2, random_state=0
    )


@pytest.fixture(scope="session")
def network():
    """Make a network that is small and quick."""
    return partial(
        CostSensitiveAuxMLP, width=4, max_epochs=2, random_state=0, cost_matrix=COST_MATRIX
    )


@pytest.fixture(scope="session")
def search(data, network):
    grid = {"costsensitiveauxmlp__depth": [1, 2]}
    pipeline = make_pipeline(StandardScaler(), network())
    return GridSearchCV(
        pipeline, grid, scoring=make_cost_scorer(cost_matrix=COST_MATRIX), cv=3
    ).fit(*data)


@pytest.fixture(scope="session")
def fitted(data, network):
    return network(depth=3, max_epochs=4, early_stopping=True, patience=9).fit(*data)
