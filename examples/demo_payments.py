"""Decide which payments to stop, and compute how much money that saves.

The payments are simulated; one in thirty is fraud. An alert costs EUR 5, whether it finds fraud or
not; missed fraud costs its amount, which is known when deciding. The table shows the mean cost of a
new payment for the decisions of each method, and with the figure the difference to calibrated
boosting on the same payments, with 95 % intervals; "always 0" raises no alert.

Run ``python examples/demo_payments.py --help`` for options.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("agg")  # draws to a file, without a display
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitiveEnsembleClassifier,
)
from auxcst_sklearn.costs import LabelledCosts, binary_cost_matrices
from auxcst_sklearn.metrics import compare_costs
from auxcst_sklearn.plotting import CostComparisonDisplay

ALERT = 5.0
RIVAL = "boosting, calibrated"


def costs(X: np.ndarray) -> LabelledCosts:
    """A cost matrix for each payment: the last column is the logarithm of the amount."""
    missed = np.exp(X[:, -1])
    return binary_cost_matrices(
        fp_cost=ALERT, tp_cost=ALERT, fn_cost=missed, classes=[0, 1], pos_label=1
    )


def draw_payments(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and whether each payment is fraud."""
    X, y = make_classification(
        n,
        n_features=20,
        n_informative=6,
        n_redundant=4,
        weights=[0.97],
        flip_y=0,
        class_sep=0.5,
        random_state=seed,
    )
    log_amount = np.random.RandomState(seed).normal(4.0, 1.2, size=n)
    return np.column_stack([X, log_amount]), y


def models(seed: int) -> dict:
    """The models to compare; all of them decide by the costs of each payment."""
    boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=seed)
    return {
        "ensemble": CostSensitiveEnsembleClassifier(random_state=seed),
        "network": CostSensitiveAuxMLP(random_state=seed),
        RIVAL: BayesMinimumRiskClassifier(boosting, calibration="isotonic"),
        "boosting": boosting,
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
    }


def print_table(table: Mapping) -> None:
    """One line per method."""
    print(
        f"{'method':22s}{'EUR a payment':>14s}{'minus ' + RIVAL:>35s}{'alerts':>9s}{'seconds':>9s}"
    )
    columns = ("cost", "difference", "low", "high", "share of 1", "fit_seconds")
    for name, cost, difference, low, high, alerts, seconds in zip(
        table.index, *(table[column] for column in columns)
    ):
        interval = "" if name == RIVAL else f"{difference:+.3f} ({low:+.3f} to {high:+.3f})"
        print(f"{name:22s}{cost:14.3f}{interval:>35s}{alerts:9.1%}{seconds:9.1f}")


def plot(table: Mapping, path: Path) -> None:
    """Cost of a payment under each method minus that under the rival, on the same payments."""
    rows = [name for name in table.index if name != "always 1"]  # which costs far more
    with plt.rc_context({"font.size": 13}):
        figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
        CostComparisonDisplay.from_comparison(table, ax=ax, rows=rows, unit="EUR")
        # Without pandas the table is a mapping of columns.
        cost = np.asarray(table["cost"])[list(table.index).index(RIVAL)]
        label = f"cost minus cost of calibrated boosting (EUR {cost:.2f}), 95 % intervals"
        ax.set_xlabel(label)
        figure.savefig(path, dpi=110)
        plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the figure")
    parser.add_argument("--seed", type=int, default=0, help="seed of payments and networks")
    parser.add_argument("--n-train", type=int, default=8000, help="payments to learn from")
    parser.add_argument("--n-test", type=int, default=20000, help="payments to decide on")
    options = parser.parse_args()
    start = time.perf_counter()

    X, y = draw_payments(options.n_train + options.n_test, options.seed)
    fold = train_test_split(
        np.arange(len(y)), train_size=options.n_train, stratify=y, random_state=options.seed
    )
    table = compare_costs(models(options.seed), X, y, cost_matrix=costs, cv=[fold], baseline=RIVAL)

    print_table(table)
    options.out.mkdir(parents=True, exist_ok=True)
    plot(table, options.out / "demo_payments.png")
    print(
        f"Figure: {options.out / 'demo_payments.png'}; {time.perf_counter() - start:.0f} seconds."
    )


if __name__ == "__main__":
    main()
