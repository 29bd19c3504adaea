"""Mean test cost by depth, of alpha 0, of the alphas from 0.2 to 0.5 and of those from 0.8 to 1.

The two branches of the curve over alpha. Each alpha has a rate of its own, chosen by one run, so
that single alphas vary more than means over several. Reads ``OUT/alpha_depth.json`` and runs
nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.options import make_parser
from benchmarks.paper.report import differences, format_table, plot_costs, save, summarize

ZERO, MIDDLE, HIGH = "0", "0.2 .. 0.5", "0.8 .. 1"
GROUPS = {ZERO: [0.0], MIDDLE: [0.2, 0.3, 0.4, 0.5], HIGH: [0.8, 0.9, 1.0]}
BY = ["dataset", "depth", "alphas"]


def main() -> None:
    options = make_parser(__doc__, out=Path("out")).parse_args()
    results = json.loads((options.out / "alpha_depth.json").read_text())
    rows = group_alphas(results["runs"])
    deep = [row for row in rows if row["depth"] > 1]
    right = [row for row in deep if row["alphas"] != ZERO]
    tables = {
        "costs": summarize(rows, BY),
        "left": summarize(differences(deep, "alphas", ZERO), BY, "difference"),
        "right": summarize(differences(right, "alphas", MIDDLE), BY, "difference"),
    }
    costs, left, right_branch = (format_table(t, "depth", "alphas") for t in tables.values())
    text = "\n\n".join(
        [
            "Mean test cost of several alphas +- standard error over the seeds",
            costs,
            f"Mean test cost above that of alpha {ZERO}, paired by seed",
            left,
            f"Mean test cost above that of alphas {MIDDLE}, paired by seed",
            right_branch,
            f"Single alphas that differ from alpha {ZERO} by more than two standard errors",
            count_significant(results["differences"]),
        ]
    )
    save("branches", options, text, **tables)
    plot_costs("branches", rows, options, x="depth", hue="alphas")


def group_alphas(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mean cost of each group of alphas, where a seed, data set and depth has all of them.

    With one hidden layer alpha has no effect, and all groups have the same cost.
    """
    costs: dict[tuple, dict[float | None, float]] = defaultdict(dict)
    for run in runs:
        costs[run["dataset"], run["depth"], run["seed"]][run["alpha"]] = run["test_cost"]
    return [
        {
            **{"dataset": dataset, "depth": depth, "seed": seed, "alphas": name},
            "test_cost": float(np.mean([of[alpha] for alpha in wanted])),
        }
        for name, alphas in GROUPS.items()
        for (dataset, depth, seed), of in costs.items()
        if of.keys() >= set(wanted := alphas if depth > 1 else [None])
    ]


def count_significant(differences: Sequence[dict[str, Any]]) -> str:
    """A line per data set: how many are lower and higher, of how many."""
    lines = []
    for dataset in dict.fromkeys(entry["dataset"] for entry in differences):
        entries = [e for e in differences if e["dataset"] == dataset and e["standard_error"]]
        ratios = [entry["mean"] / entry["standard_error"] for entry in entries]
        lower, higher = np.less(ratios, -2).sum(), np.greater(ratios, 2).sum()
        lines.append(f"{dataset}: {lower} lower and {higher} higher, of {len(ratios)}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
