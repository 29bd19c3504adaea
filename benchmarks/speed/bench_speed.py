"""Speed against a training loop written by hand, and against peers.

Every method of a case lives in a process of its own, and the methods take turns, so that whatever
else the machine does meets all of them. A ratio is taken within each turn; medians and quartiles
are over the turns. On a machine that is not quiet only the ratios of CPU time count.

The loop by hand ("raw", `raw_loop.py`) trains the same network on the same batches with the same
fused optimizer. "ours" is one network, trained for a fixed number of epochs without held-out rows.
Methods named "-plain" have no auxiliary heads; those named by a loss ("one-sided", "ce" for
cross-entropy) neither dropout nor a schedule. Peers are compared with "raw-ce-plain", which is
their network. Data are drawn at random: speed does not depend on what they mean.

Prints the tables and what was aimed at, and writes all times with versions and machine as JSON, to
`results/speed.json` unless `--quick` or `--out` is given.
"""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.speed.methods import METHODS, Case, is_network
from benchmarks.speed.report import (
    CaseTimes,
    describe_machine,
    import_target,
    pickle_target,
    print_rows,
    print_startup,
    print_targets,
    ratio_targets,
    summarize,
)
from benchmarks.speed.startup import measure_pickle, measure_startup
from benchmarks.speed.worker import Worker

PAIRS = ("ours", "raw", "ours-one-sided", "raw-one-sided", "ours-ce-plain", "raw-ce-plain")
PLAIN = ("ours-plain", "raw-plain", "ours-one-sided-plain", "raw-one-sided-plain")
SMALL = {"rows": 2000, "shape": (20,), "width": 32}
MEDIUM = {"rows": 20_000, "shape": (100,), "width": 256}
ONE_AND_MANY = (1, 20_000)

CASES = {
    "small": Case(
        **SMALL,
        n_classes=10,
        epochs=30,
        methods=(*PAIRS, *PLAIN, "skorch", "mlp", "boosting", "allpairs-logistic"),
        predict_rows=ONE_AND_MANY,
        all_threads=True,
    ),
    "small, depth 1": Case(**SMALL, n_classes=10, epochs=40, depth=1, methods=PAIRS),
    "small, depth 5": Case(**SMALL, n_classes=10, epochs=30, depth=5, methods=PAIRS),
    "small, K 2": Case(**SMALL, n_classes=2, epochs=30, methods=(*PAIRS, "boosting")),
    # With ten classes a fit of all pairs by boosting takes a minute.
    "small, K 3": Case(
        **SMALL,
        n_classes=3,
        epochs=30,
        methods=("ours", "raw", "raw-ce-plain", "allpairs-logistic", "allpairs-boosting"),
    ),
    "small, K 256": Case(**SMALL, n_classes=256, epochs=20, methods=PAIRS),
    "medium": Case(
        **MEDIUM,
        n_classes=10,
        epochs=2,
        methods=(*PAIRS, *PLAIN, "skorch", "mlp", "allpairs-logistic"),
        predict_rows=ONE_AND_MANY,
        all_threads=True,
    ),
    "medium, depth 1": Case(**MEDIUM, n_classes=10, epochs=3, depth=1, methods=(*PAIRS, "mlp")),
    "medium, depth 5": Case(**MEDIUM, n_classes=10, epochs=2, depth=5, methods=(*PAIRS, "mlp")),
    "medium, K 2": Case(**MEDIUM, n_classes=2, epochs=2, methods=(*PAIRS, "mlp", "boosting")),
    "medium, K 256": Case(**MEDIUM, n_classes=256, epochs=2, methods=(*PAIRS, "mlp")),
    "large": Case(
        60_000,
        (784,),
        n_classes=10,
        epochs=1,
        depth=2,
        width=1024,
        methods=(*PAIRS[:2], *PLAIN[:2], *PAIRS[4:], "mlp"),
        predict_rows=ONE_AND_MANY,
        all_threads=True,
    ),
    "CNN": Case(
        2000, (3, 32, 32), n_classes=10, epochs=1, methods=(*PAIRS, "skorch"), all_threads=True
    ),
}


def measure(case: Case, threads: int, repeats: int) -> dict[str, dict[str, list]]:
    """Times of each method's fits and predictions, in turn."""
    records: dict[str, dict[str, list]] = {name: {} for name in case.methods}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(name, case, threads)) for name in case.methods}
        for worker in workers.values():
            worker.answer()
        names = list(case.methods)
        for _ in range(repeats):
            names.reverse()  # no method always has the same one before it
            for n in (0, *case.predict_rows):
                for name in filter(is_network, names) if n else names:
                    what = f"predict {n}" if n else "fit"
                    records[name].setdefault(what, []).append(workers[name].ask(n))
    return records


def parse_options(arguments: list[str] | None) -> argparse.Namespace:
    parser = make_parser(__doc__)
    add = parser.add_argument
    add(
        "--cases",
        nargs="+",
        choices=CASES,
        default=list(CASES),
        metavar="CASE",
        help="names of cases",
    )
    add(
        "--methods",
        nargs="+",
        choices=METHODS,
        default=list(METHODS),
        metavar="METHOD",
        help="names",
    )
    add("--repeats", type=int, help="turns, 5 unless --quick")
    add("--threads", nargs="+", default=["1", "all"], help="numbers of threads; all for the cores")
    add("--device", default="cpu", help="of the networks of torch")
    add("--quick", action="store_true", help="2 turns, 1 thread, networks, nothing large")
    add("--no-startup", action="store_true", help="leave out imports and first fits")
    add("--out", type=Path, help="file of results; None for results/speed.json, unless --quick")
    options = parser.parse_args(arguments)
    if options.quick:
        options.threads, options.repeats = ["1"], options.repeats or 2
        options.cases = [name for name in options.cases if name != "large"]
    else:
        options.out = options.out or RESULTS / "speed.json"
    options.repeats = options.repeats or 5
    return options


def choose(options: argparse.Namespace) -> list[tuple[str, Case, int]]:
    """Names, cases and numbers of threads of what is to be run."""
    chosen = []
    for value in options.threads:
        threads = os.cpu_count() if value == "all" else int(value)
        for name in options.cases:
            case = CASES[name]
            methods = tuple(m for m in case.methods if m in options.methods)
            if options.quick or value == "all":
                methods = tuple(filter(is_network, methods))
            if not methods or (value == "all" and not (case.all_threads and threads > 1)):
                continue
            epochs = max(1, case.epochs // 4) if options.quick else case.epochs
            case = replace(case, methods=methods, epochs=epochs, device=options.device)
            chosen.append((name, case, threads))
    return chosen


def main(arguments: list[str] | None = None) -> None:
    options = parse_options(arguments)
    result: dict[str, Any] = {**describe_machine(), "repeats": options.repeats}
    runs, rows = [], []
    for name, case, threads in choose(options):
        runs.append(CaseTimes(name, case, threads, measure(case, threads, options.repeats)))
        rows += (table := list(summarize(runs[-1])))
        print_rows(table)
    targets = list(ratio_targets(runs))
    result["cases"] = [{"case": r.name, "threads": r.threads, **asdict(r.case)} for r in runs]
    result["rows"] = rows
    if not options.no_startup:
        result["startup"] = startup = measure_startup(options.repeats)
        result["pickle"] = sizes = measure_pickle()
        print_startup(startup)
        targets += [pickle_target(sizes), import_target(startup)]
    result["targets"] = targets
    print_targets(targets)
    if options.out:
        write_json(options.out, result)


if __name__ == "__main__":
    main()
