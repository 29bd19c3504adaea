"""Mean test cost of our estimators against everything a user could pick instead.

Settings (`settings.py`) cross kinds of data with kinds of costs; methods (`methods.py`) are our
estimators and their variants, the same network without costs and with a Bayes decision, and other
classifiers with a Bayes decision. Each seed draws rows, costs and random states for all methods
alike. Whatever is selected or calibrated is so inside the
training part.

Costs are compared by their ratio to the same network trained by cross-entropy with the Bayes
decision, with or without a temperature, whichever has the lower mean test cost in that setting.
Ratios are of means over the seeds, with a thousandth of what a constant prediction costs added to
both sides: on tiny test sets hardly a mistake is made, and a ratio would be near 0/0. Wine and
breast cancer are also drawn several times for each seed.

Each run is kept in `--runs`, and what is found there is not run again. Results are written
to `--out` as `cost.json` and, as tables, `cost.rst`. Choose defaults by seeds from 100 on: they
never see what smaller seeds test on.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.methods import METHODS
from benchmarks.cost.results import ALWAYS, Results
from benchmarks.cost.runs import run_all
from benchmarks.cost.settings import SETTINGS, Setting
from benchmarks.cost.tables import render

SMOKE = {"settings": ["wine/squared", "overlap2/individual"], "seeds": [100]}


def choose(options: argparse.Namespace) -> tuple[list[Setting], list[str]]:
    """What matches the patterns; the default and what it is compared with always take part."""
    settings = [setting for setting in SETTINGS if _matches(setting.name, options.settings)]
    methods = [name for name in METHODS if _matches(name, options.methods) or name in ALWAYS]
    if not settings:
        raise SystemExit(
            f"No setting matches {options.settings}; there are "
            + ", ".join(setting.name for setting in SETTINGS)
        )
    return settings, methods


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def save(content: dict[str, Any], out: Path) -> None:
    """Write the runs and what was chosen to run, and tables of what they come to."""
    results = Results(*(content[key] for key in ("runs", "settings", "methods")))
    write_json(out / "cost.json", content)
    (out / "cost.rst").write_text(render(results))


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, seeds=[0, 1, 2, 3, 4], n_jobs=os.cpu_count(), out=RESULTS)
    add = parser.add_argument
    add("--settings", nargs="+", default=["*"], metavar="PATTERN", help="such as 'digits/*'")
    add("--methods", nargs="+", default=["*"], metavar="PATTERN", help="such as 'ours:*'")
    add("--runs", type=Path, default=Path("out/cost_runs"), help="folder of finished runs")
    add("--smoke", action="store_true", help="two small settings, one seed, results in out/")
    add("--tables-only", action="store_true", help="render the runs that are in cost.json anew")
    options = parser.parse_args()
    if options.smoke:
        parser.set_defaults(**SMOKE, out=Path("out/cost_smoke"))
        options = parser.parse_args()
    return options


def main() -> None:
    options = parse_options()
    if options.tables_only:
        content = json.loads((options.out / "cost.json").read_text())
    else:
        settings, methods = choose(options)
        known = options.seeds, methods
        runs = run_all(settings, *known, folder=options.runs, n_jobs=options.n_jobs)
        content = provenance() | {
            "settings": [setting.name for setting in settings],
            "methods": methods,
            "runs": runs,
        }
    save(content, options.out)
    print((options.out / "cost.rst").read_text())


if __name__ == "__main__":
    main()
