"""Costs that reach scikit-learn's tools in two ways, and what the tools should find, by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import make_cost_scorer
from tests.factories import SINGLE

MATRIX = np.array([[0.0, 1, 5], [3, 0.2, 1], [2, 7, 0]])
NAMES = np.array(["ant", "bee", "cat"])
FOLDS = StratifiedKFold(3)
GRID = {"alpha": [0.0, 0.5], "learning_rate": [1e-3, 0.1]}
RAISE = {"error_score": "raise"}


def cost_of(X):
    """Costs that give their row away: a function of the last feature."""
    return np.abs(2 * X[:, -1:] - np.array([-1.0, 0.0, 1.0])) * [1.0, 2.0, 3.0] + 0.1


class RowCheckingMLP(CostSensitiveAuxMLP):
    """Refuses costs that belong to other rows than those of X."""

    def fit(self, X, y, sample_weight=None, *, cost=None):
        if self.cost_matrix is None:
            np.testing.assert_allclose(cost, cost_of(X), rtol=1e-12)
        return super().fit(X, y, sample_weight, cost=cost)


@dataclass
class Setting:
    """A problem, the way its costs reach an estimator, and the computation by hand."""

    X: np.ndarray
    y: np.ndarray
    cost: np.ndarray
    scorer: Any
    params: dict = field(default_factory=dict)
    cost_matrix: np.ndarray | None = None

    def mlp(self, kind=CostSensitiveAuxMLP, **parameters):
        """A small network; `kind=RowCheckingMLP` where the tool leaves the features as they are."""
        defaults = {**SINGLE, "depth": 2, "width": 8, "max_epochs": 3, "learning_rate": 0.02}
        quick = {"loss": "one_sided", "dropout": 0.0, "schedule": "constant", "batch_size": 8}
        fixed = {"cost_matrix": self.cost_matrix, "random_state": 0, "device": "cpu"}
        return kind(**{**defaults, **quick, **fixed, **parameters})

    @property
    def how(self):
        return {"cv": FOLDS, "scoring": self.scorer, **RAISE}

    def fit(self, model, rows=slice(None), method="fit"):
        params = {name: value[rows] for name, value in self.params.items()}
        return getattr(model, method)(self.X[rows], self.y[rows], **params)

    def score(self, labels, rows=slice(None)):
        columns = np.asarray(labels).astype(int)
        return -self.cost[rows][np.arange(len(columns)), columns].mean()

    def fold_scores(self, model, splits=None):
        splits = FOLDS.split(self.X, self.y) if splits is None else splits
        return [
            self.score(self.fit(clone(model), train).predict(self.X[test]), test)
            for train, test in splits
        ]


def by_matrix(setting, matrix):
    costs = {"cost": matrix[setting.y], "cost_matrix": matrix, "params": {}}
    return replace(setting, scorer=make_cost_scorer(cost_matrix=matrix), **costs)
