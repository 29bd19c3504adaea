"""Mean test cost of a fine-tuned network against alpha, where mistakes cost distances in a tree.

SqueezeNet 1.1 with ImageNet weights gets a new output layer and a cost head on each hidden layer
but the last; all layers are fine-tuned on Caltech-101, for each alpha, and once without heads or
costs, by cross-entropy. That cost-blind network gives two baselines: "blind" predicts the most
probable class, "Bayes" the class of least expected cost. Of several ``--learning-rates``, the
cost-blind network, alpha 0, and all other alphas together each get the one that costs least on a
fifth of the training images, held out in one run with a separate seed. Run
``python -m benchmarks.paper.fine_tuning --help`` for options.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import gen_batches
from torch import Tensor, nn

from auxcst_sklearn import CostSensitiveAuxNet
from auxcst_sklearn.costs import tree_distance_cost_matrix
from auxcst_sklearn.modules import RandomFlipShift
from benchmarks.common.engine import Result
from benchmarks.paper.alexnet import decide, judge
from benchmarks.paper.caltech101 import Caltech101, load_caltech101
from benchmarks.paper.category_closeness import measures, methods
from benchmarks.paper.options import make_parser as make_common_parser
from benchmarks.paper.pretrained import SqueezeNet
from benchmarks.paper.report import Row, format_table, plot_costs, save
from benchmarks.paper.runs import Configuration, run_all

NAME = "fine_tuning"
DATASETS = ["caltech101-39", "caltech101"]
ALPHAS = [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0]
HELD_OUT_FRACTION = 1 / 5
ALPHA_TO_TUNE = 0.3  # stands for all alphas above 0


def unit_length(layer: Tensor, inputs: Any) -> Tensor:
    """All values of a layer, of length 1: a step of AdamW then changes no output by much."""
    return nn.functional.normalize(layer.flatten(1))


HEAD_INPUTS = {"mean": "mean", "flatten": "flatten", "unit length": unit_length}


@dataclass(frozen=True)
class FineTuningConfiguration(Configuration):
    """All that determines the result of one run; `alpha` is None for the cost-blind network."""

    seed: int
    alpha: float | None
    loss: str
    head_input: str
    pretrained: bool
    image_size: int
    epochs: int
    batch_size: int
    learning_rate: float
    pretrained_lr_factor: float
    precision: str
    tuning: bool = False


def make_estimator(
    configuration: FineTuningConfiguration,
    cost_matrix: np.ndarray,
    *,
    weights: Path | None,
    device: str,
) -> CostSensitiveAuxNet:
    """The cost-blind network has no heads and learns labels; all else is alike."""
    goal: dict[str, Any] = {"loss": configuration.loss, "alpha": configuration.alpha or 0.0}
    goal["head_gradient"] = 1.0
    if configuration.alpha is not None:
        goal |= {"cost_matrix": cost_matrix, "head_input": HEAD_INPUTS[configuration.head_input]}
    pretrained = configuration.pretrained
    return CostSensitiveAuxNet(
        SqueezeNet.from_npz(weights) if pretrained else SqueezeNet,
        **goal,
        pretrained=pretrained,
        temperature="auto" if pretrained else 1.0,
        pretrained_lr_factor=configuration.pretrained_lr_factor,
        augmentation=RandomFlipShift(max_shift=configuration.image_size // 8),
        max_epochs=configuration.epochs,
        batch_size=configuration.batch_size,
        learning_rate=configuration.learning_rate,
        precision=configuration.precision,
        device=device,
        random_state=configuration.seed,
    )


def run(
    configuration: FineTuningConfiguration, data: Caltech101, device: str, *, weights: Path | None
) -> Result:
    """Train a network, and test its decisions, or try them on held-out rows."""
    train, test = np.arange(data.n_train), np.arange(data.n_train, len(data.target))
    if configuration.tuning:
        train, test = train_test_split(
            train,
            test_size=HELD_OUT_FRACTION,
            stratify=data.target[train],
            random_state=configuration.seed,
        )
    cost_matrix = tree_distance_cost_matrix(data.paths)
    estimator = make_estimator(configuration, cost_matrix, weights=weights, device=device)
    start = time.perf_counter()
    estimator.fit(data.images[train], data.target[train])
    seconds = time.perf_counter() - start
    batches = (data.images[test[rows]] for rows in gen_batches(len(test), 500))
    estimates = np.concatenate([estimator.predict_cost(images) for images in batches])
    y_test = data.target[test]
    results = []
    for method, y_pred in decide(configuration, estimates, cost_matrix).items():
        distances = np.bincount(cost_matrix[y_test, y_pred].astype(int))
        counts = {"distances": distances.tolist()}
        method = method if configuration.alpha is None else "AuxCST"
        results.append({"method": method, **judge(y_test, y_pred, cost_matrix), **counts})
    history = {
        f"{name}_loss": [round(epoch[f"train_loss_{name}"], 5) for epoch in estimator.history_]
        for name in ("output", *estimator.hidden_layers_[:1])
    }
    result = {"n_train": len(train), "n_test": len(test), "seconds": round(seconds, 1)}
    return {**result, "history": history, "results": results}


def make_parser() -> argparse.ArgumentParser:
    parser = make_common_parser(__doc__)
    parser.set_defaults(epochs=8, seeds=[0, 1, 2])
    add = parser.add_argument
    add("--dataset", choices=DATASETS, default=DATASETS[0], help="39 classes, or all 100")
    add("--weights", type=Path, help="arrays of SqueezeNet 1.1's ImageNet weights")
    add("--from-scratch", action="store_true", help="train from random weights instead")
    add("--image-size", type=int, default=128, help="pixels on each side")
    add("--alphas", nargs="*", type=float, default=ALPHAS, help="weights of the auxiliary heads")
    add("--without-blind", action="store_true", help="leave the cost-blind network out")
    add("--head-input", choices=list(HEAD_INPUTS), default="mean")
    add("--batch-size", type=int, default=32, help="images per step")
    add("--learning-rates", nargs="+", type=float, default=[1e-3], help="of new neurons")
    add("--pretrained-lr-factor", type=float, default=0.1, help="for pretrained layers")
    add("--precision", choices=["float32", "bf16"], default="float32")
    add("--tuning-seed", type=int, default=100, help="draws the images that choose the rate")
    return parser


def make_configuration(
    options: argparse.Namespace, alpha: float | None, rate: float
) -> FineTuningConfiguration:
    return FineTuningConfiguration(
        dataset=options.dataset,
        seed=options.tuning_seed,
        alpha=alpha,
        loss="cross_entropy" if alpha is None else options.loss,
        head_input=options.head_input if alpha else "mean",
        pretrained=not options.from_scratch,
        image_size=options.image_size,
        epochs=options.epochs,
        batch_size=options.batch_size,
        learning_rate=rate,
        pretrained_lr_factor=1.0 if options.from_scratch else options.pretrained_lr_factor,
        precision=options.precision,
    )


def main() -> dict[str, list[Row]]:
    options = make_parser().parse_args()
    if options.weights is None and not options.from_scratch:
        raise ValueError("--weights is missing: the .npz file of SqueezeNet's weights.")
    computed = partial(
        run_all,
        options=options,
        load=partial(load_caltech101, image_size=options.image_size),
        run=partial(run, weights=options.weights),
    )
    alphas = [*options.alphas, *([] if options.without_blind else [None])]
    rates = choose_rates(alphas, options, computed)
    chosen = [
        replace(make_configuration(options, alpha, rates[as_tuned(alpha)]), seed=seed)
        for seed, alpha in product(options.seeds, alphas)
    ]
    rows = methods([run for run in computed(chosen) if "results" in run])
    text = format_table(measures(rows), row="network", column="measure")
    about = "Means +- standard errors over the seeds; differences are paired by seed"
    save(NAME, options, f"{about}\n\n{text}\n\n{distances_table(rows)}\n\nRates: {rates}")
    plot_costs(NAME, rows, options, x="alpha", hue="method")
    return {"runs": rows}


def as_tuned(alpha: float | None) -> float | None:
    return ALPHA_TO_TUNE if alpha else alpha


def choose_rates(
    alphas: Sequence[float | None], options: argparse.Namespace, computed: Any
) -> dict[float | None, float]:
    """The rate of least held-out cost, that of the blind network by its probabilities' decision."""
    kinds = list(dict.fromkeys(map(as_tuned, alphas)))
    if len(options.learning_rates) == 1:
        return dict.fromkeys(kinds, options.learning_rates[0])
    trials = [
        replace(make_configuration(options, alpha, rate), tuning=True)
        for alpha, rate in product(kinds, options.learning_rates)
    ]
    cost: dict[float | None, dict[float, float]] = {}
    for row in computed(trials):
        if "results" in row:
            of_kind = cost.setdefault(row["alpha"], {})
            of_kind[row["learning_rate"]] = row["results"][0]["test_cost"]
    print("Held-out costs by rate:", cost)
    return {kind: min(cost[kind], key=cost[kind].__getitem__) for kind in kinds}


def distances_table(rows: Sequence[Row]) -> str:
    """Mistakes of each network by their distance in the tree, per 1,000 test images."""
    n = max(len(row["distances"]) for row in rows)
    per_image: dict[str, list[np.ndarray]] = {}
    for row in rows:
        counts = np.pad(row["distances"], (0, n - len(row["distances"])))
        per_image.setdefault(row["network"], []).append(1000 * counts / row["n_test"])
    means = {network: np.mean(of_seeds, axis=0) for network, of_seeds in per_image.items()}
    used = [d for d in range(1, n) if any(mean[d] for mean in means.values())]
    return "\n".join(
        [
            "Mistakes per 1,000 test images, by distance",
            f"{'network':12}" + "".join(f"{d:>8}" for d in used),
            *(
                f"{network:12}" + "".join(f"{mean[d]:8.1f}" for d in used)
                for network, mean in means.items()
            ),
        ]
    )


if __name__ == "__main__":
    main()
