"""The runs of `bench_fraud` as summaries and tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.statistics import standard_error
from benchmarks.cost.fraud_methods import DEFAULT
from benchmarks.cost.ranks import geometric_error, geometric_mean, jackknife_error
from benchmarks.cost.tables import number, table

Row = dict[str, Any]

INTRODUCTION = """\
Mean test cost per payment. One payment in a hundred is fraud; an alert costs 5, missed fraud its
amount, which is known when deciding. Standard errors are over the seeds, which draw the problem
and the random states for all methods alike; those of a ratio are of the paired jackknife. A ratio
is to the best rival: of the methods that are not ours the one with the lowest mean test cost in
that table, a choice in the rivals' favour. "To constant" is the cost over that of the better
constant decision. CPU seconds are those of fitting, with one thread."""


def by_generator(runs: Sequence[Row]) -> list[Row]:
    """What each method comes to for each generator, in the order of the runs."""
    generators = list(dict.fromkeys(run["generator"] for run in runs))
    return [row for name in generators for row in _rows(runs, name)]


def _rows(runs: Sequence[Row], generator: str) -> list[Row]:
    here = [run for run in runs if run["generator"] == generator]
    methods = list(dict.fromkeys(run["method"] for run in here))
    cost = {method: _column(here, method, "test_cost") for method in methods}
    rival = min((m for m in methods if m != DEFAULT), key=lambda m: cost[m].mean())
    return [
        {
            "generator": generator,
            "method": method,
            "best_rival": rival,
            "mean_cost": cost[method].mean(),
            "standard_error": standard_error(cost[method]),
            "ratio": cost[method].mean() / cost[rival].mean(),
            "ratio_error": jackknife_error(cost[method], cost[rival], np.zeros(len(cost[rival]))),
            "to_constant": cost[method].mean() / _column(here, method, "constant_cost").mean(),
            **{
                name: _column(here, method, name).mean()
                for name in ("alert_rate", "recall", "cpu_seconds")
            },
        }
        for method in methods
    ]


def _column(runs: Sequence[Row], method: str, name: str) -> NDArray:
    return np.array([run[name] for run in runs if run["method"] == method])


def by_method(of_generators: Sequence[Row]) -> list[Row]:
    """Geometric means of the ratios over the generators."""
    summary = []
    for method in dict.fromkeys(row["method"] for row in of_generators):
        rows = [row for row in of_generators if row["method"] == method]
        ratio = np.array([row["ratio"] for row in rows])
        summary.append(
            {
                "method": method,
                "geometric_mean": geometric_mean(ratio),
                "standard_error": geometric_error(ratio),
                "worst": ratio.max(),
                "worst_generator": rows[ratio.argmax()]["generator"],
                "cpu_seconds": float(np.mean([row["cpu_seconds"] for row in rows])),
            }
        )
    return summary


def render(runs: Sequence[Row]) -> str:
    """All tables, as reStructuredText that reads as plain text."""
    of_generators = by_generator(runs)
    parts = [INTRODUCTION, _title("Over all generators"), _summary(by_method(of_generators))]
    for generator in dict.fromkeys(row["generator"] for row in of_generators):
        rows = [row for row in of_generators if row["generator"] == generator]
        parts += [_title(generator), _generator(rows)]
    return "\n\n".join(parts) + "\n"


def _title(text: str) -> str:
    return f"{text.capitalize()}\n{'-' * len(text)}"


def _summary(rows: Sequence[Row]) -> str:
    return table(
        ["method", "ratio", "s.e.", "worst", "at", "CPU s"],
        (
            [
                row["method"],
                *(number(row[key]) for key in ("geometric_mean", "standard_error", "worst")),
                row["worst_generator"],
                number(row["cpu_seconds"], 1),
            ]
            for row in rows
        ),
    )


def _generator(rows: Sequence[Row]) -> str:
    numbers = ("mean_cost", "standard_error", "ratio", "ratio_error", "to_constant")
    return table(
        [
            "method",
            "mean cost",
            "s.e.",
            "ratio",
            "s.e.",
            "to constant",
            "alerts",
            "frauds found",
            "CPU s",
        ],
        (
            [
                row["method"],
                *(number(row[key]) for key in numbers),
                *(f"{100 * row[key]:.1f} %" for key in ("alert_rate", "recall")),
                number(row["cpu_seconds"], 1),
            ]
            for row in rows
        ),
    )
