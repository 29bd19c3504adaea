"""Pretraining by cost-sensitive auto-encoders (CSDNN) against random weights, on MNIST.

Each seed draws a randomized proportional cost matrix, and the same sigmoid network is trained on
it for the same number of epochs from three starts: random weights, plain denoising auto-encoders
(beta = 0) and cost-sensitive ones. Writes the training loss of every epoch and the mean test cost
with versions and seeds as JSON.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from auxcst_sklearn import CSAEPretrainedMLP
from auxcst_sklearn.costs import randomized_proportional_cost_matrix
from auxcst_sklearn.metrics import mean_cost
from benchmarks.common.folders import RESULTS
from benchmarks.common.image_sets import load_mnist
from benchmarks.common.json_files import write_json
from benchmarks.common.options import DATA_HOME, make_parser
from benchmarks.common.provenance import provenance

STARTS: dict[str, dict[str, Any]] = {
    "random weights": {"pretrain_epochs": 0},
    "denoising auto-encoders": {"beta": 0.0},
    "cost-sensitive auto-encoders": {},
}


def run(start: str, seed: int, epochs: int, train: tuple, test: tuple) -> dict[str, Any]:
    X, y = train
    cost_matrix = randomized_proportional_cost_matrix(y, random_state=seed)
    model = CSAEPretrainedMLP(
        cost_matrix=cost_matrix,
        max_epochs=epochs,
        device="cpu",
        random_state=seed,
        **STARTS[start],
    ).fit(X, y)
    parameters = model.get_params()
    del parameters["cost_matrix"]  # the seed draws it
    return {
        "start": start,
        "seed": seed,
        "train_loss": [record["train_loss"] for record in model.history_],
        "test_cost": mean_cost(test[1], model.predict(test[0]), cost_matrix=cost_matrix),
        "parameters": parameters,
    }


def main() -> None:
    parser = make_parser(
        __doc__, data_home=DATA_HOME, n_seeds=3, out=RESULTS / "csae_pretraining.json"
    )
    parser.add_argument("--n-rows", type=int, default=10_000, help="training rows")
    parser.add_argument("--n-epochs", type=int, default=20, help="epochs after pretraining")
    options = parser.parse_args()

    mnist = load_mnist(options.data_home)
    rows = mnist.scaled_rows()
    train = rows[: options.n_rows], mnist.target[: options.n_rows]
    test = rows[mnist.n_train :], mnist.target[mnist.n_train :]
    runs = []
    print(f"{'start':30s}{'last training loss':>20s}{'mean test cost':>16s}")
    for start in STARTS:
        of_start = [
            run(start, seed, options.n_epochs, train, test) for seed in range(options.n_seeds)
        ]
        loss = np.mean([r["train_loss"][-1] for r in of_start])
        cost = np.mean([r["test_cost"] for r in of_start])
        print(f"{start:30s}{loss:20.4f}{cost:16.4f}", flush=True)
        runs += of_start

    write_json(options.out, {**provenance(), "runs": runs})


if __name__ == "__main__":
    main()
