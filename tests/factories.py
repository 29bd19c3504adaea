"""Estimators that are small and quick enough for a test; one place for what "small" means."""

from __future__ import annotations

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP, CostSensitiveAuxNet

QUICK = {"random_state": 0, "device": "cpu"}


def small_mlp(**parameters):
    defaults = {"depth": 2, "width": 8, "max_epochs": 3, "n_networks": 2, **QUICK}
    return CostSensitiveAuxMLP(**{**defaults, **parameters})


def small_cnn(**parameters):
    defaults = {"channels": (4, 6), "width": 16, "max_epochs": 2, **QUICK}
    return CostSensitiveAuxCNN(**{**defaults, **parameters})


def small_net(module, **parameters):
    return CostSensitiveAuxNet(module, **{"max_epochs": 2, **QUICK, **parameters})
