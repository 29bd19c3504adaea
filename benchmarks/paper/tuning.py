"""Rates, and alpha where it is to be chosen, by their cost on held-out training rows.

Every candidate is trained once, with a seed of its own, without a sixth of the training rows, and
judged by these. The test part chooses nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import TypeVar

from benchmarks.paper import dense, draws
from benchmarks.paper.dense import DenseConfiguration
from benchmarks.paper.runs import run_all

Name = TypeVar("Name", bound=Hashable)


def choose(
    candidates: Mapping[Name, Sequence[DenseConfiguration]], options: argparse.Namespace
) -> dict[Name, DenseConfiguration]:
    """The candidate of each name that costs least; where there is but one, nothing is trained."""
    trials = {
        candidate: replace(candidate, seed=options.tuning_seed, tuning=True)
        for group in candidates.values()
        for candidate in group
        if len(group) > 1
    }
    rows = run_all(list(trials.values()), options, load=draws.load, run=dense.run)
    cost = {c: row.get("held_out_cost", inf) for c, row in zip(trials, rows)}
    return {name: min(group, key=lambda c: cost.get(c, 0)) for name, group in candidates.items()}


def run_seeds(
    chosen: Mapping[Name, DenseConfiguration], options: argparse.Namespace
) -> list[tuple[Name, dict]]:
    """Run what was chosen with every seed, and give what has a result with its name."""
    named = [
        (name, replace(configuration, seed=seed))
        for seed in options.seeds
        for name, configuration in chosen.items()
    ]
    rows = run_all([c for _, c in named], options, load=draws.load, run=dense.run)
    diverged = sum("diverged" in row for row in rows)
    if diverged:
        print(f"{diverged} of {len(rows)} runs diverged and are left out.")
    return [(name, row) for (name, _), row in zip(named, rows) if "test_cost" in row]
