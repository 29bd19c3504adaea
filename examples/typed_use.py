"""Typed use of the package: mypy checks this file in strict mode, and a test runs it."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.datasets import to_memmap
from auxcst_sklearn.metrics import cost_scorer


def train(X: NDArray[Any], y: NDArray[np.int64], cost: NDArray[np.float64]) -> CostSensitiveAuxMLP:
    """Fit a small network; `fit` returns the type of the estimator."""
    return CostSensitiveAuxMLP(depth=1, width=16, max_epochs=20, random_state=0).fit(
        X, y, cost=cost
    )


def main() -> None:
    """Train from a file that stays on the disk, and pay for the decisions."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(1000, 4))
    y = (table[:, 0] > 0).astype(np.int64)
    cost = np.array([[0.0, 1.0], [5.0, 0.0]])[y]
    with TemporaryDirectory() as folder:
        X: np.memmap[Any, np.dtype[Any]] = to_memmap(table, Path(folder) / "table.npy")
        model = train(X, y, cost)
        label: NDArray[Any] = model.predict(X)
        paid: float = -cost_scorer(model, X, y, cost=cost)
        print(f"{paid:.2f} a row, {(label == y).mean():.0%} right, {model.n_networks} networks")


if __name__ == "__main__":
    main()
