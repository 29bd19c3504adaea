"""Recipes of training that several benchmarks share."""

from __future__ import annotations

from typing import Any

# One network, trained for a fixed number of epochs under a falling rate, without held-out rows.
ONE_NETWORK: dict[str, Any] = {
    "width": 256,
    "activation": "relu",
    "dropout": 0.3,
    "n_networks": 1,
    "max_epochs": 50,
    "learning_rate": 3e-3,
    "schedule": "one_cycle",
    "ema_epochs": 0,
    "early_stopping": False,
}
