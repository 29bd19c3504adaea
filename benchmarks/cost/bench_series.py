"""Networks of one's own on time series: our default, the rule, plain torch, and MiniROCKET.

Four networks on a simulated ECG and on sets of UCR. Runs are kept in ``--runs``; results go to
``--out`` as ``series.json`` and ``series.rst``. The sets and MiniROCKET come with the package aeon.
``--finished`` runs nothing, and reports what was run.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.nn import functional as F  # noqa: N812
from torch.optim.lr_scheduler import OneCycleLR

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxNet
from benchmarks.common import engine
from benchmarks.common.engine import FinishedRun, Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.ranks import geometric_mean
from benchmarks.cost.series_data import CHOSE, SETS, SeriesSplit, draw
from benchmarks.cost.series_networks import NETWORKS
from benchmarks.cost.tables import number, table

REVISION = 1  # of the rivals
OURS_REVISION = 1
EPOCHS, RATE, DECAY = 50, 1e-3, 1e-2
DEFAULT, ROCKET = "default", "MiniROCKET, logistic regression"
# Added to costs before they are divided: on some sets hardly a mistake is made.
LITTLE = 0.005

INTRODUCTION = """\
Networks on time series: geometric means over fits (sets, networks and seeds) of test cost, log
loss and CPU seconds of fitting, divided by those of our default. 0.005 is added to costs. In
brackets the standard error over fits; those of a set are not independent. "Others" are the sets
that played no part in the choice of the default, which seed 0 of ECG, ItalyPowerDemand and OSULeaf
made."""

# What a method returns: a function of series to probabilities, and whether costs decide.
Predict = Callable[[NDArray], NDArray]


def ours(split: SeriesSplit, network: str, seed: int, **settings: Any) -> Predict:
    """Fit our network; its module gets the number of classes from the data."""
    model = CostSensitiveAuxNet(
        NETWORKS[network], cost_matrix=split.cost_matrix, random_state=seed, **settings
    )
    return model.fit(split.X_train, split.y_train).predict_proba


def rule(split: SeriesSplit, network: str, seed: int) -> Predict:
    """The rule with a temperature from five folds, around our network without one."""
    model = CostSensitiveAuxNet(NETWORKS[network], temperature=1.0, random_state=seed)
    costs: Any = {"cost_matrix": split.cost_matrix, "calibration": "temperature"}
    model = BayesMinimumRiskClassifier(model, **costs)
    return model.fit(split.X_train, split.y_train).predict_proba


def rocket(split: SeriesSplit, network: str, seed: int) -> Predict:
    """MiniROCKET's features and a logistic regression, whose C is chosen, in the rule."""
    from aeon.transformations.collection.convolution_based import MiniRocket

    grid = {"C": [1e-4, 1e-3, 1e-2, 0.1, 1]}
    folds = min(5, int(np.bincount(split.y_train).min()))
    classifier = GridSearchCV(
        LogisticRegression(max_iter=300), grid, scoring="neg_log_loss", cv=folds
    )
    model = make_pipeline(MiniRocket(n_kernels=2000, random_state=seed), StandardScaler())
    model = make_pipeline(*(step for _, step in model.steps), classifier)
    costs: Any = {"cost_matrix": split.cost_matrix, "calibration": "temperature"}
    model = BayesMinimumRiskClassifier(model, **costs)
    return model.fit(split.X_train, split.y_train).predict_proba


def plain(
    split: SeriesSplit, network: str, seed: int, calibrated: bool = False, weighted: bool = False
) -> Predict:
    """A careful loop of torch: AdamW, one cycle, cross-entropy, and a temperature of a fifth.

    With weights, each class counts by the mean cost of its mistakes, and the most probable decides.
    """
    X, y, matrix = split.X_train, split.y_train, split.cost_matrix
    weight = None
    if weighted:
        dear = matrix.sum(axis=1)[y]
        weight = torch.tensor(matrix.sum(axis=1) / dear.mean(), dtype=torch.float32)
    temperature = 1.0
    if calibrated:
        counts = np.bincount(y)
        n_held_out = max(len(counts), round(len(y) / 5))
        rows, others = train_test_split(
            np.arange(len(y)), test_size=n_held_out, random_state=seed, stratify=y
        )
        z = logits(train(X[rows], y[rows], split, network, seed), X[others])
        temperature = least_log_loss(z, y[others])
    net = train(X, y, split, network, seed, weight)
    return lambda X: softmax(logits(net, X) / temperature, axis=1)


