"""What auxiliary heads gain, and what they cost, in networks of many kinds.

Each fit is compared with ``alpha=0``: the same networks without heads, from the same weights.
``--part validation`` judges on other samples of the training parts. Plain convolutional networks
of four and eight layers chose the defaults there, among ``--methods``. ``--part test`` judges other
depths, networks and sets on test samples of other seeds, which chose nothing. Finished runs are
kept in ``--runs``; the tables and the figure of depths go to ``--out``.
"""

from __future__ import annotations

import pickle
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from auxcst_sklearn import CostSensitiveAuxNet
from benchmarks.common import engine
from benchmarks.common.engine import Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import from_json, write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost import heads_data, heads_networks
from benchmarks.cost.bench_images import judged
from benchmarks.cost.heads_data import Read
from benchmarks.cost.ranks import geometric_error, geometric_mean
from benchmarks.cost.series_networks import NETWORKS as SERIES_NETWORKS
from benchmarks.cost.tables import number, table

REVISION = 1  # to be raised where a change of our code changes results
CELL = ("network", "method", "seed", "part")
# Added to costs before they are divided: some networks hardly make a mistake.
LITTLE = 0.005
NONE, DEFAULT = "no heads", "default"


class Case(NamedTuple):
    """A network, its arguments, the data that it trains on, and for how long."""

    make: Callable[..., Any]
    arguments: dict[str, Any]
    read: Read
    epochs: int = 30
    n_classes: str = "n_outputs"


def plain_cases() -> Iterator[tuple[str, Case]]:
    """Plain convolutional networks by depth, and perceptrons."""
    of_images = {
        "digits": (partial(heads_data.images, "digits", 600, False), 16, 30),
        "CIFAR-10": (partial(heads_data.images, "cifar10", 2000, True), 24, 15),
        "MNIST": (partial(heads_data.images, "mnist", 1000, True), 16, 15),
    }
    for (name, (read, width, epochs)), depth, norm in product(
        of_images.items(), (4, 8, 12, 16), (False, True)
    ):
        sizes = {"depth": depth, "width": width, "norm": norm}
        of_norm = ", batch norm" if norm else ""
        case = Case(heads_networks.PlainCNN, sizes, read, epochs)
        yield f"{name}, {depth} convolutions{of_norm}", case
    for depth in (3, 8, 12):
        read = of_images["digits"][0]
        case = Case(heads_networks.Perceptron, {"depth": depth}, read)
        yield f"digits, {depth} dense layers", case
    read = partial(heads_data.images, "cifar100", 1000, False)
    # What the budget of heads leaves: all values of the first layer would be 6.5 million weights.
    wide = {"depth": 4, "width": 64, "norm": True}
    yield "CIFAR-100, 64 maps of 32 x 32", Case(heads_networks.PlainCNN, wide, read, 2)


CASES: dict[str, Case] = {
    **dict(plain_cases()),
    "points, PointNet": Case(heads_networks.PointNet, {}, heads_data.points),
    "graphs, GIN": Case(heads_networks.GIN, {}, heads_data.graphs),
    "image and table": Case(heads_networks.Mixture, {}, heads_data.parcels),
    "table, FT-Transformer": Case(heads_networks.FTTransformer, {}, heads_data.beans),
    "texts, transformer": Case(heads_networks.TextTransformer, {}, heads_data.texts),
    "texts, LSTM": Case(heads_networks.TextLSTM, {}, heads_data.texts),
    **{
        f"{name}, {network}": Case(make, {}, partial(heads_data.series, name), 30, "n_classes")
        for name in ("ECG", "OSULeaf")
        for network, make in SERIES_NETWORKS.items()
    },
    **{
        f"{name}, {make.__name__}": Case(make, {}, partial(heads_data.series, name))
        for name in ("ECG", "OSULeaf")
        for make in (heads_networks.FCN, heads_networks.Dilated)
    },
}
ALL_VALUES: dict[str, Any] = {"head_input": "flatten", "head_gradient": 1}
MEANS: dict[str, Any] = {"head_input": "mean", "head_gradient": 1}
METHODS: dict[str, dict[str, Any]] = {
    NONE: {"alpha": 0},
    DEFAULT: {},
    "means, 0.2, output alone": {**MEANS, "alpha": 0.2, "combine_heads": False},
    "means, 0.2": {**MEANS, "alpha": 0.2},
    "means, no gradient": {"head_input": "mean", "head_gradient": 0, "alpha": 0.2},
    **{f"all values, {alpha:g}": {**ALL_VALUES, "alpha": alpha} for alpha in (0.1, 0.3, 0.5, 1)},
    "all values, 0.5, output alone": {**ALL_VALUES, "alpha": 0.5, "combine_heads": False},
}


def fit_and_judge(
    network: str, method: str, seed: int, part: str, *, data_home: Path
) -> dict[str, Any]:
    """Train and judge one model; CPU time without that of reading the data."""
    case = CASES[network]
    given = case.read(part, seed, data_home)
    sizes = {**case.arguments, case.n_classes: len(given.costs)}
    model = CostSensitiveAuxNet(
        case.make,
        **{f"module__{name}": value for name, value in sizes.items()},
        cost_matrix=given.costs,
        classes=range(len(given.costs)),
        augmentation=given.augmentation,
        max_epochs=case.epochs,
        random_state=seed,
        **METHODS[method],
    )
    torch.set_num_threads(1)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(given.X, given.y)
    fitted = time.process_time()
    p = model.predict_proba(given.X_test)
    return {
        **judged(p, given),
        "cpu_seconds": round(fitted - start, 1),
        "predict_seconds": round(time.process_time() - fitted, 2),
        "bytes": len(pickle.dumps(model.net_)),
        "weights": np.round(model.head_weights_, 3).tolist(),
    }


