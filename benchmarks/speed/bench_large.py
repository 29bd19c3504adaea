"""Training and prediction from memory maps: anonymous memory beyond the data, and rows a second.

A file of numbers is written once, by blocks, and each case opens it in a fresh process, which
reports how far its anonymous memory rises above what labels, weights and imports take. Costs are
those of a matrix. Writes the table with versions as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance

COST = [[0, 1, 5], [2, 0, 1], [10, 4, 0]]
N_TEST = 100_000
BLOCK = 100_000
ONE = {"n_networks": 1, "max_epochs": 1}
CASES = {
    "one network": {"mode": "r", "parameters": ONE},
    "default, five networks": {"mode": "r", "parameters": {"max_epochs": 1}},
    "one network, mode c": {"mode": "c", "parameters": ONE},
    "one network, mode r+": {"mode": "r+", "parameters": ONE},
    "one network, a tenth of weight 0": {"mode": "r", "parameters": ONE, "weights": True},
    "one network, rows scaled": {"mode": "r", "parameters": {**ONE, "standardize": True}},
    "CSDNN": {
        "mode": "r",
        "model": "CSAEPretrainedMLP",
        "parameters": {"depth": 1, "width": 64, "pretrain_epochs": 1, "max_epochs": 1},
    },
}


def write_rows(folder: Path, n_rows: int, n_features: int) -> None:
    """Rows of three classes, and their labels; the last `N_TEST` are for tests."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(n_features, 3)).astype(np.float32)
    shape = (n_rows + N_TEST, n_features)
    X = np.lib.format.open_memmap(folder / "X.npy", "w+", np.float32, shape)
    y = np.empty(len(X), np.int64)
    for start in range(0, len(X), BLOCK):
        rows = X[start : start + BLOCK]
        rows[:] = rng.standard_normal(rows.shape, dtype=np.float32)
        noise = 0.5 * n_features**0.5 * rng.standard_normal((len(rows), 3), dtype=np.float32)
        y[start : start + BLOCK] = (rows @ weights + noise).argmax(axis=1)
    X.flush()
    np.save(folder / "y.npy", y)


def anonymous_mib() -> float:
    """Memory of this process that is no file."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


@contextmanager
def measured():
    """Peak of the anonymous memory above that at the start, and seconds."""
    found, done = SimpleNamespace(mib=0.0), threading.Event()
    before, start, cpu = anonymous_mib(), time.perf_counter(), time.process_time()

    def watch() -> None:
        while not done.wait(0.005):
            found.mib = max(found.mib, anonymous_mib() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    yield found
    found.seconds, found.cpu = time.perf_counter() - start, time.process_time() - cpu
    done.set()
    thread.join()


def run(folder: Path, name: str) -> dict:
    """One case, in this process."""
    import auxcst_sklearn
    from auxcst_sklearn.metrics import mean_cost

    case = CASES[name]
    X, y = np.load(folder / "X.npy", mmap_mode=case["mode"]), np.load(folder / "y.npy")
    X, X_test, y, y_test = X[:-N_TEST], X[-N_TEST:], y[:-N_TEST], y[-N_TEST:]
    weight = None
    if case.get("weights"):
        weight = np.random.default_rng(1).integers(10, size=len(y)).astype(float)
    kind = getattr(auxcst_sklearn, case.get("model", "CostSensitiveAuxMLP"))
    model = kind(cost_matrix=COST, random_state=0, **case["parameters"])
    model.fit(X[:1000], y[:1000])  # imports and allocations of a first fit are not of the data
    with measured() as fit:
        model.fit(X, y, sample_weight=weight)
    with measured() as predict:
        chosen = model.predict(X[: 10 * N_TEST])
    return {
        "fit_mib": round(fit.mib),
        "fit_seconds": round(fit.seconds, 1),
        "fit_cpu_seconds": round(fit.cpu, 1),
        "rows_per_second": round(sum(h["dur"] > 0 for h in model.history_) * len(y) / fit.seconds),
        "predict_mib": round(predict.mib),
        "predict_rows_per_second": round(len(chosen) / predict.seconds),
        "test_cost": round(mean_cost(y_test, model.predict(X_test), cost_matrix=COST), 4),
    }


def main() -> None:
    parser = make_parser(__doc__, out=RESULTS / "large.json")
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--features", type=int, default=250)
    parser.add_argument("--cases", nargs="+", default=list(CASES))
    parser.add_argument("--folder", type=Path, required=True, help="for the files, on a real disk")
    parser.add_argument("--case", help="run this one in this process")
    options = parser.parse_args()
    if options.case:
        print(json.dumps(run(options.folder, options.case)))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    if not (options.folder / "y.npy").exists():
        write_rows(options.folder, options.rows, options.features)
    results = {}
    for name in options.cases:
        command = [sys.executable, "-m", "benchmarks.speed.bench_large"]
        command += ["--folder", str(options.folder), "--case", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        results[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, results[name], flush=True)
    table = {"rows": options.rows, "features": options.features, "cases": results}
    write_json(options.out, {**provenance(), **table})


if __name__ == "__main__":
    main()
