"""What heads do in deep networks on images: cost by depth, with and without residual connections.

Digits of 8 x 8 pixels: 500 train, the rest are judged. `ResidualCNN` of three narrow stages with 1,
2, 4 and 8 blocks each, and alpha 0, 0.1, 0.2 and 0.5. Heads vote if that is better on held-out
rows. Finished runs are kept in ``--runs``; results and the figure go to ``--out``.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.modules import ResidualCNN
from benchmarks.common import engine
from benchmarks.common.engine import Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.bench_images import draw, judged

REVISION = 1  # to be raised where a change of our code changes results
CHANNELS, DEPTHS, ALPHAS = (4, 8, 16), (1, 2, 4, 8), (0.0, 0.1, 0.2, 0.5)
ROWS, EPOCHS, DECAY = 500, 20, 0.05


class WithoutShortcuts(ResidualCNN):
    """The same layers; no block adds its input."""

    def __init__(self, input_shape: Sequence[int], n_outputs: int = 1, **sizes: Any) -> None:
        super().__init__(input_shape, n_outputs, **sizes)
        for name in self.hidden_layers:
            stage, block = name.split(".")
            block_layers: Any = self.get_submodule(name)
            setattr(self.get_submodule(stage), block, block_layers.layers)


NETWORKS: dict[str, type[nn.Module]] = {
    "residual": ResidualCNN,
    "no shortcuts": WithoutShortcuts,
}


def fit_and_judge(seed: int, network: str, depth: int, alpha: float) -> dict[str, Any]:
    given = draw("digits", "test", ROWS, seed, Path("data"))
    sizes = {"channels": CHANNELS, "depth": depth}
    *layers, _ = ResidualCNN(given.X.shape[1:], **sizes).hidden_layers
    model = CostSensitiveAuxNet(
        NETWORKS[network],
        **{f"module__{name}": value for name, value in sizes.items()},
        hidden_layers=layers,
        max_epochs=EPOCHS,
        alpha=alpha,
        combine_heads=True,
        learning_rate=0.01,
        weight_decay=DECAY,
        n_networks=1,
        augmentation="shift",
        cost_matrix=given.costs,
        classes=range(len(given.costs)),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return judged(model.fit(given.X, given.y).predict_proba(given.X_test), given)


def cell_of(run: dict[str, Any]) -> tuple[str, int, float]:
    return run["network"], run["depth"], run["alpha"]


def plot(runs: Sequence[dict[str, Any]], file: Path) -> None:
    """Mean cost by depth, a line for each alpha."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(NETWORKS), figsize=(8, 3.4), sharey=True, layout="tight")
    for ax, network in zip(axes, NETWORKS):
        for alpha in ALPHAS:
            costs = [
                np.mean([r["cost"] for r in runs if cell_of(r) == (network, depth, alpha)])
                for depth in DEPTHS
            ]
            ax.plot(DEPTHS, costs, label=f"alpha {alpha:g}", marker=".")
        ax.set(title=network, xlabel="blocks per stage", xscale="log")
        ax.set_xticks(DEPTHS, DEPTHS)
        ax.minorticks_off()
    axes[0].set(ylabel="mean test cost", ylim=(0, None))
    axes[1].legend(fontsize="small")
    figure.savefig(file)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[0, 1, 2], n_jobs=1, out=RESULTS)
    parser.add_argument("--runs", type=Path, default=Path("out/depth_runs"), help="finished runs")
    options = parser.parse_args(arguments)
    cells = [
        {"seed": seed, "network": network, "depth": depth, "alpha": alpha}
        for seed, network, depth, alpha in product(options.seeds, NETWORKS, DEPTHS, ALPHAS)
    ]
    versions = {name: version(name) for name in ("torch", "numpy", "scikit-learn")}
    jobs = [
        [Run("depth", {**cell, "revision": REVISION, **versions}, partial(fit_and_judge, **cell))]
        for cell in cells
    ]
    results = engine.run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    runs = [{**cell, **result} for cell, (result,) in zip(cells, results)]
    write_json(options.out / "depth.json", provenance() | {"runs": runs})
    plot(runs, options.out / "depth.svg")


if __name__ == "__main__":
    main()
