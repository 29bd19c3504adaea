"""Held-out cost of CSAEPretrainedMLP over its pretraining parameters: where the defaults come from.

Trains and validates on parts of MNIST's training set that no other benchmark uses (rows 10,000 to
19,000), with cost draws of their own. Test data play no part.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from auxcst_sklearn import CSAEPretrainedMLP
from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from auxcst_sklearn.metrics import mean_cost
from benchmarks.common.folders import RESULTS
from benchmarks.common.image_sets import load_mnist
from benchmarks.common.json_files import write_json
from benchmarks.common.options import DATA_HOME, make_parser
from benchmarks.common.provenance import provenance
from benchmarks.common.statistics import standard_error

BETA = [0.0, 0.1, 0.5, 0.9, 0.99]
PRETRAIN_LEARNING_RATE = [1e-3, 1e-2]
SEEDS = [10, 11, 12]


def main() -> None:
    parser = make_parser(__doc__, data_home=DATA_HOME, out=RESULTS / "csae_defaults.json")
    options = parser.parse_args()

    mnist = load_mnist(options.data_home)
    rows = mnist.scaled_rows()
    X, y = rows[10_000:14_000], mnist.target[10_000:14_000]
    X_valid, y_valid = rows[14_000:19_000], mnist.target[14_000:19_000]
    runs = []
    for beta, rate in product(BETA, PRETRAIN_LEARNING_RATE):
        costs = []
        for seed in SEEDS:
            cost_matrix = randomized_proportional_cost_matrix(y, random_state=seed)
            model = CSAEPretrainedMLP(
                beta=beta,
                pretrain_learning_rate=rate,
                cost_matrix=cost_matrix,
                max_epochs=15,
                device="cpu",
                random_state=seed,
            ).fit(X, y)
            costs.append(mean_cost(y_valid, model.predict(X_valid), cost_matrix=cost_matrix))
        error = standard_error(costs)
        print(f"beta {beta:<6g} rate {rate:<8g} {np.mean(costs):.4f} +- {error:.4f}", flush=True)
        runs.append({"beta": beta, "pretrain_learning_rate": rate, "valid_cost": costs})
    write_json(options.out, {**provenance(), "seeds": SEEDS, "runs": runs})


if __name__ == "__main__":
    main()
