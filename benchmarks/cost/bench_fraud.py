"""Mean test costs where the cost of each payment is known when deciding.

One payment in a hundred is fraud. The default network and classifiers with a Bayes decision learn
and decide by a cost matrix for each payment. `fraud_data` has the generators, `fraud_methods` the
methods. Each run is kept in a file in `--runs`, and what is found there is not run again. Results
are written to `--out` as `fraud.json` and, as tables, `fraud.rst`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib

from benchmarks.common import engine
from benchmarks.common.engine import Run
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.fraud_data import ALERT, GENERATORS, RATE, draw
from benchmarks.cost.fraud_methods import METHODS
from benchmarks.cost.fraud_results import Row, render


@dataclass(frozen=True)
class Job:
    """All methods on what a seed draws from a generator; the draw is made as it is iterated."""

    generator: str
    seed: int
    n_train: int
    n_test: int
    methods: Sequence[str]

    def __iter__(self) -> Iterator[Run]:
        drawn = draw(self.generator, self.seed, self.n_train, self.n_test)
        digest = joblib.hash(drawn._asdict())
        for method in (METHODS[name] for name in self.methods):
            yield Run(
                f"{self.generator.replace(' ', '_')}_seed{self.seed}",
                {"drawn": digest, **method.identity(drawn.random_state)},
                partial(method.run, drawn),
            )


def run_all(jobs: Sequence[Job], *, folder: Path, n_jobs: int = 1) -> list[Row]:
    """A record for each generator, seed and method."""
    results = engine.run_all(jobs, folder=folder, n_jobs=n_jobs)
    return [
        {"generator": job.generator, "seed": job.seed, "method": method, **result}
        for job, of_job in zip(jobs, results)
        for method, result in zip(job.methods, of_job)
    ]


def save(content: dict[str, Any], out: Path) -> None:
    """Write the runs, and tables of what they come to."""
    write_json(out / "fraud.json", content)
    (out / "fraud.rst").write_text(render(content["runs"]))


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = make_parser(__doc__, seeds=[0, 1, 2], n_jobs=os.cpu_count(), out=RESULTS)
    parser.add_argument("--n-train", type=int, default=8000, help="training rows")
    parser.add_argument("--n-test", type=int, default=8000, help="test rows")
    parser.add_argument(
        "--methods", nargs="+", default=list(METHODS), choices=list(METHODS), metavar="METHOD"
    )
    parser.add_argument(
        "--runs", type=Path, default=Path("out/fraud_runs"), help="folder of finished runs"
    )
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = parse_options(arguments)
    jobs = [
        Job(generator, seed, options.n_train, options.n_test, options.methods)
        for generator in GENERATORS
        for seed in options.seeds
    ]
    content = provenance() | {
        "seeds": options.seeds,
        "n_train": options.n_train,
        "n_test": options.n_test,
        "rate": RATE,
        "alert_cost": ALERT,
        "generators": list(GENERATORS),
        "methods": options.methods,
        "runs": run_all(jobs, folder=options.runs, n_jobs=options.n_jobs),
    }
    save(content, options.out)
    print((options.out / "fraud.rst").read_text())


if __name__ == "__main__":
    main()
