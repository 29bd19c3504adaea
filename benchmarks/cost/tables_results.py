"""The runs of `bench_tables` as summaries and tables.

A cell is a set at a size. A split is what a seed draws there; all methods share it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.common.statistics import standard_error
from benchmarks.cost.ranks import geometric_error, geometric_mean
from benchmarks.cost.tables import number, table
from benchmarks.cost.tables_methods import BOOSTINGS, DEFAULT

Row = dict[str, Any]
Cell = tuple[str, int]

INTRODUCTION = """\
Mean test costs on real tables. A ratio is to the boosting of scikit-learn, with or without early
stopping, whichever costs less on the test rows of the same split, a choice in its favour. The
ratio of a set is the mean over its splits, with its standard error, which is too small as splits
share rows; ratios over sets are geometric means, with the standard error over the sets. Not all
methods ran on all splits: a ratio of two methods is of the splits that both have, and methods have
mean ranks if they ran on all sets. Rows of training are as many as the set lets where these are
fewer than the size, but no fewer than two thirds of it. "To constant" is the cost over that of the
better constant decision. The log loss is divided by the smaller one of the two boostings. CPU
seconds are those of fitting, with one thread."""


def by_cell(runs: Sequence[Row]) -> list[Row]:
    """What each method comes to on each set at each size, in the order of the runs."""
    return [row for cell in _cells(runs) for row in _rows(runs, cell)]


def _cells(rows: Sequence[Row]) -> list[Cell]:
    return list(dict.fromkeys((row["set"], row["size"]) for row in rows))


def _rows(runs: Sequence[Row], cell: Cell) -> Iterator[Row]:
    here = [run for run in runs if (run["set"], run["size"]) == cell]
    cost = costs_of(here)
    reference = better_boosting(cost)
    loss = costs_of(here, "log_loss")
    least_loss = better_boosting(loss)
    for method, of_seeds in cost.items():
        mine = [run for run in here if run["method"] == method]
        ratio = paired_ratios(of_seeds, reference)
        yield {
            **{"set": cell[0], "size": cell[1], "method": method, "n_splits": len(mine)},
            **{name: mine[0][name] for name in ("n_train", "n_test")},
            "mean_cost": mean(of_seeds.values()),
            "standard_error": standard_error(list(of_seeds.values())),
            "n_paired": len(ratio),
            "ratio": mean(ratio),
            "ratio_error": standard_error(ratio),
            "loss_ratio": mean(paired_ratios(loss[method], least_loss)),
            "to_constant": mean([run["test_cost"] / run["constant_cost"] for run in mine]),
            "cpu_seconds": mean([run["cpu_seconds"] for run in mine]),
        }


def costs_of(runs: Sequence[Row], name: str = "test_cost") -> dict[str, dict[int, float]]:
    """Mean test costs, or log losses, by method and seed, for the runs of a cell."""
    cost: dict[str, dict[int, float]] = {}
    for run in runs:
        cost.setdefault(run["method"], {})[run["seed"]] = run.get(name, float("nan"))
    return cost


def better_boosting(cost: dict[str, dict[int, float]]) -> dict[int, float]:
    """Cost of the cheaper boosting of each split that has both."""
    first, second = (cost.get(name, {}) for name in BOOSTINGS)
    return {seed: min(first[seed], second[seed]) for seed in first if seed in second}


def paired_ratios(cost: dict[int, float], reference: dict[int, float]) -> list[float]:
    """Ratios of costs on the splits that both have."""
    return [cost[seed] / reference[seed] for seed in cost if seed in reference]


def mean(values: Any) -> float:
    """Mean; NaN of nothing."""
    values = list(values)
    return float(np.mean(values)) if values else float("nan")


def by_method(cells: Sequence[Row]) -> list[Row]:
    """Geometric means of the ratios over the sets, for each size, and mean ranks."""
    return [
        row
        for size in dict.fromkeys(row["size"] for row in cells)
        for row in _summaries(size, [row for row in cells if row["size"] == size])
    ]


def _summaries(size: int, cells: Sequence[Row]) -> Iterator[Row]:
    ranks = mean_ranks(cells)
    for method in dict.fromkeys(row["method"] for row in cells):
        rows = [row for row in cells if row["method"] == method]
        paired = [row for row in rows if row["n_paired"]]
        ratio = np.array([row["ratio"] for row in paired])
        yield {
            **{"size": size, "method": method, "n_sets": len(rows)},
            "n_splits": sum(row["n_splits"] for row in rows),
            "geometric_mean": geometric_mean(ratio) if paired else float("nan"),
            "standard_error": geometric_error(ratio) if paired else float("nan"),
            "loss_ratio": geometric_mean(np.array([row["loss_ratio"] for row in paired]))
            if paired
            else float("nan"),
            "worst": ratio.max() if paired else float("nan"),
            "worst_set": paired[ratio.argmax()]["set"] if paired else "-",
            "mean_rank": ranks.get(method, float("nan")),
            "cpu_seconds": mean([row["cpu_seconds"] for row in rows]),
        }


def mean_ranks(cells: Sequence[Row]) -> dict[str, float]:
    """Mean ranks of the ratios, of the methods that have one on each set."""
    ratio: dict[str, dict[Cell, float]] = {}
    for row in cells:
        if row["n_paired"]:
            ratio.setdefault(row["method"], {})[row["set"], row["size"]] = row["ratio"]
    everywhere = [m for m in ratio if len(ratio[m]) == len(_cells(cells))]
    if not everywhere:
        return {}
    values = np.array([[ratio[m][cell] for m in everywhere] for cell in _cells(cells)])
    return dict(zip(everywhere, map(float, rankdata(values, axis=1).mean(axis=0))))


def against(runs: Sequence[Row]) -> list[Row]:
    """The default network against each other method, on the splits that both have."""
    rows = []
    for size in dict.fromkeys(run["size"] for run in runs):
        here = [run for run in runs if run["size"] == size]
        cost = {s: costs_of([r for r in here if r["set"] == s]) for s, _ in _cells(here)}
        for method in dict.fromkeys(run["method"] for run in here):
            of_sets = {
                s: paired_ratios(c.get(DEFAULT, {}), c.get(method, {})) for s, c in cost.items()
            }
            of_sets = {s: ratios for s, ratios in of_sets.items() if ratios}
            if of_sets and method != DEFAULT:
                rows.append({"size": size, "method": method, **_compared(of_sets)})
    return rows


def _compared(of_sets: dict[str, list[float]]) -> Row:
    ratio: NDArray = np.array([np.mean(ratios) for ratios in of_sets.values()])
    return {
        "n_sets": len(ratio),
        "n_splits": sum(map(len, of_sets.values())),
        "geometric_mean": geometric_mean(ratio),
        "standard_error": geometric_error(ratio),
        "n_lower": int((ratio < 1).sum()),
    }


# --- tables -----------------------------------------------------------------------------------


def render(runs: Sequence[Row]) -> str:
    """All tables, as reStructuredText that reads as plain text."""
    parts = [INTRODUCTION]
    of_cells = by_cell(runs)
    for size in dict.fromkeys(run["size"] for run in runs):
        cells = [row for row in of_cells if row["size"] == size]
        parts += [_title(f"{size} rows: over all sets"), _summary(by_method(cells))]
        parts += [_title(f"{size} rows: ratio by set"), _ratios(cells)]
        if compared := against([run for run in runs if run["size"] == size]):
            parts += [_title(f"{size} rows: {DEFAULT} against each"), _against(compared)]
    for name, size in _cells(of_cells):
        rows = [row for row in of_cells if (row["set"], row["size"]) == (name, size)]
        n_train, n_test = rows[0]["n_train"], rows[0]["n_test"]
        parts += [_title(f"{name}, {n_train} rows, tested on {n_test}"), _cell(rows)]
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> str:
    return f"{text}\n{'-' * len(text)}"


def _summary(rows: Sequence[Row]) -> str:
    return table(
        [
            "method",
            "sets",
            "splits",
            "ratio",
            "s.e.",
            "worst",
            "at",
            "log loss",
            "mean rank",
            "CPU s",
        ],
        (
            [
                row["method"],
                str(row["n_sets"]),
                str(row["n_splits"]),
                *(number(row[key]) for key in ("geometric_mean", "standard_error", "worst")),
                row["worst_set"],
                number(row["loss_ratio"]),
                *(number(row[key], 1) for key in ("mean_rank", "cpu_seconds")),
            ]
            for row in rows
        ),
    )


def _ratios(cells: Sequence[Row]) -> str:
    """A row per method and a column per set."""
    ratio = {(row["method"], row["set"]): row["ratio"] for row in cells}
    sets = [name for name, _ in _cells(cells)]
    return table(
        ["method", *sets],
        (
            [method, *(number(ratio.get((method, name))) for name in sets)]
            for method in dict.fromkeys(row["method"] for row in cells)
        ),
    )


def _against(rows: Sequence[Row]) -> str:
    return table(
        ["method", "sets", "splits", "ratio of the default", "s.e.", "below 1 on"],
        (
            [
                row["method"],
                str(row["n_sets"]),
                str(row["n_splits"]),
                *(number(row[key]) for key in ("geometric_mean", "standard_error")),
                str(row["n_lower"]),
            ]
            for row in rows
        ),
    )


def _cell(rows: Sequence[Row]) -> str:
    numbers = ("standard_error", "ratio", "ratio_error", "to_constant")
    return table(
        ["method", "splits", "mean cost", "s.e.", "ratio", "s.e.", "to constant", "CPU s"],
        (
            [
                row["method"],
                str(row["n_splits"]),
                number(row["mean_cost"], 4),
                *(number(row[key], 4 if key == "standard_error" else 3) for key in numbers),
                number(row["cpu_seconds"], 1),
            ]
            for row in rows
        ),
    )
