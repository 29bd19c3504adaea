"""Both branches of the curve over alpha, as differences between means over several alphas.

Each alpha has a rate of its own, chosen by one run, so that single alphas vary more than these
means. Differences are paired by seed. Reads ``OUT/alpha_depth.json`` and runs nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common.options import make_parser
from benchmarks.paper.report import format_table, summarize

MIDDLE = [0.2, 0.3, 0.4, 0.5]  # where the paper finds the least costs
BRANCHES = {
    "0.2 .. 0.5 minus 0": (MIDDLE, [0.0]),
    "0.8 .. 1 minus 0.2 .. 0.5": ([0.8, 0.9, 1.0], MIDDLE),
}
BY = ["dataset", "depth", "branch"]


def main() -> None:
    options = make_parser(__doc__, out=Path("out")).parse_args()
    results = json.loads((options.out / "alpha_depth.json").read_text())
    means = summarize(compare_branches(results["runs"]), BY, "difference")
    text = "\n\n".join(
        [
            "Difference between means over alphas +- standard error over the seeds",
            format_table(means, row="depth", column="branch"),
            "Single alphas that differ from alpha 0 by more than two standard errors",
            count_significant(results["differences"]),
        ]
    )
    (options.out / "branches.txt").write_text(text + "\n")
    print(text)


def compare_branches(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Differences of each seed, data set and depth that has all the alphas needed."""
    costs: dict[tuple, dict[float, float]] = defaultdict(dict)
    for run in runs:
        costs[run["dataset"], run["depth"], run["seed"]][run["alpha"]] = run["test_cost"]
    return [
        {
            **{"dataset": dataset, "depth": depth, "seed": seed, "branch": branch},
            "difference": float(np.subtract(*(np.mean([of[a] for a in part]) for part in parts))),
        }
        for (dataset, depth, seed), of in costs.items()
        for branch, parts in BRANCHES.items()
        if of.keys() >= {*parts[0], *parts[1]}
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
