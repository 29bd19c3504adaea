"""Mean test cost against alpha, the weight of the auxiliary heads, for networks of several depths.

With one hidden layer there are no auxiliary heads: that network is trained once and drawn as a
horizontal line. Run ``python -m benchmarks.paper.alpha_depth --help`` for options.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.paper import dense
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import add_grid_options, make_dense_parser
from benchmarks.paper.report import plot_costs, report_costs
from benchmarks.paper.runs import run_all

ALPHAS = np.linspace(0, 1, 11).round(1).tolist()


def main() -> None:
    parser = make_dense_parser(__doc__)
    add_grid_options(parser)
    parser.add_argument(
        "--alphas", nargs="+", type=float, default=ALPHAS, help="weights of the auxiliary heads"
    )
    options = parser.parse_args()

    grid = product(options.datasets, options.seeds, options.depths, options.alphas)
    configurations = dict.fromkeys(
        DenseConfiguration.of(options, dataset, seed, depth, alpha=alpha)
        for dataset, seed, depth, alpha in grid
    )
    runs = run_all(list(configurations), options, load=dense.load, run=dense.run)
    report_costs("alpha_depth", runs, options, column="alpha", reference=0.0)
    plot_costs("alpha_depth", runs, options, x="alpha", hue="depth")


if __name__ == "__main__":
    main()
