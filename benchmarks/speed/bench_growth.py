"""Cost, log loss, time and memory as the number of rows grows: numbers, and claims.

`growth_data` has the rows. Ours, and scikit-learn's boosting, LightGBM and CatBoost, which decide
by expected cost, with one thread, each in a process of its own. CPU and wall seconds of a fit, of
the decisions of 20,000 rows and of one row, and how far anonymous memory rises above the data.
Writes the table with versions as JSON; with `--append`, cases that are there already stay.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from functools import partial
from itertools import product
from typing import Any

from threadpoolctl import threadpool_limits

from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import from_json, write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.cost.tables_data import TableSplit
from benchmarks.cost.tables_methods import (
    DEFAULT,
    ENSEMBLE,
    INPUTS,
    METHODS,
    bill,
    least_cost,
    log_loss,
)
from benchmarks.speed.growth_data import KINDS, draw
from benchmarks.speed.memory import measured
from benchmarks.speed.worker import timed

N_PREDICTED = 20_000
MODELS = (DEFAULT, ENSEMBLE, "boosting, early stop", "LightGBM", "CatBoost")


def measure(kind: str, n_rows: int, name: str) -> dict[str, Any]:
    """One model on one number of rows, in this process."""
    import torch

    torch.set_num_threads(1)
    split, method = draw(kind, n_rows), METHODS[name]
    # Imports and allocations of a first fit are not of the data.
    fit(name, split._replace(X_train=split.X_train[:1000], y_train=split.y_train[:1000]))
    with measured() as of_fit:
        inputs, model = fit(name, split)

    def decide(rows: Any) -> Any:
        X = inputs.transform(rows)
        return model.predict(X) if method.is_ours else model.predict_proba(X)

    with measured() as of_rows:
        decide(split.X_test[:N_PREDICTED])
    probability = model.predict_proba(inputs.transform(split.X_test))
    one_row = timed(partial(decide, split.X_test[:1]), at_least=0.5)
    return {
        "cost": round(bill(split, least_cost(probability, split)), 4),
        "log_loss": round(log_loss(split.y_test, probability), 4),
        "cpu_seconds": round(of_fit.cpu, 2),
        "wall_seconds": round(of_fit.seconds, 2),
        "fit_mib": round(of_fit.mib),
        "predict_cpu_seconds": round(of_rows.cpu, 3),
        "predict_mib": round(of_rows.mib),
        "one_row_ms": round(1000 * one_row["cpu"], 2),
        "epochs": len(getattr(model, "history_", [])),
    }


def fit(name: str, split: TableSplit) -> tuple[Any, Any]:
    """The conversion of the rows, and the fitted model."""
    method = METHODS[name]
    inputs, model = INPUTS[method.inputs](), method.make(0)
    return inputs, method.fit(model, inputs.fit_transform(split.X_train), split)


def run(case: list[str]) -> dict[str, Any]:
    """One case in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.bench_growth", "--case", *case]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def parse_options() -> argparse.Namespace:
    parser = make_parser(__doc__, out=RESULTS / "growth.json")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS), choices=KINDS)
    parser.add_argument("--rows", type=int, nargs="+", default=[6000, 20_000, 100_000, 1_000_000])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=METHODS, metavar="MODEL")
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--case", nargs=3, help="run this one in this process")
    return parser.parse_args()


def main() -> None:
    options = parse_options()
    if options.case:
        kind, n_rows, name = options.case
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(measure(kind, int(n_rows), name)))
        return
    known = from_json(options.out.read_text())["cases"] if options.append else []
    cases = {(c["kind"], c["rows"], c["model"]): c for c in known}
    for kind, n_rows, name in product(options.kinds, options.rows, options.models):
        if (kind, n_rows, name) not in cases:
            case = {"kind": kind, "rows": n_rows, "model": name}
            case |= run([kind, str(n_rows), name])
            cases[kind, n_rows, name] = case
            print(case, flush=True)
            about = provenance("pandas", "lightgbm", "catboost")
            write_json(options.out, {**about, "cases": list(cases.values())})


if __name__ == "__main__":
    main()
