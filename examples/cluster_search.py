"""Search on a cluster of processes, and decide block by block.

The search uses half of the payments, each with the cost of a mistake: it evaluates a grid over two
parameters on the workers of a dask cluster. The best network decides for the other half, block by
block. Extra ``dask``; ``--scheduler`` takes the address of a running cluster.
"""

from __future__ import annotations

import argparse
import time

import dask.array as da
import numpy as np
import sklearn
from distributed import Client, LocalCluster
from joblib import parallel_config
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import cost_scorer, mean_cost

GRID = {"alpha": [0.0, 0.2], "learning_rate": [1e-3, 2e-3]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scheduler", help="address of a cluster; default: one of this computer")
    parser.add_argument("--rows", type=int, default=4000)
    options = parser.parse_args()

    X, y = make_classification(options.rows, 20, n_informative=8, weights=[0.9], random_state=0)
    amount = np.random.default_rng(0).exponential(50.0, size=options.rows)
    cost = np.column_stack([np.where(y == 1, amount, 0), np.where(y == 0, 5.0, 0)])
    half = options.rows // 2
    network = CostSensitiveAuxMLP(max_epochs=10, random_state=0)
    search = GridSearchCV(network, GRID, scoring=cost_scorer, cv=3)

    cluster = options.scheduler or LocalCluster(n_workers=2, threads_per_worker=1)
    with Client(cluster) as client, sklearn.config_context(enable_metadata_routing=True):
        print(f"{len(client.scheduler_info()['workers'])} workers")
        start = time.perf_counter()
        with parallel_config(backend="dask"):
            search.fit(X[:half], y[:half], cost=cost[:half])
        print(f"search: {time.perf_counter() - start:.1f} s, {search.best_params_}")

        blocks = da.from_array(X[half:], chunks=(1000, X.shape[1]))
        label = blocks.map_blocks(search.predict, dtype=y.dtype, drop_axis=1).compute()
    for name, decision in {"the network": label, "always 0": np.zeros_like(label)}.items():
        print(
            f"cost of a new payment, {name}: {mean_cost(y[half:], decision, cost=cost[half:]):.2f}"
        )


if __name__ == "__main__":
    main()
