"""The runs of the experiments, one data set at a time.

Each finished run is a line of ``OUT/runs.jsonl`` and is not run again. Experiments with the same
`--out` share their runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks.common.engine import Result, as_done
from benchmarks.common.ledger import Ledger

IMBALANCED = "-imb"
REVISION = 2  # to be raised where a change of code changes results
RUNS = "runs.jsonl"


@dataclass(frozen=True)
class Configuration:
    """All that determines the result of one run; a subclass adds what its networks need."""

    dataset: str

    @property
    def data_name(self) -> str:
        """The data set to load, which the imbalanced variant shares."""
        return self.dataset.removesuffix(IMBALANCED)

    @property
    def identity(self) -> dict[str, Any]:
        """What the run is known by, as plain data."""
        return {"revision": REVISION, **asdict(self)}


def run_all(
    configurations: Sequence[Configuration],
    options: argparse.Namespace,
    *,
    load: Callable[[str, Path | None], Any],
    run: Callable[..., Result],
) -> list[dict[str, Any]]:
    """Run what has not been run, and give configurations with their results.

    With ``--finished`` nothing is run, and what is not finished comes without a result.
    `load` takes the name of a data set and the folder, `run` a configuration, what was
    loaded and the device.
    """
    ledger = Ledger(options.out / RUNS)
    unique = list(dict.fromkeys(configurations))
    todo = [c for c in unique if c.identity not in ledger]
    print(f"{len(unique) - len(todo)} runs are done, {len(todo)} are left.")
    if options.finished:
        todo = []
    for name, group in groupby(sorted(todo, key=_data_name), key=_data_name):
        missing = list(group)
        data = load(name, options.data_home)
        compute = partial(run, device=options.device)
        for i, result in as_done(compute, missing, n_jobs=options.n_jobs, shared=[data]):
            ledger.add(missing[i].identity, result)
    return [{**asdict(c), **ledger.get(c.identity)} for c in configurations]


def _data_name(configuration: Configuration) -> str:
    return configuration.data_name
