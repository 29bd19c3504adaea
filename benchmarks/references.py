"""Outputs of small fits of every kind, to be compared before and after a change of structure.

``python -m benchmarks.references write FILE`` stores them, ``check FILE`` compares. The stored
outputs are of the commit that last changed the file; on another processor trainings differ by more.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from auxcst_sklearn import (
    PAPER,
    BayesMinimumRiskClassifier,
    CostSensitiveAuxCNN,
    CostSensitiveAuxMLP,
    CostSensitiveAuxNet,
    CostSensitiveEnsembleClassifier,
    CSAEPretrainedMLP,
)

HERE = Path(__file__).parent
ROWS, CLASSES = 150, 3
rng = np.random.default_rng(0)
X = rng.normal(size=(ROWS, 5))
y = np.argmax(X[:, :CLASSES] + 0.5 * rng.normal(size=(ROWS, CLASSES)), axis=1)
MATRIX = np.array([[0.0, 1, 5], [3, 0, 1], [2, 7, 0]])
COST = rng.uniform(0, 3, (ROWS, CLASSES))
COST[np.arange(ROWS), y] = 0
MATRICES = rng.uniform(1, 3, (ROWS, 1, 1)) * MATRIX
WEIGHT = rng.uniform(0.5, 2, ROWS)
GROUPS = rng.integers(0, 30, ROWS)
GAPS = np.where(rng.uniform(size=X.shape) < 0.1, np.nan, X)
GAPS[:, 4] = rng.integers(0, 6, ROWS)
SKEWED = np.hstack([np.exp(2 * X[:, :2]), X[:, 2:]])
IMAGES = rng.normal(size=(ROWS, 1, 8, 8)).astype(np.float32)
IMAGES[np.arange(ROWS), 0, y] += 1

SMALL = {"depth": 3, "width": 16, "max_epochs": 4, "random_state": 0, "device": "cpu"}
SINGLE = {"n_networks": 1, "early_stopping": False, "schedule": "one_cycle", "ema_epochs": 0}


def small_module(n_features: int = 5, n_outputs: int = CLASSES) -> torch.nn.Module:
    """A module of the user's."""
    return torch.nn.Sequential(
        torch.nn.Linear(5, 16), torch.nn.ReLU(), torch.nn.Dropout(0.2), torch.nn.Linear(16, 16),
        torch.nn.ReLU(), torch.nn.Linear(16, CLASSES),
    )  # fmt: skip


def mlp(**parameters: Any) -> CostSensitiveAuxMLP:
    """A small stack."""
    return CostSensitiveAuxMLP(**{**SMALL, **parameters})


def outputs(model: Any, rows: Any, *, fitted: Any = None, **known: Any) -> dict[str, Any]:
    """What a fitted estimator computes, and the losses of its epochs."""
    found = {"cost": model.predict_cost(rows, **known), "predict": model.predict(rows, **known)}
    if hasattr(model, "predict_proba"):
        found["proba"] = model.predict_proba(rows)
    if getattr(model, "history_", None):
        found["loss"] = [record["train_loss"] for record in model.history_]
    return {name: np.asarray(value).tolist() for name, value in found.items()}


