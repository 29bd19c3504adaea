"""Learning curves of all layers: the training loss of each head, epoch by epoch.

Losses are in units of the mean cost above the smallest, averaged over the seeds. Run
``python -m benchmarks.paper.layer_losses --help`` for options.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from auxcst_sklearn import PAPER
from auxcst_sklearn.plotting import LayerLossDisplay
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.options import make_dense_parser
from benchmarks.paper.report import Row, format_table, save, save_figure, subplots, summarize
from benchmarks.paper.tuning import choose, run_seeds


def main() -> dict[str, list[Row]]:
    parser = make_dense_parser(__doc__)
    add = parser.add_argument
    add("--depth", type=int, default=3, help="number of hidden layers")
    add("--alpha", type=float, default=PAPER["alpha"], help="weight of the auxiliary heads")
    options = parser.parse_args()
    if options.early_stopping:
        parser.error("curves are of equal length: leave --early-stopping out")

    chosen = choose(
        {
            dataset: [
                DenseConfiguration.of(
                    options, dataset, options.depth, alpha=options.alpha, learning_rate=rate
                )
                for rate in options.learning_rates
            ]
            for dataset in options.datasets
        },
        options,
    )
    with_curves = {name: replace(network, curves=True) for name, network in chosen.items()}
    runs = [run for _, run in run_seeds(with_curves, options)]
    rows = [
        {"dataset": run["dataset"], "layer": layer, "epoch": epoch, "loss": loss}
        for run in runs
        for layer, losses in run["layer_losses"].items()
        for epoch, loss in enumerate(losses, start=1)
    ]
    losses = summarize(rows, ["dataset", "layer", "epoch"], "loss")
    ends = [entry for entry in losses if entry["epoch"] in (1, options.epochs)]
    save("layer_losses", options, format_table(ends, row="layer", column="epoch"))
    figure, axes = subplots(options.datasets)
    for dataset, ax in axes.items():
        of_dataset = [run["layer_losses"] for run in runs if run["dataset"] == dataset]
        means = {layer: np.mean([r[layer] for r in of_dataset], axis=0) for layer in of_dataset[0]}
        means["total"] = means["output"] + options.alpha * sum(
            loss for layer, loss in means.items() if layer != "output"
        )
        LayerLossDisplay(np.arange(1, options.epochs + 1), means).plot(ax=ax)
    save_figure(figure, "layer_losses", options)
    return {"losses": losses}


if __name__ == "__main__":
    main()
