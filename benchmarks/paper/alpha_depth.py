"""Mean test cost against alpha, the weight of the auxiliary heads, for networks of several depths.

With one hidden layer there are no auxiliary heads: that network is trained once and drawn as a
horizontal line. Run ``python examples/experiment_alpha_depth.py --help`` for options.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.paper.report import plot_costs, report_costs
from benchmarks.paper.runs import Configuration, add_grid_options, make_parser, run_all

ALPHAS = np.linspace(0, 1, 11).round(1).tolist()


def main() -> None:
    parser = make_parser(__doc__.splitlines()[0])
    add_grid_options(parser)
    parser.add_argument("--alphas", nargs="+", type=float, default=ALPHAS)
    options = parser.parse_args()

    grid = product(options.datasets, options.seeds, options.depths, options.alphas)
    configurations = dict.fromkeys(
        Configuration.of(options, dataset, seed, depth, alpha=alpha)
        for dataset, seed, depth, alpha in grid
    )
    runs = run_all(list(configurations), options)
    report_costs("alpha_depth", runs, options, column="alpha", reference=0.0)
    plot_costs("alpha_depth", runs, options, x="alpha", hue="depth")


if __name__ == "__main__":
    main()