def cases() -> dict[str, Callable[[], dict[str, Any]]]:
    """Each fit by its name; those of one network begin with "single"."""
    losses = ["bayes_risk", "cross_entropy", "one_sided", "smooth_one_sided", "softmin", "squared"]
    some, found = X[:7], {}
    for kind, own in (("stack", {}), ("single", SINGLE)):
        for loss in losses:
            found[f"{kind} {loss} vectors"] = lambda own=own, loss=loss: outputs(
                mlp(loss=loss, **own).fit(X, y, cost=COST), some
            )
            found[f"{kind} {loss} matrix"] = lambda own=own, loss=loss: outputs(
                mlp(loss=loss, cost_matrix=MATRIX, **own).fit(X, y), some
            )
        found[f"{kind} matrices"] = lambda own=own: outputs(
            mlp(**own).fit(X, y, cost=MATRICES), some, cost=MATRICES[:7]
        )
        found[f"{kind} weights groups"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, **own).fit(X, y, sample_weight=WEIGHT, groups=GROUPS), some
        )
        found[f"{kind} gaps categories"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, categorical_features=[4], **own).fit(GAPS, y), GAPS[:7]
        )
        found[f"{kind} skewed"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, **own).fit(SKEWED, y), SKEWED[:7]
        )
        found[f"{kind} alphas dropout"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, alpha=[0.5, 0], dropout=0.3, **own).fit(X, y), some
        )
        found[f"{kind} aux loss"] = lambda own=own: outputs(
            mlp(aux_loss="one_sided", cost_matrix=MATRIX, **own).fit(X, y), some
        )
        found[f"{kind} validation"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, **{**own, "early_stopping": True}).fit(
                X[:100], y[:100], X_val=X[100:], y_val=y[100:]
            ), some,
        )  # fmt: skip
        found[f"{kind} stream"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, **own).partial_fit(X[:80], y[:80], classes=[0, 1, 2])
            .partial_fit(X[80:], y[80:]), some,
        )  # fmt: skip
        found[f"{kind} warm start"] = lambda own=own: outputs(
            mlp(cost_matrix=MATRIX, warm_start=True, **own).fit(X, y).fit(X, y), some
        )
        n = {"n_networks": 1} if kind == "single" else {}
        found[f"{kind} cnn"] = lambda n=n: outputs(
            CostSensitiveAuxCNN(
                (4, 6), max_epochs=2, cost_matrix=MATRIX, random_state=0, **n
            ).fit(IMAGES, y), IMAGES[:7],
        )  # fmt: skip
        n = {"n_networks": 3} if kind == "stack" else {}
        found[f"{kind} module"] = lambda n=n: outputs(
            CostSensitiveAuxNet(
                small_module, max_epochs=3, cost_matrix=MATRIX, random_state=0, **n
            ).fit(X.astype(np.float32), y), some.astype(np.float32),
        )  # fmt: skip
    found["single paper"] = lambda: outputs(
        CostSensitiveAuxMLP(
            **{**PAPER, **SMALL, "learning_rate": 0.1, "cost_matrix": MATRIX}
        ).fit(X, y), some,
    )  # fmt: skip
    found["single csae"] = lambda: outputs(
        CSAEPretrainedMLP(
            2, 8, max_epochs=2, pretrain_epochs=2, cost_matrix=MATRIX, random_state=0
        ).fit(X, y), some,
    )  # fmt: skip
    found["rule"] = lambda: outputs(BayesMinimumRiskClassifier(cost_matrix=MATRIX).fit(X, y), some)
    for name, known in (("", {}), (" vectors", {"cost": COST}), (" matrices", {"cost": MATRICES})):
        predicted = {"cost": MATRICES[:7]} if name == " matrices" else {}
        found[f"ensemble{name}"] = lambda known=known, predicted=predicted: outputs(
            CostSensitiveEnsembleClassifier(
                [("network", mlp()), ("other", mlp(depth=1))], random_state=0,
                cost_matrix=None if known else MATRIX,
            ).fit(X, y, **known), some, **predicted,
        )  # fmt: skip
    found["ensemble default"] = lambda: outputs(
        CostSensitiveEnsembleClassifier(cost_matrix=MATRIX, random_state=0).fit(X, y), some
    )
    return found


def compare(found: dict[str, Any], expected: dict[str, Any]) -> float:
    """The largest difference between two outputs; infinite for other names or shapes."""
    if found.keys() != expected.keys():
        return float("inf")
    largest = 0.0
    for name, value in expected.items():
        one, other = np.asarray(found[name], float), np.asarray(value, float)
        if one.shape != other.shape:
            return float("inf")
        largest = max(largest, float(np.abs(one - other).max()))
    return largest


def main() -> None:
    """Write or check reference outputs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument(
        "file", nargs="?", type=Path, default=HERE / "results" / "references" / "today.json"
    )
    parser.add_argument("--only", default="", help="fits whose name contains this")
    parser.add_argument(
        "--tolerance", type=float, default=1e-6, help="of fits of stacks and ensembles"
    )
    parser.add_argument("--of-single", type=float, default=1e-5, help="the same for one network")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    fits = {name: fit for name, fit in cases().items() if arguments.only in name}
    stored = {} if arguments.action == "write" else json.loads(arguments.file.read_text())
    failed = 0
    for name, fit in fits.items():
        try:
            result = fit()
        except Exception as error:  # a fit that fails is a difference, too
            print(f"FAIL {name}: {type(error).__name__}: {error}")
            failed += 1
            continue
        if arguments.action == "write":
            stored[name] = result
            continue
        difference = compare(result, stored[name])
        tolerance = arguments.of_single if name.startswith("single") else arguments.tolerance
        if not difference <= tolerance:
            failed += 1
        print(f"{'ok  ' if difference <= tolerance else 'DIFF'} {name}: {difference:.3g}")
    if arguments.action == "write":
        arguments.file.write_text(json.dumps(stored) + "\n")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
