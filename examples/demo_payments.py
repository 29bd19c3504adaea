"""Decide which payments to stop, and compute how much money that saves.

The payments are simulated; one in thirty is fraud. An alert costs EUR 5, whether it finds fraud or
not; missed fraud costs its amount, which is known when deciding. The table shows the mean cost of a
new payment for the decisions of each method; the figure shows the difference to calibrated boosting
on the same payments, with 95 % intervals.

Run ``python examples/demo_payments.py --help`` for options.
"""

from __future__ import annotations

import argparse
import time
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
from tqdm.auto import tqdm

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitivePoolClassifier,
)
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import cost_difference, mean_cost

ALERT = 5.0
RIVAL = "boosting, calibrated"


def draw_payments(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, whether each payment is fraud, and a cost matrix for each payment."""
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
    cost = binary_cost_matrices(
        fp_cost=ALERT, tp_cost=ALERT, fn_cost=np.exp(log_amount), classes=[0, 1], pos_label=1
    )
    return np.column_stack([X, log_amount]), y, cost


def fit_all(X: np.ndarray, y: np.ndarray, cost: np.ndarray, seed: int) -> tuple[dict, dict]:
    """Return the fitted models, and the fit time of each in seconds."""
    boosting = HistGradientBoostingClassifier(early_stopping=True, random_state=seed)
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    models = {
        "pool": CostSensitivePoolClassifier(random_state=seed),
        "network": CostSensitiveAuxMLP(random_state=seed),
        RIVAL: BayesMinimumRiskClassifier(boosting, calibration="isotonic"),
        "boosting": BayesMinimumRiskClassifier(boosting),
        "logistic regression": BayesMinimumRiskClassifier(logistic),
    }
    seconds = {}
    for name, model in tqdm(models.items(), desc="fit", unit="model"):
        start = time.perf_counter()
        model.fit(X, y, cost=cost)
        seconds[name] = time.perf_counter() - start
    return models, seconds


def decide(models: dict, X: np.ndarray, cost: np.ndarray) -> dict[str, np.ndarray]:
    """Return the decisions of all models with the costs of each payment, and of two without."""
    decisions = {name: model.predict(X, cost=cost) for name, model in models.items()}
    decisions["boosting, most probable"] = models[RIVAL].predict_proba(X).argmax(axis=1)
    decisions["no alert"] = np.zeros(len(X), dtype=int)
    return decisions


def print_table(y: np.ndarray, cost: np.ndarray, decisions: dict, seconds: dict) -> None:
    """One line per method."""
    print(f"\n{'method':26s}{'cost of a payment':>18s}{'alerts':>9s}{'found':>8s}{'seconds':>9s}")
    for name, decision in decisions.items():
        print(
            f"{name:26s}{mean_cost(y, decision, cost=cost):18.3f}{decision.mean():9.1%}"
            f"{decision[y == 1].mean():8.1%}{seconds.get(name, 0):9.1f}"
        )


def plot(y: np.ndarray, cost: np.ndarray, decisions: dict, path: Path) -> None:
    """Cost of a payment under each method minus that under the rival, on the same payments."""
    others = [name for name in decisions if name != RIVAL]
    found = [cost_difference(y, decisions[name], decisions[RIVAL], cost=cost) for name in others]
    mean, low, high = np.array(found).T
    with plt.rc_context({"font.size": 13}):
        figure, ax = plt.subplots(figsize=(9, 3.6), layout="constrained")
        colors = np.where(mean < 0, "#0072B2", "#D55E00")
        ax.barh(others, mean, height=0.6, color=colors, alpha=0.75)
        ax.errorbar(mean, others, xerr=[mean - low, high - mean], fmt="none", color="k", capsize=4)
        for name, end, difference in zip(others, np.maximum(high, 0), mean):
            text = f"{difference:+.2f}"
            ax.annotate(text, (end, name), (8, 0), textcoords="offset points", va="center")
        ax.axvline(0, color="k", linewidth=1)
        ax.invert_yaxis()
        ax.margins(x=0.12)
        ax.spines[["top", "right"]].set_visible(False)
        theirs = mean_cost(y, decisions[RIVAL], cost=cost)
        figure.suptitle(f"Simulated payments: cost minus that of calibrated boosting, {theirs:.2f}")
        ax.set_xlabel("EUR a payment (95 % intervals, paired)")
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

    X, y, cost = draw_payments(options.n_train + options.n_test, options.seed)
    X, X_test, y, y_test, cost, cost_test = train_test_split(
        X, y, cost, train_size=options.n_train, stratify=y, random_state=options.seed
    )
    models, seconds = fit_all(X, y, cost, options.seed)
    decisions = decide(models, X_test, cost_test)

    print_table(y_test, cost_test, decisions, seconds)
    for name in ("pool", "network", "logistic regression"):
        difference = cost_difference(y_test, decisions[name], decisions[RIVAL], cost=cost_test)
        print(
            f"{name} minus calibrated boosting: {difference.mean:+.3f} a payment "
            f"(95 % interval {difference.low:+.3f} to {difference.high:+.3f})"
        )
    options.out.mkdir(parents=True, exist_ok=True)
    plot(y_test, cost_test, decisions, options.out / "demo_payments.png")
    print(
        f"Figure: {options.out / 'demo_payments.png'}; {time.perf_counter() - start:.0f} seconds."
    )


if __name__ == "__main__":
    main()
