"""Means and standard errors over the seeds, as tables and figures."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from benchmarks.common.provenance import provenance

Row = dict[str, Any]

LABELS = {"blind": "cost-blind", "Bayes": "expected cost"}  # in figures, as on the pages
WIDE = 5  # ratio of the largest to the smallest cost of a panel from which the axis is logarithmic


def report_costs(
    name: str, rows: list[Row], options: argparse.Namespace, *, column: str, reference: Any
) -> dict[str, list[Row]]:
    """Report mean test costs by depth and by another column, and how far from the reference's."""
    by = ["dataset", "depth", column]
    costs = summarize(rows, by)
    excess = summarize(differences(rows, column, reference), by, "difference")
    text = "\n\n".join(
        [
            "Mean test cost +- standard error over the seeds",
            format_table(costs, row="depth", column=column),
            f"Mean test cost above that of {column} {reference}, paired by seed",
            format_table(excess, row="depth", column=column),
        ]
    )
    save(name, options, text)
    return {"costs": costs, "differences": excess, "runs": rows}


def summarize(rows: Iterable[Row], by: Sequence[str], value: str = "test_cost") -> list[Row]:
    """Mean and standard error of a value over the seeds; None for the error of one seed."""
    groups: dict[tuple, list[float]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row[value])
    return [
        {
            **dict(zip(by, key)),
            "n_seeds": len(values),
            "mean": float(np.mean(values)),
            "standard_error": (
                float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
            ),
        }
        for key, values in groups.items()
    ]


def differences(
    rows: Sequence[Row], column: str, reference: Any, by: Sequence[str] = ("dataset", "depth")
) -> list[Row]:
    """What each run costs more than the reference's with the same seed, data set and depth."""

    def paired(row: Row) -> tuple:
        return tuple(row[name] for name in (*by, "seed"))

    base = {paired(row): row["test_cost"] for row in rows if row[column] == reference}
    return [
        {**row, "difference": row["test_cost"] - base[paired(row)]}
        for row in rows
        if row[column] != reference and paired(row) in base
    ]


def format_table(summary: Sequence[Row], row: str, column: str) -> str:
    """One block per data set: number of seeds, then mean and standard error in rows and columns."""
    lines = []
    for dataset in dict.fromkeys(entry["dataset"] for entry in summary):
        entries = [entry for entry in summary if entry["dataset"] == dataset]
        rows, columns = (_ordered(entry[name] for entry in entries) for name in (row, column))
        cells = {(entry[row], entry[column]): _cell(entry) for entry in entries}
        width = 2 + max([16, *(len(str(name)) for name in columns)])
        names = "".join(f"{'any' if name is None else name!s:>{width}}" for name in columns)
        seeds = " or ".join(map(str, sorted({entry["n_seeds"] for entry in entries})))
        lines += ["", f"{dataset}, by {column}; seeds: {seeds}", f"{row:10}{names}"]
        for name in rows:
            values = "".join(f"{cells.get((name, c), ''):>{width}}" for c in columns)
            lines.append(f"{name!s:10}{values}".rstrip())
    return "\n".join(lines[1:])


def _ordered(values: Iterable[Any]) -> list[Any]:
    """Distinct values: first None and names as they come, then numbers by size."""
    return sorted(
        dict.fromkeys(values),
        key=lambda value: value if isinstance(value, int | float) else -np.inf,
    )


def _cell(entry: Row) -> str:
    error = entry["standard_error"]
    return f"{entry['mean']:.4f}" + ("" if error is None else f" +- {error:.4f}")


def save(name: str, options: argparse.Namespace, text: str) -> None:
    """Write the tables below their provenance, and print them."""
    about = provenance()
    versions = ", ".join(map(" ".join, about["versions"].items()))
    header = f"{about['command']}\n{versions}; {about['machine']}"
    (options.out / f"{name}.txt").write_text(f"{header}\n\n{text}\n")
    print(text)


def plot_costs(
    name: str, rows: Sequence[Row], options: argparse.Namespace, *, x: str, hue: str
) -> None:
    """Draw mean test costs with standard errors: a panel per data set, a curve per `hue`.

    A horizontal line is the cost without `x`.
    """
    costs = summarize(rows, ["dataset", hue, x])
    figure, axes = subplots(list(dict.fromkeys(row["dataset"] for row in rows)))
    lines: dict[str, Any] = {}
    for dataset, ax in axes.items():
        for i, name_of_curve in enumerate(dict.fromkeys(row[hue] for row in rows)):
            entries = [e for e in costs if (e["dataset"], e[hue]) == (dataset, name_of_curve)]
            if entries:
                label = LABELS.get(name_of_curve, str(name_of_curve))
                lines[label] = _curve(ax, entries, x, f"C{i}", label)
        of_dataset = [entry["mean"] for entry in costs if entry["dataset"] == dataset]
        _set_scale(ax, max(of_dataset), min(of_dataset))
        ax.set_xlabel(x)
        if x == "depth":
            ax.set_xticks(sorted({row[x] for row in rows}))
        ax.set_ylabel("mean test cost")
    figure.legend(handles=list(lines.values()), title=hue, loc="outside right center")
    save_figure(figure, name, options)


def _curve(ax: Any, entries: Sequence[Row], x: str, color: str, label: str) -> Any:
    """A curve with error bars, or a line where the entries have no x; the line that was drawn."""
    if entries[0][x] is None:
        return ax.axhline(entries[0]["mean"], color=color, label=label)
    entries = sorted(entries, key=lambda entry: entry[x])
    errors = [entry["standard_error"] or 0 for entry in entries]
    at, means = ([entry[key] for entry in entries] for key in (x, "mean"))
    ax.errorbar(at, means, errors, fmt="none", ecolor=color)
    return ax.plot(at, means, color=color, marker=".", label=label)[0]


def save_figure(figure: Any, name: str, options: argparse.Namespace) -> None:
    figure.savefig(options.out / f"{name}.png", dpi=100)


def _set_scale(ax: Any, largest: float, smallest: float) -> None:
    """Use a logarithmic axis where networks that are not trained would hide all differences."""
    from matplotlib.ticker import LogLocator  # an optional extra

    if largest > WIDE * smallest > 0:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")


def subplots(datasets: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Make a figure with an axes per data set."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plotting needs matplotlib: pip install '.[plot]'") from error
    n_columns = min(2, len(datasets))
    n_rows = -(-len(datasets) // n_columns)
    figure, axes = plt.subplots(
        n_rows, n_columns, figsize=(5.5 * n_columns, 3.8 * n_rows), layout="constrained"
    )
    for ax in np.ravel(axes)[len(datasets) :]:
        ax.remove()
    axes = dict(zip(datasets, np.ravel(axes)))
    for dataset, ax in axes.items():
        ax.set_title(dataset)
    return figure, axes
