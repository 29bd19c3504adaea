"""The tables of `bench_cost`, as reStructuredText that reads as plain text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

import numpy as np

from benchmarks.cost.results import DEFAULT, Results

INTRODUCTION = """\
Mean test cost, with standard errors over the seeds, which draw rows, costs and random states for
all methods alike. A ratio is to the same network with cross-entropy and the Bayes decision, with
or without a temperature, whichever costs less; a thousandth of the cost of a constant prediction
is added to both. Ratios over settings are geometric means; "default there" is that of the default
over the settings of the method. CPU seconds are those of fitting, with one thread."""


def render(results: Results) -> str:
    """All tables."""
    parts = [
        INTRODUCTION,
        *_section("Over all settings", _summary(results), _rank_statement(results)),
        *_section("Ratio to the reference", *_ratios(results)),
        *(_section("What auxiliary heads do", _heads(results)) if results.heads() else ()),
        *(
            part
            for setting in results.settings
            for part in _section(setting, _setting(results, setting))
        ),
    ]
    return "\n\n".join(parts) + "\n"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A simple table; the first column is flush left, the others flush right."""
    rows = [list(header), *map(list, rows)]
    width = [max(map(len, column)) for column in zip(*rows)]
    rule = "  ".join("=" * w for w in width)
    lines = [
        "  ".join([row[0].ljust(width[0]), *(c.rjust(w) for c, w in zip(row[1:], width[1:]))])
        for row in rows
    ]
    return "\n".join([rule, lines[0].rstrip(), rule, *(line.rstrip() for line in lines[1:]), rule])


def number(value: float | None, digits: int = 3) -> str:
    """A rounded number, or a dash where there is none."""
    return "-" if value is None or np.isnan(value) else f"{value:.{digits}f}"


def _section(title: str, *parts: str) -> Iterator[str]:
    if parts:
        yield f"{title}\n{'-' * len(title)}"
        yield from parts


def _summary(results: Results) -> str:
    header = [
        "method",
        "settings",
        "ratio",
        "s.e.",
        "default there",
        "worst",
        "at",
        "below 1 on",
        "mean rank",
        "CPU s",
    ]
    rows = [
        [
            row["method"],
            str(row["n_settings"]),
            number(row["geometric_mean"]),
            number(row["standard_error"]),
            number(row["default_there"]),
            number(row["worst"]),
            row["worst_setting"],
            str(row["n_lower"]),
            number(row["mean_rank"], 1),
            number(row["cpu_seconds"], 1),
        ]
        for row in results.by_method()
    ]
    return table(header, rows)


def _rank_statement(results: Results) -> str:
    ranked, test = results.ranks()
    if test is None:
        return "Too few methods or settings for a test on ranks."
    verdict = "do not all cost the same" if test.p_value < 0.05 else "may all cost the same"
    text = (
        f"Ranks of the {len(ranked)} methods that ran on all {test.n_settings} settings. "
        f"Friedman's test: chi2 = {test.statistic:.1f}, p = {test.p_value:.2g}; they {verdict}. "
        f"Nemenyi's critical difference of mean ranks at 5 %: {test.critical_difference:.2f}."
    )
    if DEFAULT not in ranked:
        return fill(text, 100)
    difference = test.mean_rank - test.mean_rank[ranked.index(DEFAULT)]
    far = np.abs(difference) >= test.critical_difference
    groups = {
        "ranks better than": [m for m, d, f in zip(ranked, difference, far) if f and d > 0],
        "is not told apart from": [m for m, f in zip(ranked, far) if not f and m != DEFAULT],
        "ranks worse than": [m for m, d, f in zip(ranked, difference, far) if f and d < 0],
    }
    findings = "; ".join(f"{how} {', '.join(names)}" for how, names in groups.items() if names)
    return fill(
        f"{text} By these, {DEFAULT!r} {findings}. Settings that share their data are not "
        "independent, so the test is more certain than it should be.",
        100,
    )


def _ratios(results: Results, n_columns: int = 6) -> Iterator[str]:
    """A row per setting, and so many methods to a table."""
    for start in range(0, len(results.methods), n_columns):
        part = slice(start, start + n_columns)
        yield table(
            ["setting", *results.methods[part]],
            (
                [setting, *map(number, ratio[part])]
                for setting, ratio in zip(results.settings, results.ratio)
            ),
        )


def _heads(results: Results) -> str:
    return table(
        ["method", "against", "settings", "ratio", "s.e.", "below 1 on"],
        (
            [
                row["with_heads"],
                row["without"],
                str(row["n_settings"]),
                number(row["ratio"]),
                number(row["standard_error"]),
                str(row["n_lower"]),
            ]
            for row in results.heads()
        ),
    )


def _setting(results: Results, setting: str) -> str:
    return table(
        ["method", "mean cost", "s.e.", "ratio", "s.e.", "CPU s"],
        (
            [
                row["method"],
                *(number(row[key], 4) for key in ("mean_cost", "standard_error")),
                *(number(row[key]) for key in ("ratio", "ratio_error")),
                number(row["cpu_seconds"], 1),
            ]
            for row in results.by_setting()
            if row["setting"] == setting
        ),
    )
