"""From times in turns to medians, ratios, targets and tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median, quantiles
from typing import Any, NamedTuple

from benchmarks.common.provenance import provenance
from benchmarks.speed.methods import RECIPES, Case, reference

Times = list[dict[str, float]]


class CaseTimes(NamedTuple):
    """The times of one case: `records[method][what]` has an entry per turn."""

    name: str
    case: Case
    threads: int
    records: dict[str, dict[str, Times]]


class Target(NamedTuple):
    """A ratio that should not exceed a limit."""

    what: str
    pairs: tuple[tuple[str, str], ...]
    quantity: str
    limit: float
    applies: Callable[[CaseTimes], bool] = lambda run: True


def is_small(run: CaseTimes) -> bool:
    return run.name == "small"


def is_medium_or_more(run: CaseTimes) -> bool:
    return run.case.rows >= 20_000


def is_wide(run: CaseTimes) -> bool:
    return run.case.width >= 256 and run.case.n_classes == 10 and not run.case.images


SAME_NETWORK = tuple((f"ours{name}", f"raw{name}") for name in RECIPES)
HEADS = tuple(
    (f"{who}{name}", f"{who}{name}-plain") for who in ("ours", "raw") for name in ("", "-one-sided")
)


def against(peer: str) -> tuple[tuple[str, str], ...]:
    """With all defaults, and like for like: by cross-entropy, without heads and dropout."""
    return (("ours", peer), ("ours-ce-plain", peer))


TARGETS = (
    Target("fit / loop by hand", SAME_NETWORK, "fit", 1.10),
    Target("heads / none", HEADS, "fit", 1.08, is_wide),
    Target("fit / skorch", against("skorch"), "fit", 0.40, is_small),
    Target("fit / MLPClassifier", against("mlp"), "fit", 0.90, is_medium_or_more),
    Target("predict 1 / MLPClassifier", against("mlp"), "predict 1", 1.00),
    Target("predict 20,000 / MLPClassifier", against("mlp"), "predict 20000", 1.00),
)


def quartiles(values: list[float]) -> list[float]:
    """First quartile, median and third quartile, to four digits."""
    exact = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return [float(f"{value:.4g}") for value in exact]


def ratios(times: Times, others: Times, clock: str) -> list[float]:
    """Ratios within each turn."""
    return [a[clock] / b[clock] for a, b in zip(times, others)]


def summarize(run: CaseTimes) -> Iterator[dict[str, Any]]:
    """A row per method and quantity: quartiles of seconds, and of ratios to the loop by hand."""
    for method, quantities in run.records.items():
        for quantity, times in quantities.items():
            row: dict[str, Any] = {
                "case": run.name,
                "threads": run.threads,
                "method": method,
                "quantity": quantity,
            }
            for clock in ("cpu", "wall"):
                row[f"{clock}_seconds"] = quartiles([entry[clock] for entry in times])
            base = run.records.get(reference(method), {}).get(quantity)
            if base:
                row["reference"] = reference(method)
                for clock in ("cpu", "wall"):
                    row[f"{clock}_ratio"] = quartiles(ratios(times, base, clock))
            if quantity == "fit":  # later ones have also seen the predictions
                row["peak_megabytes"] = round(times[0]["peak_megabytes"])
            yield row


def ratio_targets(runs: list[CaseTimes]) -> Iterator[dict[str, Any]]:
    """What was aimed at, by CPU time on one thread, in every case where both were run."""
    for target in TARGETS:
        for run in runs:
            if run.threads > 1 or not target.applies(run):
                continue
            for method, other in target.pairs:
                times, base = (
                    run.records.get(name, {}).get(target.quantity) for name in (method, other)
                )
                if times and base:
                    measured = quartiles(ratios(times, base, "cpu"))
                    where = f"{run.name}: {method} / {other}"
                    yield verdict(target.what, where, measured, target.limit)


def import_target(startup: dict[str, Times]) -> dict[str, Any]:
    """CPU seconds of our import above those of torch."""
    name, base = "import auxcst_sklearn", "import torch"
    extra = [a["cpu"] - b["cpu"] for a, b in zip(startup[name], startup[base])]
    return verdict(f"seconds above {base}", name, quartiles(extra), 0.3)


def pickle_target(sizes: dict[str, int]) -> dict[str, Any]:
    ratio = sizes["pickle_bytes"] / sizes["weight_bytes"]
    return verdict("pickle / weights", "width 256-256: ours", quartiles([ratio]), 1.10)


def verdict(what: str, where: str, measured: list[float], limit: float) -> dict[str, Any]:
    return {
        "what": what,
        "where": where,
        "measured": measured,
        "limit": limit,
        "met": measured[1] <= limit,
    }


def print_rows(rows: list[dict[str, Any]]) -> None:
    """Print the medians of a case, ratios with their quartiles."""
    print(f"\n{rows[0]['case']}, threads: {rows[0]['threads']}")
    print(f"  {'method':22}{'quantity':14}{'CPU s':>10}{'wall s':>10}", end="")
    print(f"{'CPU ratio':>10}{'quartiles':>15}{'wall ratio':>12}{'peak MB':>9}")
    for row in rows:
        cpu, wall = row["cpu_seconds"][1], row["wall_seconds"][1]
        print(f"  {row['method']:22}{row['quantity']:14}{cpu:10.3g}{wall:10.3g}", end="")
        if "reference" in row:
            low, middle, high = row["cpu_ratio"]
            print(f"{middle:10.2f}{f'{low:.2f}-{high:.2f}':>15}", end="")
            print(f"{row['wall_ratio'][1]:12.2f}{row.get('peak_megabytes', ''):>9}", end="")
        print(flush=True)


def print_startup(startup: dict[str, Times]) -> None:
    print(f"\n{'fresh process, one thread':40}{'CPU s':>10}{'wall s':>10}")
    for name, times in startup.items():
        cpu, wall = (median(entry[clock] for entry in times) for clock in ("cpu", "wall"))
        print(f"  {name:38}{cpu:10.2f}{wall:10.2f}")


def print_targets(targets: list[dict[str, Any]]) -> None:
    """Print what was aimed at beside what was measured."""
    print(f"\n{'aimed at, CPU time, one thread':34}{'where':54}{'at most':>8}{'measured':>10}")
    for row in targets:
        low, middle, high = row["measured"]
        met = "met" if row["met"] else "MISSED"
        print(f"  {row['what']:32}{row['where']:54}{row['limit']:8.2f}{middle:10.2f}", end="")
        print(f"{f'({low:.2f}-{high:.2f})':>15}  {met}")


def describe_machine() -> dict[str, Any]:
    """Provenance, with the processor's name and what else it was doing."""
    described = provenance("costsensitive")
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        fields = (line.partition(":") for line in cpuinfo.read_text().splitlines())
        described["cpu"] = next((v.strip() for k, _, v in fields if k.strip() == "model name"), "")
    described["load_average_before"] = round(os.getloadavg()[0], 1)
    return described
