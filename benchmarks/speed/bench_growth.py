"""Cost, log loss and CPU seconds of a fit as the number of rows grows.

Thirty numbers, four classes of three clusters each, a twentieth of the labels at random; costs of a
matrix; 25,000 test rows. The default, three networks in smaller batches, and scikit-learn's
boosting that stops early, which decides by expected cost, with one thread each. Writes the table
with versions as JSON.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import mean_cost
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

N_TEST = 25_000
COST = np.array([[0, 1, 2, 1], [4, 0, 1, 6], [1, 1, 0, 1], [9, 5, 2, 0]])


def models() -> dict[str, Any]:
    given = {"cost_matrix": COST, "random_state": 0}
    boosting = HistGradientBoostingClassifier(early_stopping=True, max_iter=500, random_state=0)
    return {
        "default": CostSensitiveAuxMLP(**given),
        "three networks, batches of 512": CostSensitiveAuxMLP(
            n_networks=3, batch_size=512, **given
        ),
        "boosting": BayesMinimumRiskClassifier(boosting, cost_matrix=COST),
    }


def measure(n_rows: int) -> list[dict[str, Any]]:
    """A record for each model."""
    X, y = make_classification(
        n_rows + N_TEST,
        30,
        n_informative=15,
        n_redundant=5,
        n_classes=len(COST),
        n_clusters_per_class=3,
        class_sep=0.8,
        flip_y=0.05,
        random_state=0,
    )
    X, X_test, y, y_test = train_test_split(
        X.astype(np.float32), y, test_size=N_TEST, stratify=y, random_state=0
    )
    records = []
    for name, model in models().items():
        start = time.process_time()
        model.fit(X, y)
        seconds = time.process_time() - start
        record = {
            **{"rows": n_rows, "model": name},
            "test_cost": round(mean_cost(y_test, model.predict(X_test), cost_matrix=COST), 4),
            "log_loss": round(log_loss(y_test, model.predict_proba(X_test)), 4),
            "cpu_seconds": round(seconds, 1),
            "epochs": len(getattr(model, "history_", [])),
        }
        print(record, flush=True)
        records.append(record)
    return records


def main() -> None:
    parser = make_parser(__doc__, out=RESULTS / "growth.json")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 30_000, 100_000])
    options = parser.parse_args()
    torch.set_num_threads(1)
    CostSensitiveAuxMLP(max_epochs=1).fit(np.eye(100), np.arange(100) % 2)  # what fitting imports
    with threadpool_limits(1):
        records = [record for n_rows in options.rows for record in measure(n_rows)]
    write_json(options.out, {**provenance(), "cases": records})


if __name__ == "__main__":
    main()
