"""The settings of `selection_setting` for the tests of this folder."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sklearn

from auxcst_sklearn.metrics import cost_scorer
from tests.contract.cost_problem import MATRIX, Setting, by_matrix, cost_of


@pytest.fixture
def per_sample():
    """Costs per sample; the test says whether metadata routing is on."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(72, 4))
    cost = cost_of(X)
    y = np.where(rng.random(72) < 0.8, cost.argmin(axis=1), rng.integers(0, 3, size=72))
    return Setting(X, y, cost, cost_scorer, {"cost": cost})


@pytest.fixture(params=["cost", "cost_matrix"])
def setting(request, per_sample):
    """Per-sample costs and routing, or a cost matrix and no routing."""
    with sklearn.config_context(enable_metadata_routing=request.param == "cost"):
        yield per_sample if request.param == "cost" else by_matrix(per_sample, MATRIX)


@pytest.fixture
def binary(setting):
    """The setting with two classes."""
    setting = replace(setting, y=(setting.y > 0).astype(int))
    if setting.cost_matrix is not None:
        return by_matrix(setting, np.array([[0.0, 1], [6, 0.5]]))
    return replace(setting, cost=setting.cost[:, :2], params={"cost": setting.cost[:, :2]})
