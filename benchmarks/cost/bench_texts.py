"""Short texts of many classes: rule, network and ensemble on frozen embeddings.

CLINC150, Banking77 and TREC, each also with the decision to ask a person at cost 1. All models see
the embeddings of :mod:`benchmarks.common.text_sets`, which are kept in ``--embeddings``. C of the
logistic regression is chosen by cross-validation of the training rows. Results go to ``--out`` as
``texts.json`` and ``texts.rst``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveAuxMLP,
    CostSensitiveEnsembleClassifier,
)
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import from_json, write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.common.text_sets import ASK, NAMES, TextSet, embed, load_texts

REFERENCE = "logistic regression, temperature"
Model = Callable[[int, dict[str, Any]], Any]


def logistic() -> GridSearchCV:
    grid = {"C": [1.0, 10.0, 100.0]}
    return GridSearchCV(LogisticRegression(max_iter=1000), grid, scoring="neg_log_loss", cv=3)


def rule(calibration: str | None, seed: int, costs: dict[str, Any]) -> Any:
    return BayesMinimumRiskClassifier(logistic(), calibration=calibration, **costs)


MODELS: dict[str, Model] = {
    "logistic regression": lambda seed, costs: rule(None, seed, costs),
    REFERENCE: lambda seed, costs: rule("temperature", seed, costs),
    "logistic regression, sigmoid": lambda seed, costs: rule("sigmoid", seed, costs),
    "rule with its defaults": lambda seed, costs: BayesMinimumRiskClassifier(**costs),
    "network": lambda seed, costs: CostSensitiveAuxMLP(random_state=seed, **costs),
    "ensemble": lambda seed, costs: CostSensitiveEnsembleClassifier(random_state=seed, **costs),
}


def embedded(folder: Path, texts: Sequence[str], name: str) -> NDArray[np.float32]:
    """Embeddings of texts, computed once."""
    path = folder / f"{name}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, vectors=embed(texts).astype(np.float16))
    return np.load(path)["vectors"].astype(np.float32)


def judge(
    texts: TextSet, rows: Sequence[NDArray], make: Model, seed: int, asks: bool
) -> dict[str, Any]:
    """Fit a model, and judge its decisions, and its most probable classes."""
    costs, labels = texts.costs, np.array(texts.classes)
    decisions = [*texts.classes, "ask a person"] if asks else texts.classes
    if asks:
        costs = np.c_[costs, np.full(len(costs), ASK)]
    start = time.process_time()
    known = {"cost_matrix": costs, **({"decisions": decisions} if asks else {})}
    model = make(seed, known).fit(rows[0], labels[texts.label])
    seconds = time.process_time() - start
    p, n = model.predict_proba(rows[1]), len(texts.test_label)
    paid = costs[texts.test_label, [decisions.index(d) for d in model.decide(rows[1])]]
    without = costs[texts.test_label, p.argmax(axis=1)]
    more = paid - without
    return {
        "test_cost": float(paid.mean()),
        "most_probable": float(without.mean()),
        "difference": float(more.mean()),
        "error": float(more.std(ddof=1) / np.sqrt(n)),
        "log_loss": float(-np.log(p[np.arange(n), texts.test_label].clip(1e-6)).mean()),
        "cpu_seconds": seconds,
    }


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    runs = from_json((options.out / "texts.json").read_text())["runs"] if options.append else []
    done = {(r["set"], r["asks"], r["seed"], r["model"]) for r in runs}
    for name, seed in product(options.sets, options.seeds):
        texts = load_texts(name, options.data_home, seed)
        parts = {"train": texts.texts, "test": texts.test_texts}
        rows = [embedded(options.embeddings, t, f"{name}_{seed}_{p}") for p, t in parts.items()]
        for asks, model in product((False, True), options.models):
            if (name, asks, seed, model) in done:
                continue
            try:
                found = judge(texts, rows, MODELS[model], seed, asks)
            except ValueError as error:  # calibration of classes that are too rare
                print(name, model, error)
                continue
            runs.append({"set": name, "asks": asks, "seed": seed, "model": model, **found})
            print(runs[-1], flush=True)
            write_json(options.out / "texts.json", provenance("transformers") | {"runs": runs})
    return runs


def table(runs: Sequence[dict[str, Any]]) -> str:
    """Costs of each set, and geometric means of the ratios to the reference."""
    columns = [(name, asks) for asks in (False, True) for name in NAMES]
    cost = {(r["model"], r["set"], r["asks"], r["seed"]): r for r in runs}
    lines = []
    for model in dict.fromkeys(r["model"] for r in runs):
        of_model = {key[1:]: r for key, r in cost.items() if key[0] == model}
        cells = []
        for column in columns:
            values = [r["test_cost"] for key, r in of_model.items() if key[:2] == column]
            cells.append(f"{np.mean(values):.3f}" if values else "\\-")
        pairs = [(r, cost.get((REFERENCE, *key))) for key, r in of_model.items()]
        ratios = [
            np.exp(np.mean([np.log(r[kind] / other[kind]) for r, other in pairs if other]))
            for kind in ("test_cost", "log_loss")
        ]
        worse = sum(r["difference"] > 2 * r["error"] for r in of_model.values())
        seconds = np.exp(np.mean([np.log(r["cpu_seconds"]) for r in of_model.values()]))
        numbers = [f"{ratio:.2f}" for ratio in ratios] + [str(worse), f"{seconds:.1f}"]
        lines.append([model, *cells, *numbers])
    asked = [f"{name}{', ask' if asks else ''}" for name, asks in columns]
    head = ["model", *asked, "cost", "log loss", "worse", "CPU s"]
    widths = [max(map(len, column)) for column in zip(head, *lines)]
    border = "  ".join("=" * width for width in widths)
    body = [
        "  ".join(f"{c:<{w}}" for c, w in zip(line, widths)).rstrip() for line in (head, *lines)
    ]
    return "\n".join([border, body[0], border, *body[1:], border]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[0, 1], out=RESULTS, data_home=Path("data"))
    parser.add_argument("--embeddings", type=Path, default=Path("embeddings"), help="their folder")
    parser.add_argument("--sets", nargs="+", default=list(NAMES), choices=NAMES, help="texts")
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--append", action="store_true", help="to the results that are there")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        text = table(run(options))
    (options.out / "texts.rst").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
