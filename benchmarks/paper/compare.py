"""Mean test cost of AuxDNN, NaiveDNN, CSDNN and what others do with a cost-blind network, by depth.

AuxDNN has auxiliary heads, NaiveDNN has none, CSDNN is pretrained by cost-sensitive auto-encoders.
The network of NaiveDNN is also trained by cross-entropy: "blind" predicts the most probable class,
"Bayes" the class of least expected cost, and `related` has MetaCost and two more. Of several
``--learning-rates``, of several ``--alphas`` for AuxDNN, and of CSDNN's two rates, each method gets
at each depth what costs least on held-out training rows. Run ``python -m benchmarks.paper.compare
--help`` for options.
"""

from __future__ import annotations

import argparse
from itertools import product
from typing import Any

from auxcst_sklearn import PAPER
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import add_depths, make_dense_parser
from benchmarks.paper.related import RELATED
from benchmarks.paper.report import Row, plot_costs, report_costs
from benchmarks.paper.tuning import choose, run_seeds

NAMES = ["AuxDNN", "NaiveDNN", "CSDNN", "blind", "Bayes", *RELATED]


def make_methods(options: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """The candidates of each method."""
    rates = [{"learning_rate": rate} for rate in options.learning_rates]
    own_rates = [
        {"learning_rate": rate, "pretrain_learning_rate": pretrain}
        for rate in options.csdnn_learning_rates or options.learning_rates
        for pretrain in options.csdnn_pretrain_rates
    ]
    methods: dict[str, list[dict[str, Any]]] = {
        "AuxDNN": [{"alpha": alpha, **rate} for alpha in options.alphas for rate in rates],
        "NaiveDNN": [{"alpha": 0.0, **rate} for rate in rates],
        "CSDNN": [{"method": "csae", **rate} for rate in own_rates],
        "blind": [{"method": "blind", "loss": "cross_entropy", **rate} for rate in rates],
        "Bayes": [{"loss": "cross_entropy", "alpha": 0.0, **rate} for rate in rates],
        **{
            name: [{"method": name, "loss": "cross_entropy", **rate} for rate in rates]
            for name in RELATED
        },
    }
    return {name: methods[name] for name in options.methods}


def make_parser() -> argparse.ArgumentParser:
    parser = make_dense_parser(__doc__)
    add_depths(parser)
    add = parser.add_argument
    add("--methods", nargs="+", choices=NAMES, default=NAMES, metavar="NAME", help="names")
    add("--alphas", nargs="+", type=float, default=[PAPER["alpha"]], help="of AuxDNN")
    add("--csdnn-learning-rates", nargs="+", type=float, help="None for those of the others")
    add("--csdnn-pretrain-rates", nargs="+", type=float, default=[0.1], help="its pretraining")
    return parser


def main() -> dict[str, list[Row]]:
    options = make_parser().parse_args()
    methods = make_methods(options)
    candidates = {
        (dataset, depth, name): list(
            dict.fromkeys(
                DenseConfiguration.of(options, dataset, depth, **parameters)
                for parameters in methods[name]
            )
        )
        for dataset, depth, name in product(options.datasets, options.depths, methods)
    }
    runs = run_seeds(choose(candidates, options), options)
    rows = [{**run, "method": method} for (*_, method), run in runs]
    plot_costs("compare", rows, options, x="depth", hue="method")
    return report_costs("compare", rows, options, column="method", reference=options.methods[0])


if __name__ == "__main__":
    main()
