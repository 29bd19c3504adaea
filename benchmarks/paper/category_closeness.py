"""Mean test cost of AuxAlexNet against alpha, where mistakes cost the distance in a class tree.

AlexNet, with a cost head on each hidden layer but the last, is trained for each alpha, and once
without heads or costs, by cross-entropy. That cost-blind network gives two baselines: "blind"
predicts the most probable class, "Bayes" the class of least expected cost. Images are those of
Caltech-256 if ``--caltech256`` names their folder, else those of CIFAR-10. Run
``python -m benchmarks.paper.category_closeness --help`` for options.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper import alexnet
from benchmarks.paper.alexnet import AlexNetConfiguration
from benchmarks.paper.images import load_images
from benchmarks.paper.options import make_parser as make_common_parser
from benchmarks.paper.report import Row, differences, format_table, plot_costs, save, summarize
from benchmarks.paper.runs import run_all

NAME = "category_closeness"
ALPHAS = np.linspace(0, 1, 11).round(1).tolist()
IMAGE_SIZES = {"caltech256": 224, "cifar10": 32}


def methods(runs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each method of each run; `network` has the alpha or the decision in its name."""
    rows = [
        {**{key: run[key] for key in run if key != "results"}, **result}
        for run in runs
        for result in run["results"]
    ]
    for row in rows:
        cost_sensitive = row["alpha"] is not None
        row["network"] = f"alpha {row['alpha']:g}" if cost_sensitive else row["method"]
    return rows


def measures(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean costs and accuracies, and mean differences that are paired by seed."""
    values = [{**row, "measure": "test cost", "value": row["test_cost"]} for row in rows]
    for reference in ("alpha 0", "blind", "Bayes"):
        values += [
            {**row, "measure": f"minus {reference}", "value": row["difference"]}
            for row in differences(rows, "network", reference, by=["dataset"])
        ]
    values += [{**row, "measure": "accuracy", "value": row["accuracy"]} for row in rows]
    return summarize(values, ["dataset", "network", "measure"], "value")


def make_parser() -> argparse.ArgumentParser:
    parser = make_common_parser(__doc__)
    add = parser.add_argument
    add(
        "--caltech256",
        type=Path,
        metavar="FOLDER",
        help="class folders NNN.name/NNN_MMMM.jpg of Caltech-256; None for CIFAR-10",
    )
    add("--image-size", type=int, help=f"pixels on each side; None for {IMAGE_SIZES}")
    add("--train-size", type=int, default=20_000, help="images to train on, drawn by the seed")
    add("--test-size", type=int, help="images to test on, drawn by the seed; None for the rest")
    add("--alphas", nargs="+", type=float, default=ALPHAS, help="weights of the auxiliary heads")
    add(
        "--head-input",
        choices=["flatten", "mean"],
        default="flatten",
        help="whether heads see every value of a map, as in the paper, or its mean",
    )
    add("--width", type=int, default=4096, help="neurons of the dense layers")
    add("--dropout", type=float, default=0.5, help="share of inputs of dense layers to drop")
    add("--batch-size", type=int, default=64, help="images per step")
    add("--learning-rate", type=float, default=1e-3, help="the highest")
    add("--precision", choices=["float32", "bf16"], default="float32")
    add("--verbose", action="store_true", help="print a line per epoch")
    return parser


def make_configurations(options: argparse.Namespace) -> list[AlexNetConfiguration]:
    """For each seed, the cost-blind network and one for each alpha."""
    dataset = "cifar10" if options.caltech256 is None else "caltech256"
    return [
        AlexNetConfiguration(
            dataset=dataset,
            image_size=options.image_size or IMAGE_SIZES[dataset],
            train_size=options.train_size,
            test_size=options.test_size,
            seed=seed,
            alpha=alpha,
            loss=options.loss if alpha is not None else "cross_entropy",
            head_input=options.head_input,
            width=options.width,
            dropout=options.dropout,
            epochs=options.epochs,
            batch_size=options.batch_size,
            learning_rate=options.learning_rate,
            precision=options.precision,
        )
        for seed, alpha in product(options.seeds, [*options.alphas, None])
    ]


def main() -> dict[str, list[Row]]:
    options = make_parser().parse_args()
    configurations = make_configurations(options)
    runs = run_all(
        configurations,
        options,
        load=partial(
            load_images, folder=options.caltech256, image_size=configurations[0].image_size
        ),
        run=partial(alexnet.run, verbose=options.verbose),
    )
    rows = methods([run for run in runs if "results" in run])
    summary = measures(rows)
    text = format_table(summary, row="network", column="measure")
    text = f"Means +- standard errors over the seeds; differences are paired by seed\n\n{text}"
    save(NAME, options, text)
    plot_costs(NAME, rows, options, x="alpha", hue="method")
    return {"summary": summary, "runs": rows}


if __name__ == "__main__":
    main()
