"""Where heads pay off in deep networks: CostSensitiveAuxMLP as it comes, by depth and alpha.

Nothing but depth and alpha differs from the defaults of the package, so that these are not the
networks of the paper. Run ``python -m benchmarks.paper.deep --help`` for options.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import mean_cost
from benchmarks.common.engine import Result
from benchmarks.paper import draws
from benchmarks.paper.draws import Dataset, draw
from benchmarks.paper.options import make_parser
from benchmarks.paper.report import Row, plot_costs, report_costs
from benchmarks.paper.runs import Configuration, run_all


@dataclass(frozen=True)
class DefaultConfiguration(Configuration):
    """All that determines the result of one run."""

    train_size: int | None
    seed: int
    depth: int
    alpha: float
    method: str = "default"
    tuning: bool = False


def run(configuration: DefaultConfiguration, data: Dataset, device: str) -> Result:
    """Train a network and test it."""
    drawn = draw(configuration, data)
    network = CostSensitiveAuxMLP(
        configuration.depth,
        alpha=configuration.alpha,
        cost_matrix=drawn.cost_matrix,
        device=device,
        random_state=configuration.seed,
    ).fit(drawn.X_train, drawn.y_train)
    y_pred = network.predict(drawn.X_test)
    costs = {"cost_matrix": drawn.cost_matrix, "classes": network.classes_}
    return {"test_cost": mean_cost(drawn.y_test, y_pred, **costs), "epochs": len(network.history_)}


def main() -> dict[str, list[Row]]:
    parser = make_parser(__doc__)
    add = parser.add_argument
    add("--datasets", nargs="+", choices=draws.DATASETS, default=["mnist"], metavar="NAME")
    add("--train-size", type=int, default=4000, help="training examples, before thinning out")
    add("--depths", nargs="+", type=int, default=[3, 5, 8, 12, 16], help="hidden layers")
    add("--alphas", nargs="+", type=float, default=[0.0, 0.2, 1.0], help="weights of the heads")
    options = parser.parse_args()

    grid = product(options.datasets, options.seeds, options.depths, options.alphas)
    configurations = [
        DefaultConfiguration(dataset, options.train_size, seed, depth, alpha)
        for dataset, seed, depth, alpha in grid
    ]
    rows = run_all(configurations, options, load=draws.load, run=run)
    rows = [row for row in rows if "test_cost" in row]
    plot_costs("deep", rows, options, x="depth", hue="alpha")
    return report_costs("deep", rows, options, column="alpha", reference=0.0)


if __name__ == "__main__":
    main()
