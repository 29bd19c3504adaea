"""PAPER: the recipe of the paper, as parameters of CostSensitiveAuxMLP."""

from __future__ import annotations

from typing import Any

PAPER: dict[str, Any] = {
    "alpha": 0.2,
    "loss": "one_sided",
    "activation": "relu",
    "dropout": 0.0,
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
"""What makes `CostSensitiveAuxMLP(**PAPER)` the network of Chung, Yang and Lin, and nothing else.

One network of ReLU layers learns costs by the one-sided loss, with auxiliary heads of weight 0.2,
by plain stochastic gradient descent at a constant rate, from inputs as they are, for all of
`max_epochs`. The paper names neither optimizer nor rate: SGD is that of the code its authors
published for CSDNN, and the rate is one that suits pixels in [0, 1].
"""
