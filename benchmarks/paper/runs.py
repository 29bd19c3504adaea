"""The runs of the experiments, one data set at a time.

Experiments with the same `--out` share their runs.
"""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from auxcst_sklearn import __version__
from benchmarks.common import engine
from benchmarks.common.engine import Result, Run

IMBALANCED = "-imb"
REVISION = 1  # to be raised where a change of code changes results


@dataclass(frozen=True)
class Configuration(ABC):
    """All that determines the result of one run; a subclass adds what its networks need."""

    dataset: str

    @property
    @abstractmethod
    def name(self) -> str:
        """How the file of the run starts."""

    @property
    def data_name(self) -> str:
        """The data set to load, which the imbalanced variant shares."""
        return self.dataset.removesuffix(IMBALANCED)

    def as_run(self, compute: Callable[[Any], Result]) -> Run:
        identity = {"auxcst_sklearn": __version__, "revision": REVISION, **asdict(self)}
        return Run(self.name, identity, compute)


def run_all(
    configurations: Sequence[Configuration],
    options: argparse.Namespace,
    *,
    load: Callable[[str, Path | None], Any],
    run: Callable[..., Result],
) -> list[dict[str, Any]]:
    """Run what has not been run, and give configurations with their results.

    `load` takes the name of a data set and the folder, `run` a configuration, what was loaded and
    the device.
    """
    folder = options.out / "runs"
    folder.mkdir(parents=True, exist_ok=True)
    runs = {c: c.as_run(partial(run, c, device=options.device)) for c in configurations}
    todo = [c for c in runs if not runs[c].is_finished(folder)]
    print(f"{len(runs) - len(todo)} runs are done, {len(todo)} are left.")
    for name, group in groupby(sorted(todo, key=_data_name), key=_data_name):
        jobs = [[runs[configuration]] for configuration in group]
        data = load(name, options.data_home)
        engine.run_all(jobs, folder=folder, n_jobs=options.n_jobs, shared=[data])
    return [{**asdict(c), **runs[c].result(folder)} for c in configurations]


def _data_name(configuration: Configuration) -> str:
    return configuration.data_name
