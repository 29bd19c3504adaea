"""Mean cost of training in blocks against full shuffles: rows in random order, and sorted by class.

Sizes are scaled down together: the file is 16 times as large as what is mixed, in 4 or 64 blocks.
Ratios to a full shuffle of the same rows, means over seeds, for three balanced classes, and for
two of which one has a hundredth of the rows. Writes the table with versions as JSON.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import make_classification

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn._inputs import lazy_rows
from auxcst_sklearn._training import batches
from auxcst_sklearn.metrics import mean_cost
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

N, D, N_TEST = 16_384, 20, 30_000
PROBLEMS = {
    "three classes": ([1 / 3, 1 / 3, 1 / 3], [[0, 1, 5], [2, 0, 1], [10, 4, 0]]),
    "1 % positives": ([0.99, 0.01], [[0, 1], [50, 0]]),
}
MIXED = (4, 64)  # blocks that are mixed
SHARE = 16  # of the file is mixed: one in so many rows


def costs_of(shares: list, cost: list, seed: int) -> dict[str, float]:
    """Test costs of one draw, by how the rows were shuffled."""
    X, y = make_classification(
        N + N_TEST,
        D,
        n_informative=10,
        n_clusters_per_class=2,
        flip_y=0.02,
        class_sep=0.8,
        n_classes=len(shares),
        weights=shares,
        random_state=seed,
    )
    X, X_test, y, y_test = X[:N], X[N:], y[:N], y[N:]
    order = y.argsort(kind="stable")
    found = {}

    def run(name: str, X: np.ndarray, y: np.ndarray, large_bytes: int) -> None:
        lazy_rows.LARGE_BYTES = large_bytes
        model = CostSensitiveAuxMLP(
            cost_matrix=cost, width=64, n_networks=2, batch_size=256, random_state=seed
        )
        found[name] = mean_cost(y_test, model.fit(X, y).predict(X_test), cost_matrix=cost)

    run("full shuffle", X, y, 2**40)
    batches.MIXED_BYTES = 4 * D * N // SHARE
    for n in MIXED:
        batches.BLOCK_BYTES = max(4 * D, batches.MIXED_BYTES // n)
        run(f"random, {n} blocks", X, y, 1)
        run(f"sorted, {n} blocks", X[order], y[order], 1)
    return found


def main() -> None:
    parser = make_parser(__doc__, seeds=[0, 1, 2], out=RESULTS / "blocks.json")
    options = parser.parse_args()
    table: dict = {}
    for problem, (shares, cost) in PROBLEMS.items():
        runs = [costs_of(shares, cost, seed) for seed in options.seeds]
        for name in runs[0]:
            ratios = [run[name] / run["full shuffle"] for run in runs]
            error = np.std(ratios, ddof=1) / len(ratios) ** 0.5
            table[f"{problem}, {name}"] = [round(np.mean(ratios), 3), round(error, 3)]
            print(problem, name, table[f"{problem}, {name}"], flush=True)
    write_json(options.out, {**provenance(), "seeds": options.seeds, "cost_ratio": table})


if __name__ == "__main__":
    main()