def train(
    X: NDArray,
    y: NDArray,
    split: SeriesSplit,
    network: str,
    seed: int,
    weight: torch.Tensor | None = None,
) -> Any:
    torch.manual_seed(seed)
    net = NETWORKS[network](X.shape[1:], len(split.cost_matrix)).train()
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY, fused=True)
    size = int(np.clip(len(y) // 32, 16, 128))
    steps = EPOCHS * -(-len(y) // size)
    cycle = OneCycleLR(optimizer, RATE, total_steps=steps, pct_start=0.1, cycle_momentum=False)
    x, label = torch.from_numpy(X), torch.from_numpy(y)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(y)).split(size):
            if len(rows) > 1:  # normalisation needs two
                optimizer.zero_grad()
                F.cross_entropy(net(x[rows]), label[rows], weight=weight).backward()
                optimizer.step()
            cycle.step()
    return net.eval()


@torch.no_grad()
def logits(net: Any, X: NDArray) -> NDArray:
    return torch.cat([net(x) for x in torch.from_numpy(X).split(512)]).double().numpy()


def least_log_loss(z: NDArray, y: NDArray) -> float:
    """The temperature of least log loss, with the prior that our rule has."""

    def loss(heat: float) -> float:
        log_p = log_softmax(z * np.exp(-heat), axis=1)[np.arange(len(y)), y]
        return float(10 / len(y) * heat**2 - log_p.mean())

    return float(np.exp(minimize_scalar(loss, bounds=np.log([0.2, 9]), method="bounded").x))


METHODS: dict[str, Callable[[SeriesSplit, str, int], Predict]] = {
    DEFAULT: ours,
    "alpha=0": partial(ours, alpha=0),
    "heads vote": partial(ours, combine_heads=True),
    "five networks": partial(ours, n_networks=5),
    "no temperature": partial(ours, temperature=1.0, n_networks=1),
    "early stopping": partial(ours, early_stopping=True, n_networks=1),
    "rule, temperature": rule,
    "plain torch": plain,
    "plain torch, temperature": partial(plain, calibrated=True),
    "plain torch, class weights": partial(plain, weighted=True),
    ROCKET: rocket,
}
OURS = [*METHODS][:7]
MOST_PROBABLE = {"plain torch, class weights"}


def judge(split: SeriesSplit, method: str, network: str, seed: int) -> dict[str, Any]:
    """Fit a method, and judge its decisions and probabilities on the test series."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        predict = METHODS[method](split, network, seed)
        seconds = time.process_time() - start
        p, y, matrix = predict(split.X_test), split.y_test, split.cost_matrix
    choice = p.argmax(axis=1) if method in MOST_PROBABLE else (p @ matrix).argmin(axis=1)
    return {
        "cost": float(matrix[y, choice].mean()),
        "log_loss": float(-np.log(p[np.arange(len(y)), y].clip(1e-6)).mean()),
        "errors": float((p.argmax(axis=1) != y).mean()),
        "cpu_seconds": round(seconds, 2),
    }


@dataclass(frozen=True)
class Job:
    """All methods and networks on the split of a set that a seed draws."""

    name: str
    seed: int
    networks: Sequence[str]
    methods: Sequence[str]
    finished: bool = False

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Pairs of a network and a method; MiniROCKET has no network."""
        pairs = [(n, m) for n in self.networks for m in self.methods if m != ROCKET]
        return pairs + [("-", ROCKET)] * (ROCKET in self.methods)

    def __iter__(self) -> Iterator[Run]:
        split = draw(self.name, self.seed)
        data, make = split.digest(), FinishedRun if self.finished else Run
        for network, method in self.cells:
            identity = {
                **{"data": data, "seed": self.seed, "network": network, "method": method},
                "revision": [REVISION, OURS_REVISION] if method in OURS else [REVISION],
                **{p: version(p) for p in ("torch", "numpy", *["aeon"] * (method == ROCKET))},
            }
            compute = partial(judge, split, method, network, self.seed)
            yield make(f"{self.name}_seed{self.seed}", identity, compute)

    def rows(self, results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for (network, method), result in zip(self.cells, results):
            known = {"set": self.name, "seed": self.seed, "network": network, "method": method}
            if result:
                yield {**known, **result}


def divided(runs: Sequence[dict[str, Any]], method: str) -> list[dict[str, Any]]:
    """Set, cost, log loss and CPU seconds of a method, divided by those of our default on a fit."""
    value = {(r["set"], r["network"], r["seed"], r["method"]): r for r in runs}
    found = []
    for (name, network, seed, of), default in value.items():
        one = value.get((name, network, seed, method)) or value.get((name, "-", seed, method))
        if of == DEFAULT and one:
            added = {"cost": LITTLE, "log_loss": 0, "cpu_seconds": 0}
            ratios = {m: (one[m] + more) / (default[m] + more) for m, more in added.items()}
            found.append({"set": name, **ratios})
    return found


def mean_and_error(ratios: Sequence[float]) -> str:
    if not ratios:
        return "-"
    error = np.log(ratios).std() / max(len(ratios) - 1, 1) ** 0.5
    return f"{number(geometric_mean(np.array(ratios)))} ({number(error)})"


def render(runs: Sequence[dict[str, Any]]) -> str:
    """Ratios to our default, and mean costs of all sets and networks, as reStructuredText."""
    methods = [m for m in METHODS if any(r["method"] == m for r in runs)]
    lines = []
    for method in methods:
        found = divided(runs, method)
        costs = [r["cost"] for r in found], [r["cost"] for r in found if r["set"] not in CHOSE]
        more = [[r[m] for r in found] for m in ("log_loss", "cpu_seconds")]
        means = [number(geometric_mean(np.array(m))) if m else "-" for m in more]
        lines.append([method, *map(mean_and_error, costs), *means, str(len(found))])
    head = ["divided by the default", "cost", "others", "log loss", "CPU time", "fits"]
    parts = [INTRODUCTION, table(head, lines)]
    for seed in sorted({r["seed"] for r in runs}):
        of_seed = [r for r in runs if r["seed"] == seed]
        cost = {(r["set"], r["network"], r["method"]): r["cost"] for r in of_seed}
        cells = dict.fromkeys((r["set"], r["network"]) for r in of_seed)
        of = [[*cell, *(number(cost.get((*cell, m))) for m in methods)] for cell in cells]
        title = f"Test costs, seed {seed}"
        parts += [f"{title}\n{'-' * len(title)}", table(["set", "network", *methods], of)]
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[1, 2, 3], n_jobs=1, out=RESULTS)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS, metavar="SET")
    parser.add_argument("--networks", nargs="+", default=[*NETWORKS], choices=[*NETWORKS])
    parser.add_argument(
        "--methods", nargs="+", default=[*METHODS], choices=[*METHODS], metavar="METHOD"
    )
    parser.add_argument("--runs", type=Path, default=Path("out/series_runs"), help="finished runs")
    parser.add_argument("--finished", action="store_true", help="run nothing, report what was run")
    options: argparse.Namespace = parser.parse_args(arguments)
    jobs = [
        Job(name, seed, options.networks, options.methods, options.finished)
        for seed in options.seeds
        for name in options.sets
    ]
    results = engine.run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    runs = [row for job, of_job in zip(jobs, results) for row in job.rows(of_job)]
    write_json(options.out / "series.json", {**provenance("aeon"), "runs": runs})
    (options.out / "series.rst").write_text(render(runs))
    print(render(runs))


if __name__ == "__main__":
    main()
