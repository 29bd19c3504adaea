"""Misses that cost 100 to 10,000 false alarms: the default loss, cross-entropy, and no model.

Two classes, one of them rare: smooth signals, whose probabilities are known, and rows of which a
few have wrong labels. A network, a module of one's own and the ensemble are each fitted with their
default loss and with cross-entropy; the constant decision is the best one for the training rows.
Finished runs are kept in ``--runs``; results go to ``--out`` as ``extreme.json`` and
``extreme.rst``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from torch import Tensor, nn

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitiveAuxNet,
    CostSensitiveEnsembleClassifier,
)
from benchmarks.common import engine
from benchmarks.common.engine import Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.tables import number, table

REVISION = 1  # to be raised where a change of our code changes results
RATIOS = (100, 1000, 10_000)
N_TEST = 40_000
CONSTANT = "constant"

INTRODUCTION = """\
Mean test costs of two classes; a false alarm costs 1. The last column is the cost of the default,
divided on each seed by the least one of its line: mean and worst of the seeds."""


class Draw(NamedTuple):
    """Rows to learn from, and test rows with probabilities of the rare class, or labels."""

    X: NDArray[np.float32]
    y: NDArray[np.intp]
    X_test: NDArray[np.float32]
    p_test: NDArray[Any]


def signals(seed: int) -> Draw:
    """Sines of 24 steps in noise; the probability, 1 % on average, grows with the amplitude."""
    rng = np.random.default_rng(seed)
    n, wave = 4000, np.sin(np.linspace(0, 2 * np.pi, 24, endpoint=False))
    size = rng.normal(size=n + N_TEST)
    X = (size[:, None] * wave + rng.normal(0, 0.3, (len(size), 24))).astype(np.float32)
    p = expit(2.2 * size - 6.5)
    return Draw(X[:n], (rng.random(n) < p[:n]).astype(int), X[n:], p[n:])


def wrong_labels(seed: int) -> Draw:
    """Clusters of 20 columns: 2 % are of the rare class, and 0.2 % have a wrong label."""
    n = 6000
    X, y = make_classification(
        **{"n_samples": n + N_TEST, "n_features": 20, "n_informative": 8, "n_redundant": 4},
        **{"weights": [0.98], "flip_y": 0.004, "class_sep": 1.2, "random_state": seed},
    )
    X = X.astype(np.float32)
    return Draw(X[:n], y[:n], X[n:], y[n:])


DATA: dict[str, Callable[[int], Draw]] = {"signals": signals, "wrong labels": wrong_labels}


class Module(nn.Module):
    """Two hidden layers, as a user brings them."""

    def __init__(self, input_shape: Sequence[int], width: int = 64) -> None:
        super().__init__()
        n = input_shape[0]
        self.scale = nn.BatchNorm1d(n, affine=False)
        self.first = nn.Sequential(nn.Linear(n, width), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(width, width), nn.ReLU())
        self.last = nn.Linear(width, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.second(self.first(self.scale(x))))


def blind_network() -> Any:
    return CostSensitiveEnsembleClassifier().set_params(network__loss="cross_entropy")


# The models of a kind: ours, and what its cost is divided by.
KINDS: dict[str, dict[str, Callable[[], Any]]] = {
    "network": {
        "default": CostSensitiveAuxMLP,
        "cross-entropy": partial(CostSensitiveAuxMLP, loss="cross_entropy"),
    },
    "module": {
        "default": partial(CostSensitiveAuxNet, Module),
        "cross-entropy": partial(CostSensitiveAuxNet, Module, loss="cross_entropy"),
    },
    "ensemble": {
        "default": CostSensitiveEnsembleClassifier,
        "cross-entropy": blind_network,
        "boosting": partial(
            BayesMinimumRiskClassifier, HistGradientBoostingClassifier(), calibration="temperature"
        ),
    },
}


def judge(given: Draw, make: Callable[[], Any], ratio: float, seed: int) -> dict[str, float]:
    """Fit a model, and judge its decisions by the probabilities or labels of the test rows."""
    model = make().set_params(cost_matrix=[[0, 1], [ratio, 0]])
    deep = model.get_params()
    states = [k for k in deep if k.endswith("random_state") and deep[k] is None]
    model.set_params(**dict.fromkeys(states, seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        alarm = model.fit(given.X, given.y).predict(given.X_test) == 1
    seconds = time.process_time() - start
    return {"cost": mean_cost(alarm, given.p_test, ratio), "cpu_seconds": round(seconds, 2)}


def mean_cost(alarm: Any, p: NDArray[Any], ratio: float) -> float:
    return float(np.where(alarm, 1 - p, ratio * p).mean())


@dataclass(frozen=True)
class Job:
    """All models of some kinds on what a seed draws."""

    data: str
    ratio: int
    seed: int
    kinds: Sequence[str]

    @property
    def cells(self) -> list[tuple[str, str]]:
        return [(kind, method) for kind in self.kinds for method in KINDS[kind]]

    def __iter__(self) -> Iterator[Run]:
        given = DATA[self.data](self.seed)
        for kind, method in self.cells:
            identity = {
                **{"data": self.data, "ratio": self.ratio, "seed": self.seed},
                **{"kind": kind, "method": method, "revision": REVISION},
                **{p: version(p) for p in ("torch", "numpy", "scikit-learn")},
            }
            compute = partial(judge, given, KINDS[kind][method], self.ratio, self.seed)
            name = f"{self.data.replace(' ', '_')}_{self.ratio}_seed{self.seed}"
            yield Run(name, identity, compute)

    def rows(self, results: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        known = {"data": self.data, "ratio": self.ratio, "seed": self.seed}
        for (kind, method), result in zip(self.cells, results):
            yield {**known, "kind": kind, "method": method, **result}
        given = DATA[self.data](self.seed)
        alarm = given.y.mean() * self.ratio > 1 - given.y.mean()
        cost = mean_cost(alarm, given.p_test, self.ratio)
        for kind in self.kinds:
            yield {**known, "kind": kind, "method": CONSTANT, "cost": cost}


def divided(runs: Sequence[dict[str, Any]], kind: str, data: str, ratio: int) -> NDArray[Any]:
    """Cost of the default divided by the least of the others, on each seed."""
    found = [r for r in runs if (r["kind"], r["data"], r["ratio"]) == (kind, data, ratio)]
    costs = {(r["seed"], r["method"]): r["cost"] for r in found}
    seeds = sorted({seed for seed, _ in costs})
    others = [*list(KINDS[kind])[1:], CONSTANT]
    return np.array([costs[s, "default"] / min(costs[s, m] for m in others) for s in seeds])


def render(runs: Sequence[dict[str, Any]]) -> str:
    """Mean costs and ratios, as reStructuredText."""
    parts = [INTRODUCTION]
    for kind in dict.fromkeys(r["kind"] for r in runs):
        methods = [*KINDS[kind], CONSTANT]
        lines, every = [], []
        cells = dict.fromkeys((r["data"], r["ratio"]) for r in runs if r["kind"] == kind)
        for data, ratio in sorted(cells):
            of_cell = [r for r in runs if (r["kind"], r["data"], r["ratio"]) == (kind, data, ratio)]
            means = [np.mean([r["cost"] for r in of_cell if r["method"] == m]) for m in methods]
            every.append(divided(runs, kind, data, ratio))
            shown = f"{every[-1].mean():.3f} ({every[-1].max():.3f})"
            lines.append([data, f"{ratio:,}", *map(number, map(float, means)), shown])
        mean, worst = np.mean([ratios.mean() for ratios in every]), max(r.max() for r in every)
        lines.append(["all", "", *[""] * len(methods), f"{mean:.3f} ({worst:.3f})"])
        head = [kind, "a miss", *methods, "ratio (worst)"]
        parts.append(table(head, [[c or "\\ " for c in line] for line in lines]))
    return "\n\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[20, 21, 22], n_jobs=1, out=RESULTS)
    parser.add_argument("--ratios", type=int, nargs="+", default=RATIOS, help="costs of a miss")
    parser.add_argument("--kinds", nargs="+", default=[*KINDS], choices=[*KINDS])
    parser.add_argument("--runs", type=Path, default=Path("out/extreme_runs"), help="finished runs")
    options: argparse.Namespace = parser.parse_args(arguments)
    jobs = [
        Job(data, ratio, seed, options.kinds)
        for seed, ratio, data in product(options.seeds, options.ratios, DATA)
    ]
    results = engine.run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    runs = [row for job, of_job in zip(jobs, results) for row in job.rows(of_job)]
    write_json(options.out / "extreme.json", {**provenance(), "runs": runs})
    (options.out / "extreme.rst").write_text(render(runs))
    print(render(runs))


if __name__ == "__main__":
    main()
