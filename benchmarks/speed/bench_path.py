"""The networks of 11 alphas: trained together, against one network and against one after another.

The three take turns in one process with one thread, so that whatever else the machine does meets
all of them; a ratio is taken within each turn. What is aimed at is that all 11 together take at
most 3 times the CPU time of one. Prints medians and quartiles, and writes all times with versions
and machine as JSON.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.datasets import load_digits, make_classification

from auxcst_sklearn import CostSensitiveAuxMLP, alpha_path
from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.speed.report import describe_machine, quartiles, ratios
from benchmarks.speed.worker import timed

ALPHAS = [i / 10 for i in range(11)]
LIMIT = 3.0


def draw(name: str) -> tuple[NDArray, NDArray, int]:
    """Examples, labels, and the width of the networks for them."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return (X / 16).astype(np.float32), y, 64
    n_features, width = (100, 256) if name == "2,000 x 100" else (20, 32)
    X, y = make_classification(2000, n_features, n_informative=15, n_classes=10, random_state=0)
    return X.astype(np.float32), y, width


def variants(y: NDArray) -> dict[str, tuple[dict[str, Any], dict[str, NDArray]]]:
    """Parameters of the estimator, and what `fit` gets, for each kind of training."""
    matrix = randomized_proportional_cost_matrix(y, random_state=0)
    factor = np.random.default_rng(0).uniform(0.5, 2, size=(len(y), 1))
    return {
        "default loss": ({"cost_matrix": matrix}, {}),
        "one-sided loss": ({"cost_matrix": matrix, "loss": "one_sided"}, {}),
        "no dropout": ({"cost_matrix": matrix, "dropout": 0.0}, {}),
        "early stopping": ({"cost_matrix": matrix, "early_stopping": True, "patience": 10**6}, {}),
        "costs per sample": ({}, {"cost": matrix[y] * factor}),
    }


def measure(
    estimator: CostSensitiveAuxMLP, X: NDArray, y: NDArray, data: dict[str, NDArray], repeats: int
) -> dict[str, list[dict[str, float]]]:
    """Times of each way of training, in turn, after a first one that does not count."""
    ways = {
        "one": lambda: clone(estimator).fit(X, y, **data),
        "together": lambda: alpha_path(estimator, ALPHAS, X, y, **data),
        "one after another": lambda: [
            clone(estimator).set_params(alpha=alpha).fit(X, y, **data) for alpha in ALPHAS
        ],
    }
    turns = [{name: timed(way) for name, way in ways.items()} for _ in range(repeats + 1)]
    return {name: [turn[name] for turn in turns[1:]] for name in ways}


def main(arguments: list[str] | None = None) -> None:
    parser = make_parser(__doc__, out=RESULTS / "path.json")
    parser.add_argument("--repeats", type=int, default=5, help="turns")
    parser.add_argument("--epochs", type=int, default=10, help="of each network")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)

    result: dict[str, Any] = {
        **describe_machine(),
        **{"repeats": options.repeats, "epochs": options.epochs, "threads": 1, "alphas": ALPHAS},
        **{"limit": LIMIT, "rows": []},
    }
    print(f"{'CPU time':44}{'one, s':>8}{'together / one':>24}{'one after another / one':>28}")
    for name in ("2,000 x 20", "digits", "2,000 x 100"):
        X, y, width = draw(name)
        for variant, (params, data) in variants(y).items():
            if width > 64 and variant != "default loss":  # it takes minutes
                continue
            estimator = CostSensitiveAuxMLP(
                3, width, max_epochs=options.epochs, random_state=0, device="cpu", **params
            )
            times = measure(estimator, X, y, data, options.repeats)
            row = {"data": name, "width": width, "training": variant}
            for way, own in times.items():
                row[way] = {
                    f"{clock}_seconds": quartiles([t[clock] for t in own]) for clock in own[0]
                }
                row[way] |= {f"{c}_ratio": quartiles(ratios(own, times["one"], c)) for c in own[0]}
            result["rows"].append(row)
            print_row(row)
    write_json(options.out, result)


def print_row(row: dict[str, Any]) -> None:
    """Print medians, ratios with their quartiles."""
    title = f"{row['data']}, width {row['width']}, {row['training']}"
    print(f"{title:44}{row['one']['cpu_seconds'][1]:8.2f}", end="")
    for way in ("together", "one after another"):
        low, middle, high = row[way]["cpu_ratio"]
        print(f"{middle:10.2f} ({low:.2f}-{high:.2f})", end="")
    print("  met" if row["together"]["cpu_ratio"][1] <= LIMIT else "  MISSED", flush=True)


if __name__ == "__main__":
    main()
