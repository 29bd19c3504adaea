"""Mean test cost of AuxDNN, NaiveDNN, CSDNN and two cross-entropy baselines, by depth.

AuxDNN has auxiliary heads, NaiveDNN has none, CSDNN is pretrained by cost-sensitive auto-encoders.
The network of NaiveDNN is also trained by cross-entropy: "blind" predicts the most probable class,
"Bayes" the class of least expected cost. Of several ``--learning-rates``, of several
``--pretrain-learning-rates`` for CSDNN and of several ``--alphas`` for AuxDNN, each method gets
what costs least on held-out training rows at each depth. Run
``python -m benchmarks.paper.compare --help`` for options.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

from auxcst_sklearn import PAPER
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import add_depths, make_dense_parser
from benchmarks.paper.report import plot_costs, report_costs
from benchmarks.paper.tuning import choose, run_seeds


def make_methods(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """The candidates of each method, but for the learning rate."""
    methods: dict[str, list[dict[str, Any]]] = {
        "AuxDNN": [{"alpha": alpha} for alpha in options.alphas],
        "NaiveDNN": [{"alpha": 0.0}],
        "CSDNN": [
            {"method": "csae", "pretrain_learning_rate": rate}
            for rate in options.pretrain_learning_rates
        ],
        "blind": [{"method": "blind", "loss": "cross_entropy"}],
        "Bayes": [{"loss": "cross_entropy", "alpha": 0.0}],
    }
    return {name: methods[name] for name in options.methods}


def make_parser() -> argparse.ArgumentParser:
    parser = make_dense_parser(__doc__)
    add_depths(parser)
    add = parser.add_argument
    names = ["AuxDNN", "NaiveDNN", "CSDNN", "blind", "Bayes"]
    add("--methods", nargs="+", choices=names, default=names, metavar="NAME", help="names")
    add("--alphas", nargs="+", type=float, default=[PAPER["alpha"]], help="of AuxDNN")
    add("--pretrain-learning-rates", nargs="+", type=float, default=[0.1], help="of CSDNN")
    return parser


def main() -> None:
    options = make_parser().parse_args()
    methods = make_methods(options)
    candidates = {
        (dataset, depth, name): list(
            dict.fromkeys(
                DenseConfiguration.of(options, dataset, depth, learning_rate=rate, **parameters)
                for rate, parameters in product(options.learning_rates, methods[name])
            )
        )
        for dataset, depth, name in product(options.datasets, options.depths, methods)
    }
    runs = run_seeds(choose(candidates, options), options)
    rows = [{**run, "method": method} for (*_, method), run in runs]
    report_costs("compare", rows, options, column="method", reference=options.methods[0])
    plot_costs("compare", rows, options, x="depth", hue="method")


if __name__ == "__main__":
    main()
