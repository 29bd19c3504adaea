"""Mean test cost of AuxDNN, NaiveDNN, CSDNN and two cross-entropy baselines, by depth.

AuxDNN has auxiliary heads with alpha = 0.2, NaiveDNN has none, CSDNN is pretrained by
cost-sensitive auto-encoders. The network of NaiveDNN is also trained by cross-entropy: "blind"
predicts the most probable class, "Bayes" the class of least expected cost. ``--alphas`` adds
AuxDNN with the best of these alphas, chosen on a fifth of the training set. Run
``python -m benchmarks.paper.compare --help`` for options.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from benchmarks.paper import dense
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import add_grid_options, make_dense_parser
from benchmarks.paper.report import plot_costs, report_costs
from benchmarks.paper.runs import run_all

METHODS: dict[str, dict[str, Any]] = {
    "AuxDNN": {"alpha": 0.2},
    "NaiveDNN": {"alpha": 0.0},
    "CSDNN": {"method": "csae"},
    "blind": {"method": "blind", "loss": "cross_entropy"},
    "Bayes": {"loss": "cross_entropy", "alpha": 0.0},
}


def main() -> None:
    parser = make_dense_parser(__doc__)
    add_grid_options(parser)
    parser.add_argument(
        "--alphas", nargs="+", type=float, default=[], help="candidates of a tuned AuxDNN"
    )
    options = parser.parse_args()

    methods = dict(METHODS)
    if options.alphas:
        methods["AuxDNN, tuned"] = {"alpha": tuple(options.alphas)}
    grid = list(product(options.datasets, options.seeds, options.depths, methods))
    runs = run_all(
        [
            DenseConfiguration.of(options, dataset, seed, depth, **methods[method])
            for dataset, seed, depth, method in grid
        ],
        options,
        load=dense.load,
        run=dense.run,
    )
    rows = [{**run, "method": method} for (*_, method), run in zip(grid, runs)]
    report_costs("compare", rows, options, column="method", reference="AuxDNN")
    plot_costs("compare", rows, options, x="depth", hue="method")


if __name__ == "__main__":
    main()
