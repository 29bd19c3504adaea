"""Means and standard errors over the seeds, as table, JSON and figure."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from auxcst_sklearn.plotting import CostCurveDisplay
from benchmarks.common.json_files import write_json
from benchmarks.common.provenance import provenance

WIDE = 5  # ratio of the largest to the smallest cost of a panel from which the axis is logarithmic


def report_costs(
    name: str,
    rows: Sequence[dict[str, Any]],
    options: argparse.Namespace,
    *,
    column: str,
    reference: Any,
) -> None:
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
    runs = [{key: row[key] for key in row if key != "layer_losses"} for row in rows]
    save(name, options, text, costs=costs, differences=excess, runs=runs)


def summarize(
    rows: Iterable[dict[str, Any]], by: Sequence[str], value: str = "test_cost"
) -> list[dict[str, Any]]:
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
    rows: Sequence[dict[str, Any]],
    column: str,
    reference: Any,
    by: Sequence[str] = ("dataset", "depth"),
) -> list[dict[str, Any]]:
    """What each run costs more than the reference's with the same seed, data set and depth."""

    def paired(row: dict[str, Any]) -> tuple:
        return tuple(row[name] for name in (*by, "seed"))

    base = {paired(row): row["test_cost"] for row in rows if row[column] == reference}
    return [
        {**row, "difference": row["test_cost"] - base[paired(row)]}
        for row in rows
        if row[column] != reference and paired(row) in base
    ]


def format_table(summary: Sequence[dict[str, Any]], row: str, column: str) -> str:
    """One block per data set: mean and standard error in rows and columns."""
    lines = []
    for dataset in dict.fromkeys(entry["dataset"] for entry in summary):
        entries = [entry for entry in summary if entry["dataset"] == dataset]
        rows, columns = (_ordered(entry[name] for entry in entries) for name in (row, column))
        cells = {(entry[row], entry[column]): _cell(entry) for entry in entries}
        width = 2 + max([16, *(len(str(name)) for name in columns)])
        names = "".join(f"{'any' if name is None else name!s:>{width}}" for name in columns)
        lines += ["", f"{dataset}, by {column}", f"{row:10}{names}"]
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


def _cell(entry: dict[str, Any]) -> str:
    error = entry["standard_error"]
    return f"{entry['mean']:.4f}" + ("" if error is None else f" +- {error:.4f}")


def save(name: str, options: argparse.Namespace, text: str, **results: list[dict]) -> None:
    """Write the tables and all results, with their provenance, and print the tables."""
    (options.out / f"{name}.txt").write_text(text + "\n")
    write_json(options.out / f"{name}.json", {**provenance(), **results})
    print(text)


def plot_costs(
    name: str, rows: Sequence[dict[str, Any]], options: argparse.Namespace, *, x: str, hue: str
) -> None:
    """Draw mean test costs with standard errors, a panel per data set."""
    figure, axes = subplots(list(dict.fromkeys(row["dataset"] for row in rows)))
    order = list(dict.fromkeys(row[hue] for row in rows))
    costs = summarize(rows, ["dataset", x, hue])
    entries: dict[str, Any] = {}
    for dataset, ax in axes.items():
        of_dataset = [entry for entry in costs if entry["dataset"] == dataset]
        display = cost_curves(of_dataset, x, hue, order).plot(ax, legend=False)
        _set_scale(ax, np.concatenate([line.get_ydata() for line in display.lines_]))
        entries |= {line.get_label(): line for line in display.lines_}
    figure.legend(handles=list(entries.values()), title=hue, loc="outside right center")
    figure.savefig(options.out / f"{name}.png", dpi=150)


def cost_curves(
    costs: Sequence[dict[str, Any]], x: str, hue: str, order: Sequence[Any]
) -> CostCurveDisplay:
    """Curves of a summary, one for each value of hue, in the same order and colours everywhere."""
    x_values = sorted({entry[x] for entry in costs}, key=lambda value: (value is None, value or 0))
    mean, error = np.full((2, len(order), len(x_values)), np.nan)
    for entry in costs:
        cell = order.index(entry[hue]), x_values.index(entry[x])
        mean[cell], error[cell] = entry["mean"], entry["standard_error"] or np.nan
    return CostCurveDisplay(x_values, list(order), mean, error, x_name=x, hue_name=hue)


def _set_scale(ax: Any, costs: NDArray) -> None:
    """Use a logarithmic axis where networks that are not trained would hide all differences."""
    from matplotlib.ticker import LogLocator  # an optional extra

    if costs.max() > WIDE * costs.min() > 0:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter("")


def subplots(datasets: Sequence[str]) -> tuple[Any, dict[str, Any]]:
    """Make a figure with an axes per data set."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Plotting needs matplotlib: pip install auxcst_sklearn[plot]") from error
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
