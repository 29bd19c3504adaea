"""Tune a cost-sensitive network on handwritten digits, and see what it saves.

Every mistake on a digit has a price of its own, drawn in proportion to how rare the digit is
(randomized proportional costs). A grid search picks the weight of the auxiliary heads, the depth
and the loss by cross-validated cost; the table compares the bill on unseen digits with that of
the same network trained blind to costs, alone and with a Bayes decision, and of
logistic regression with a Bayes decision.

Run ``python examples/demo_digits.py --help`` for options.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import sklearn
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.costs import cost_vectors, randomized_proportional_cost_matrix
from auxcst_sklearn.metrics import cost_scorer, mean_cost, savings_score
from auxcst_sklearn.plotting import CostCurveDisplay

LOSSES = ["bayes_risk", "one_sided"]
# With one hidden layer there is no auxiliary head, so alpha means nothing.
GRID = [
    {"costsensitiveauxmlp__depth": [1], "costsensitiveauxmlp__loss": LOSSES},
    {
        "costsensitiveauxmlp__depth": [2, 3],
        "costsensitiveauxmlp__alpha": [0.0, 0.3, 1.0],
        "costsensitiveauxmlp__loss": LOSSES,
    },
]


def tune(X, y, cost, *, seed: int, n_jobs: int, verbose: int) -> GridSearchCV:
    """Search depth, alpha and loss by cross-validated cost; each row's costs follow the row."""
    network = CostSensitiveAuxMLP(width=128, max_epochs=40, random_state=seed)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), network),
        GRID,
        scoring=cost_scorer,
        cv=5,
        n_jobs=n_jobs,
        error_score="raise",
        verbose=verbose,
    )
    return search.fit(X, y, cost=cost)


def compare(seed: int, *, n_jobs: int = 2, verbose: int = 0) -> tuple[GridSearchCV, list[dict]]:
    """Tune on one half of the digits, and bill all methods on the other half."""
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, stratify=y, random_state=seed
    )
    cost_matrix = randomized_proportional_cost_matrix(y_train, random_state=seed)
    cost_train = cost_vectors(y_train, cost_matrix)
    cost_test = cost_vectors(y_test, cost_matrix)

    start = time.perf_counter()
    search = tune(X_train, y_train, cost_train, seed=seed, n_jobs=n_jobs, verbose=verbose)
    seconds = {"tuned network": time.perf_counter() - start}
    methods = {"tuned network": search}

    plain = {"costsensitiveauxmlp__loss": "cross_entropy", "costsensitiveauxmlp__alpha": 0}
    baselines = {
        "same network, cost-blind": clone(search.best_estimator_).set_params(**plain),
        "the same with Bayes decision": clone(search.best_estimator_).set_params(
            **plain, costsensitiveauxmlp__cost_matrix=cost_matrix
        ),
        "same loss, cost-blind": clone(search.best_estimator_),
        "logistic regression + Bayes": make_pipeline(
            StandardScaler(),
            BayesMinimumRiskClassifier(LogisticRegression(max_iter=1000), cost_matrix),
        ),
    }
    for name, estimator in baselines.items():
        start = time.perf_counter()
        methods[name] = estimator.fit(X_train, y_train)
        seconds[name] = time.perf_counter() - start

    rows = []
    for name, estimator in methods.items():
        y_pred = estimator.predict(X_test)
        rows.append(
            {
                "method": name,
                "test cost": mean_cost(y_test, y_pred, cost=cost_test),
                "savings": savings_score(y_test, y_pred, cost=cost_test),
                "accuracy": accuracy_score(y_test, y_pred),
                "seconds": seconds[name],
            }
        )
    return search, rows


def print_table(rows: list[dict]) -> None:
    """One line per method."""
    print(f"{'method':30s}{'mean test cost':>15s}{'savings':>10s}{'accuracy':>10s}{'seconds':>9s}")
    for row in rows:
        print(
            f"{row['method']:30s}{row['test cost']:15.4f}{row['savings']:10.1%}"
            f"{row['accuracy']:10.1%}{row['seconds']:9.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the plot")
    parser.add_argument("--seed", type=int, default=0, help="seed of split, costs and networks")
    parser.add_argument("--n-jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args()

    sklearn.set_config(enable_metadata_routing=True)
    torch.set_num_threads(1)  # networks this small are slower on several threads
    search, rows = compare(options.seed, n_jobs=options.n_jobs, verbose=3)

    chosen = {key.split("__")[1]: value for key, value in search.best_params_.items()}
    print(f"\nChosen by cross-validated cost ({-search.best_score_:.4f}): {chosen}\n")
    print_table(rows)

    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "demo_digits.png"
    display = CostCurveDisplay.from_search(search, x="alpha", hue="depth")
    display.figure_.savefig(path, dpi=150, bbox_inches="tight")
    print(f"\nCost against alpha, a curve per depth: {path}")


if __name__ == "__main__":
    main()