# ------------------------------------------------------------------------------ the report


def paired(runs: Sequence[dict[str, Any]], network: str, method: str, key: str) -> NDArray:
    """Values (n_seeds, 2) of a method and without heads, for the seeds that have both."""
    of = {(r["method"], r["seed"]): r[key] for r in runs if r["network"] == network}
    seeds = [seed for name, seed in of if name == method and (NONE, seed) in of]
    return np.array([[of[method, seed], of[NONE, seed]] for seed in sorted(seeds)])


def ratios(runs: Sequence[dict[str, Any]], method: str) -> str:
    """Each network with the heads of a method, divided by the same network without."""
    header = ["network", "seeds", "cost without", "with", "ratio", "error", "log loss", "CPU"]
    header += ["prediction", "bytes"]
    rows, costs = [], []
    for network in CASES:
        cost = paired(runs, network, method, "cost")
        if not len(cost):
            continue
        each = np.divide(*(cost + LITTLE).T)
        costs.append(geometric_mean(each))
        error = number(geometric_error(each)) if len(each) > 1 else ""
        others = [
            geometric_mean(np.divide(*paired(runs, network, method, key).T + 1e-9))
            for key in ("log_loss", "cpu_seconds", "predict_seconds", "bytes")
        ]
        means = [number(mean) for mean in cost.mean(axis=0)[::-1]]
        values = [number(costs[-1], 2), error, *(number(other, 2) for other in others)]
        rows.append([network, str(len(cost)), *means, *values])
    if len(costs) > 1:
        error = number(geometric_error(np.array(costs)))
        rows.append(
            ["all", "", "", "", number(geometric_mean(np.array(costs)), 2), error] + 4 * [""]
        )
    return table(header, rows)


def plot(runs: Sequence[dict[str, Any]], file: Path) -> None:
    """Cost with heads divided by the cost without, by depth, with paired standard errors."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(8, 3.2), layout="tight", sharey=True)
    for ax, name in zip(axes, ("digits", "CIFAR-10")):
        for norm, style in (("", "o-"), (", batch norm", "o--")):
            networks = {d: f"{name}, {d} convolutions{norm}" for d in (4, 8, 12, 16)}
            costs = {d: paired(runs, n, DEFAULT, "cost") + LITTLE for d, n in networks.items()}
            each = {d: np.divide(*cost.T) for d, cost in costs.items() if len(cost)}
            means = [geometric_mean(of_depth) for of_depth in each.values()]
            errors = [m * geometric_error(of_depth) for m, of_depth in zip(means, each.values())]
            label = "with batch norm" if norm else "plain"
            ax.errorbar([*each], means, errors, fmt=style, color="C0", capsize=4, label=label)
        ax.axhline(1, color="0.5", lw=1)
        ax.set(title=name, xlabel="convolutions", xticks=[*each], ylim=(0, 1.15))
    axes[0].set_ylabel("cost with heads / without")
    axes[0].legend(fontsize="small")
    figure.savefig(file)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[10, 11, 12], n_jobs=1, out=RESULTS, data_home=Path("data"))
    parser.add_argument("--networks", nargs="+", default=list(CASES), choices=CASES, metavar="NAME")
    parser.add_argument("--methods", nargs="+", default=[NONE, DEFAULT], choices=METHODS)
    parser.add_argument("--part", default="test", choices=("test", "validation"))
    parser.add_argument("--runs", type=Path, default=Path("out/head_runs"), help="finished runs")
    options = parser.parse_args(arguments)
    cells = product(options.networks, options.methods, options.seeds, [options.part])
    versions = {name: version(name) for name in ("torch", "numpy", "scikit-learn")}
    jobs = [
        [
            Run(
                "heads",
                {**dict(zip(CELL, cell)), "revision": REVISION, **versions},
                partial(fit_and_judge, *cell, data_home=options.data_home),
            )
        ]
        for cell in cells
    ]
    engine.run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    found = [from_json(file.read_text()) for file in sorted(options.runs.glob("heads_*.json"))]
    runs = [
        {**{name: one["identity"][name] for name in CELL}, **one["result"]}
        for one in found
        if one["identity"]["revision"] == REVISION
    ]
    runs.sort(key=lambda r: [r[name] for name in CELL])
    write_json(options.out / "heads.json", provenance() | {"runs": runs})
    report = []
    for part, method in product(("test", "validation"), METHODS):
        of_part = [r for r in runs if r["part"] == part]
        if method != NONE and any(r["method"] == method for r in of_part):
            title = f"{method.capitalize()}, {part} samples"
            report += [title, "-" * len(title), "", ratios(of_part, method), ""]
    (options.out / "heads.rst").write_text("\n".join(report))
    plot([r for r in runs if r["part"] == "test"], options.out / "heads.svg")
    print("\n".join(report))


if __name__ == "__main__":
    main()
