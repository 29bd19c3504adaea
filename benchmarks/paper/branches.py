"""Mean test cost by depth, of alpha 0, of the alphas from 0.2 to 0.5 and of those from 0.8 to 1.

The two branches of the curve over alpha. Each alpha has a rate of its own, chosen by one run, so
that single alphas vary more than means over several.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.paper.report import Row

ZERO, MIDDLE, HIGH = "0", "0.2 .. 0.5", "0.8 .. 1"
GROUPS = {ZERO: [0.0], MIDDLE: [0.2, 0.3, 0.4, 0.5], HIGH: [0.8, 0.9, 1.0]}


def group_alphas(runs: Sequence[Row]) -> list[Row]:
    """Mean cost of each group of alphas, where a seed, data set and depth has all of them.

    With one hidden layer alpha has no effect, and all groups have the same cost. Data sets of
    which no deeper network has them all are left out.
    """
    costs: dict[tuple, dict[float | None, float]] = defaultdict(dict)
    for run in runs:
        costs[run["dataset"], run["depth"], run["seed"]][run["alpha"]] = run["test_cost"]
    complete = {
        key: of
        for key, of in costs.items()
        if key[1] == 1 or of.keys() >= {alpha for group in GROUPS.values() for alpha in group}
    }
    deep = {dataset for dataset, depth, _ in complete if depth > 1}
    return [
        {
            **{"dataset": dataset, "depth": depth, "seed": seed, "alphas": name},
            "test_cost": float(np.mean([of[alpha if depth > 1 else None] for alpha in alphas])),
        }
        for name, alphas in GROUPS.items()
        for (dataset, depth, seed), of in complete.items()
        if dataset in deep
    ]
