"""PAPER: the settings of the paper, as parameters of CostSensitiveAuxMLP."""

from __future__ import annotations

from typing import Any

PAPER: dict[str, Any] = {
    "alpha": 0.2,
    "loss": "one_sided",
    "activation": "relu",
    "dropout": 0.0,
    "learn_scales": False,
    "standardize": False,
    "n_bins": 0,
    "n_networks": 1,
    "learning_rate": 0.1,
    "schedule": "constant",
    "averaging": 0.0,
    "weight_decay": 0.0,
    "optimizer": "sgd",
    "early_stopping": False,
    "temperature": 1.0,
}
"""Parameters that make `CostSensitiveAuxMLP(**PAPER)` the network of Chung, Yang and Lin.

One network of ReLU layers learns costs with the one-sided loss and auxiliary heads of weight 0.2,
by plain stochastic gradient descent at a constant rate, from unscaled inputs, for all of
`max_epochs`. The paper states neither optimizer nor learning rate: SGD is used in the code its
authors published for CSDNN, and the rate suits pixels in [0, 1].
"""
