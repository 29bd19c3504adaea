"""Mean test cost against alpha, the weight of the auxiliary heads, for networks of several depths.

With one hidden layer there are no auxiliary heads: that network is trained once and drawn as a
horizontal line. Of several ``--learning-rates`` each depth and alpha gets its own. Where all alphas
of `branches` ran, a figure shows their means. Run
``python -m benchmarks.paper.alpha_depth --help`` for options.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.paper.branches import group_alphas
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import add_depths, make_dense_parser
from benchmarks.paper.report import Row, plot_costs, report_costs
from benchmarks.paper.tuning import choose, run_seeds

ALPHAS = np.linspace(0, 1, 11).round(1).tolist()


def main() -> dict[str, list[Row]]:
    parser = make_dense_parser(__doc__)
    add_depths(parser)
    parser.add_argument(
        "--alphas", nargs="+", type=float, default=ALPHAS, help="weights of the auxiliary heads"
    )
    options = parser.parse_args()

    def candidates(dataset: str, depth: int, alpha: float | None) -> list[DenseConfiguration]:
        return [
            DenseConfiguration.of(options, dataset, depth, alpha=alpha, learning_rate=rate)
            for rate in options.learning_rates
        ]

    grid = dict.fromkeys(
        (dataset, depth, alpha if depth > 1 else None)
        for dataset, depth, alpha in product(options.datasets, options.depths, options.alphas)
    )
    chosen = choose({name: candidates(*name) for name in grid}, options)
    runs = [run for _, run in run_seeds(chosen, options)]
    plot_costs("alpha_depth", runs, options, x="alpha", hue="depth")
    if grouped := group_alphas(runs):
        plot_costs("branches", grouped, options, x="depth", hue="alphas")
    return report_costs("alpha_depth", runs, options, column="alpha", reference=0.0)


if __name__ == "__main__":
    main()
