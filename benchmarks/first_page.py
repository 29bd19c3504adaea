"""The numbers of the table and of the plot on the first page, from committed results."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import sem, t

from benchmarks.common.json_files import from_json

RESULTS = Path(__file__).parent / "results"
# Added to the costs of the thirty imbalanced tables, as in bench_keel, and fits of each.
LITTLE, N_FOLDS = 0.005, 5
TABLES = {"sixteen tables": "tables_wide", "ten tables": "tables_held_out"}


class Row(NamedTuple):
    """A kind of data, CPU seconds of a fit, and our mean cost divided by the costs of others.

    An interval holds 95 % of the t distribution of the mean log ratio over the data sets; a row of
    one data set has none.
    """

    data: str
    seconds: float
    ratios: dict[str, float]
    intervals: dict[str, tuple[float, float]]


def _row(data: str, seconds: float, of_sets: dict[str, Any]) -> Row:
    """Geometric means over the data sets, of whose costs `of_sets` holds the ratios."""
    ratios, intervals = {}, {}
    for name, values in of_sets.items():
        logs = np.log(values)
        ratios[name] = float(np.exp(logs.mean()))
        if len(logs) > 1:
            interval = t.interval(0.95, len(logs) - 1, logs.mean(), sem(logs))
            intervals[name] = tuple(map(float, np.exp(interval)))
    return Row(data, seconds, ratios, intervals)


def _read(name: str) -> dict[str, Any]:
    return from_json((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _runs(name: str, method: str, where: str) -> dict[str, dict[tuple[str, int], dict[str, Any]]]:
    """Runs by method, and by the problem and the seed."""
    found: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for run in _read(name)["runs"]:
        found[run[method]][run[where], run["seed"]] = run
    return found


def _of_sets(runs: dict, ours: str, theirs: str) -> list[float]:
    """The mean ratio over the seeds, for each problem."""
    costs = defaultdict(list)
    for key, run in runs[theirs].items():
        costs[key[0]].append((runs[ours][key]["test_cost"], run["test_cost"]))
    return [float(np.mean([a / b for a, b in pairs])) for pairs in costs.values()]


def _ratio(runs: dict, ours: str, theirs: str) -> float:
    """Geometric mean over the problems of the mean ratio over the seeds."""
    return float(np.exp(np.mean(np.log(_of_sets(runs, ours, theirs)))))


def _seconds(runs: dict) -> float:
    return float(np.mean([run["cpu_seconds"] for run in runs.values()]))


def _rare_classes(method: str = "ours: ensemble") -> Row:
    runs = _runs("keel", "method", "set")
    cost = {
        method: np.array([of_set["cost"] for of_set in runs[method].values()]) + LITTLE
        for method in runs
    }
    rivals = {name: values for name, values in cost.items() if not name.startswith("ours")}
    boosting = min((m for m in rivals if "boosting" in m), key=lambda m: np.log(cost[m]).mean())
    compared = {
        "logistic regression": cost["logistic"],
        "gradient boosting": cost[boosting],
        "best of five others": np.min([*rivals.values()], axis=0),
    }
    of_sets = {name: cost[method] / c for name, c in compared.items()}
    return _row("rare classes", _seconds(runs[method]) / N_FOLDS, of_sets)


def _tables(data: str, name: str, method: str = "ours: ensemble") -> Row:
    runs = _runs(name, "method", "set")
    # Of the kinds of boosting, calibrated, averaged or neither, the best on these very sets.
    kinds = [m for m in runs if "boosting" in m and m != "boosting, searched"]
    boosting = max(kinds, key=lambda m: _ratio(runs, "ours: ensemble", m))
    methods = {"logistic regression": "logistic", "gradient boosting": boosting}
    if "AutoGluon" in runs:
        methods["AutoGluon"] = "AutoGluon"
    of_sets = {k: _of_sets(runs, method, rival) for k, rival in methods.items()}
    if "AutoGluon" in runs and method == "ours: ensemble":  # CatBoost ran on the same sets.
        of_sets["CatBoost"] = _of_sets(_runs("tables_members", "method", "set"), method, "CatBoost")
    return _row(data, _seconds(runs[method]), of_sets)


def _deep_tables() -> Row:
    runs = _runs("deep_tables", "method", "set")
    ours, rival = "ours: ensemble", "RealMLP, five folds"
    return _row("deep tables", _seconds(runs[ours]), {rival: _of_sets(runs, ours, rival)})


def rows() -> list[Row]:
    """The rows of the table."""
    found = [_rare_classes(), *map(_tables, TABLES, TABLES.values()), _deep_tables()]

    texts = defaultdict(dict)
    for run in _read("texts")["runs"]:
        texts[run["model"]][(run["set"], run["asks"]), run["seed"]] = run
    # Three corpora, each with and without the decision to ask, which are no two corpora.
    ratios = _of_sets(texts, "ensemble", "logistic regression, temperature")
    problems = dict.fromkeys(key[0] for key in texts["logistic regression, temperature"])
    corpora = defaultdict(list)
    for (corpus, _), ratio in zip(problems, ratios):
        corpora[corpus].append(np.log(ratio))
    of_corpora = [float(np.exp(np.mean(logs))) for logs in corpora.values()]
    found.append(_row("texts", _seconds(texts["ensemble"]), {"logistic regression": of_corpora}))

    images = _read("pretrained")
    rivals = ["blind", "Bayes", "Bayes, temperature", "features, logistic", "features, MLP"]
    ratios = [
        of_set["default"]["cost"] / min(of_set[rival]["cost"] for rival in rivals)
        for of_set in images["table"].values()
    ]
    seconds = [images["cpu_seconds"][f"{net}, default"] for net in ("squeezenet", "efficientnet")]
    found.append(_row("images", float(np.mean(seconds)), {"best of five others": ratios}))

    large = {
        case["model"]: case
        for case in _read("growth")["cases"]
        if (case["kind"], case["rows"]) == ("claims", 1_000_000)
    }
    ours = large["ours: ensemble"]
    ratio = ours["cost"] / large["boosting, early stop"]["cost"]
    found.append(_row("a million rows", ours["cpu_seconds"], {"gradient boosting": [ratio]}))
    return found


def network_alone() -> list[Row]:
    """The same for the network without gradient boosting."""
    network = "ours: default"
    of_tables = [_tables(data, name, network) for data, name in TABLES.items()]
    return [_rare_classes(network), *of_tables]


def labels_or_costs() -> Row:
    """The two losses that learn labels, divided by the four that learn costs, on small data."""
    runs = _runs("cost_small", "method", "setting")
    # A thousandth of the cost of a constant prediction is added, as in bench_cost.
    logs = {
        method: np.log([run["test_cost"] + run["constant_cost"] / 1000 for run in found.values()])
        for method, found in runs.items()
    }
    labels = ["ours: default", "loss: cross-entropy, alpha 0.2"]
    costs = [name for name in logs if name.startswith("loss: ") and name not in labels]
    mean = {
        kind: np.mean([logs[m] for m in names], axis=0)
        for kind, names in {"labels": labels, "costs": costs}.items()
    }
    seconds = _seconds(runs[labels[0]])
    of_each = {name: np.exp(logs[labels[0]] - logs[name]) for name in costs}
    return _row("losses", seconds, {"all": np.exp(mean["labels"] - mean["costs"]), **of_each})


if __name__ == "__main__":
    for row in [*rows(), *network_alone(), labels_or_costs()]:
        ratios = ", ".join(
            f"{value:.2f} of {name} {np.round(row.intervals.get(name, ()), 2)}"
            for name, value in row.ratios.items()
        )
        print(f"{row.data}: {row.seconds:.1f} s, {ratios}")
