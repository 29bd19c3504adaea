"""The numbers of the table and of the plot on the first page, from committed results."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common.json_files import from_json

RESULTS = Path(__file__).parent / "results"
# Added to the costs of the thirty imbalanced tables, as in bench_keel, and fits of each.
LITTLE, N_FOLDS = 0.005, 5


class Row(NamedTuple):
    """A kind of data, CPU seconds of a fit, and our mean cost divided by the costs of others."""

    data: str
    seconds: float
    ratios: dict[str, float]


def _read(name: str) -> dict[str, Any]:
    return from_json((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def _runs(name: str, method: str, where: str) -> dict[str, dict[tuple[str, int], dict[str, Any]]]:
    """Runs by method, and by the problem and the seed."""
    found: dict[str, dict[tuple[str, int], dict[str, Any]]] = defaultdict(dict)
    for run in _read(name)["runs"]:
        found[run[method]][run[where], run["seed"]] = run
    return found


def _ratio(runs: dict, ours: str, theirs: str) -> float:
    """Geometric mean over the problems of the mean ratio over the seeds."""
    costs = defaultdict(list)
    for key, run in runs[theirs].items():
        costs[key[0]].append((runs[ours][key]["test_cost"], run["test_cost"]))
    ratios = [np.mean([a / b for a, b in pairs]) for pairs in costs.values()]
    return float(np.exp(np.mean(np.log(ratios))))


def _seconds(runs: dict) -> float:
    return float(np.mean([run["cpu_seconds"] for run in runs.values()]))


def _rare_classes() -> Row:
    runs = _runs("keel", "method", "set")
    cost = {
        method: np.array([of_set["cost"] for of_set in runs[method].values()]) + LITTLE
        for method in runs
    }
    ours = cost["ours: ensemble"]
    rivals = {name: values for name, values in cost.items() if not name.startswith("ours")}
    compared = {
        "logistic regression": cost["logistic"],
        "calibrated boosting": cost["boosting, isotonic"],
        "best of five others": np.min([*rivals.values()], axis=0),
    }
    ratios = {name: float(np.exp(np.log(ours / c).mean())) for name, c in compared.items()}
    return Row("rare classes", _seconds(runs["ours: ensemble"]) / N_FOLDS, ratios)


def rows() -> list[Row]:
    """The rows of the table."""
    found = [_rare_classes()]
    for name, data in {"tables_wide": "sixteen tables", "tables_held_out": "ten tables"}.items():
        runs = _runs(name, "method", "set")
        ratios = {
            label: _ratio(runs, "ours: ensemble", method)
            for label, method in {
                "logistic regression": "logistic",
                "calibrated boosting": "boosting, isotonic",
            }.items()
        }
        found.append(Row(data, _seconds(runs["ours: ensemble"]), ratios))

    texts = defaultdict(dict)
    for run in _read("texts")["runs"]:
        texts[run["model"]][(run["set"], run["asks"]), run["seed"]] = run
    ratio = _ratio(texts, "ensemble", "logistic regression, temperature")
    found.append(Row("texts", _seconds(texts["ensemble"]), {"logistic regression": ratio}))

    images = _read("pretrained")
    rivals = ["blind", "Bayes", "Bayes, temperature", "features, logistic", "features, MLP"]
    ratios = [
        of_set["default"]["cost"] / min(of_set[rival]["cost"] for rival in rivals)
        for of_set in images["table"].values()
    ]
    seconds = [images["cpu_seconds"][f"{net}, default"] for net in ("squeezenet", "efficientnet")]
    best = {"best of five others": float(np.exp(np.mean(np.log(ratios))))}
    found.append(Row("images", float(np.mean(seconds)), best))

    large = {
        case["model"]: case
        for case in _read("growth")["cases"]
        if (case["kind"], case["rows"]) == ("claims", 1_000_000)
    }
    ours = large["ours: ensemble"]
    ratio = ours["cost"] / large["boosting, early stop"]["cost"]
    found.append(Row("a million rows", ours["cpu_seconds"], {"boosting": ratio}))
    return found


if __name__ == "__main__":
    for row in rows():
        ratios = ", ".join(f"{value:.2f} of {name}" for name, value in row.ratios.items())
        print(f"{row.data}: {row.seconds:.1f} s, {ratios}")
