"""Mean test cost of the smooth one-sided loss against tau, the width of its smoothing.

tau is in units of the mean cost of a mistake; 0 stands for the one-sided loss itself. Run
``python -m benchmarks.paper.smoothing --help`` for options.
"""

from __future__ import annotations

from itertools import product

from auxcst_sklearn import PAPER
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import add_depths, make_dense_parser
from benchmarks.paper.report import Row, plot_costs, report_costs
from benchmarks.paper.tuning import choose, run_seeds


def main() -> dict[str, list[Row]]:
    parser = make_dense_parser(__doc__)
    add_depths(parser)
    add = parser.add_argument
    add(
        "--taus",
        nargs="+",
        type=float,
        default=[0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0],
        help="0 for none",
    )
    add("--alpha", type=float, default=PAPER["alpha"], help="weight of the auxiliary heads")
    options = parser.parse_args()

    def candidates(dataset: str, depth: int, tau: float) -> list[DenseConfiguration]:
        loss = {"loss": "smooth_one_sided", "tau": tau} if tau else {"loss": "one_sided"}
        return [
            DenseConfiguration.of(
                options, dataset, depth, alpha=options.alpha, learning_rate=rate, **loss
            )
            for rate in options.learning_rates
        ]

    grid = list(product(options.datasets, options.depths, options.taus))
    chosen = choose({name: candidates(*name) for name in grid}, options)
    rows = [{**run, "tau": tau} for (*_, tau), run in run_seeds(chosen, options)]
    plot_costs("smoothing", rows, options, x="tau", hue="depth")
    return report_costs("smoothing", rows, options, column="tau", reference=options.taus[0])


if __name__ == "__main__":
    main()
