"""Estimators that are small and quick enough for a test; one place for what "small" means."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from sklearn.base import clone
from torch import nn

from auxcst_sklearn import (
    CostSensitiveAuxCNN,
    CostSensitiveAuxMLP,
    CostSensitiveAuxNet,
    CostSensitiveEnsembleClassifier,
)
from auxcst_sklearn.costs._problem import Problem

QUICK = {"random_state": 0, "device": "cpu"}

# One network that trains to its last epoch, and what a test of its training turns on.
SINGLE = {
    "n_networks": 1,
    "activation": "relu",
    "learning_rate": 3e-3,
    "schedule": "one_cycle",
    "ema_epochs": 0,
    "early_stopping": False,
    "validation_fraction": 0.1,
}


def small_mlp(**parameters):
    defaults = {"depth": 2, "width": 8, "max_epochs": 3, **SINGLE, **QUICK}
    return CostSensitiveAuxMLP(**{**defaults, **parameters})


def small_stack(**parameters):
    """Several networks, each with its fold, as by default."""
    defaults = {"depth": 2, "width": 8, "max_epochs": 3, "n_networks": 3, **QUICK}
    return CostSensitiveAuxMLP(**{**defaults, **parameters})


def small_cnn(**parameters):
    defaults = {"channels": (4, 6), "max_epochs": 2, "n_networks": 1, **QUICK}
    defaults["early_stopping"] = False
    return CostSensitiveAuxCNN(**{**defaults, **parameters})


def small_net(module, **parameters):
    return CostSensitiveAuxNet(module, **{"max_epochs": 2, "n_networks": 1, **QUICK, **parameters})


def table_boosting(**parameters):
    """The gradient boosting of the ensemble, with scikit-learn's defaults."""
    boosting = clone(CostSensitiveEnsembleClassifier().get_params()["boosting"])
    return boosting.set_params(**{"early_stopping": "auto", "max_iter": 100, **parameters})


def dense(*widths, activation=nn.ReLU):
    """Linear layers between these numbers of features, and activations between the layers."""
    layers = [part for pair in pairwise(widths) for part in (nn.Linear(*pair), activation())]
    return nn.Sequential(*layers[:-1])


def training_set(X, label, cost, per_class, weight=None, matrices=None):
    """Rows with costs (K, D) of classes, or (n, D) of rows, that are not checked."""
    n_classes = len(cost) if per_class else (cost if matrices is None else matrices).shape[1]
    decisions = np.arange(cost.shape[1])
    kind = "matrix" if per_class else "vectors" if matrices is None else "matrices"
    costs = cost if matrices is None else matrices
    label = np.asarray(label)
    return Problem(label, np.arange(n_classes), decisions, costs, kind, X=X, weight=weight)
