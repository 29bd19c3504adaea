"""One row and many, against MLPClassifier and in onnxruntime; files, and what a process pays.

Models take turns, so that whatever else the machine does meets all of them; ratios are taken within
a turn, times are CPU time, and medians are over calls, then over turns. Rows have 20 float32
numbers of order one; five classes, three hidden layers. Writes all with versions as JSON.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.neural_network import MLPClassifier
from threadpoolctl import threadpool_limits

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveEnsembleClassifier
from auxcst_sklearn.onnx import to_onnx
from benchmarks.common.folders import RESULTS
from benchmarks.common.json_files import write_json
from benchmarks.common.options import make_parser
from benchmarks.common.provenance import provenance
from benchmarks.speed.startup import fresh

N_ROWS = 20_000
PEER = "MLPClassifier"
# Networks, units of a layer, activation, and whether costs are learnt per sample.
MODELS = {
    "3 x 32": (1, 32, "silu", False),
    "3 x 32, ReLU": (1, 32, "relu", False),
    "3 x 256": (1, 256, "silu", False),
    "default stack, 5 x 3 x 128": (5, 128, "silu", False),
    "default stack, costs per sample": (5, 128, "silu", True),
}
IMPORTS = (
    "import auxcst_sklearn",
    "import torch, skorch",
    "import torch, skorch; from auxcst_sklearn import CostSensitiveAuxMLP",
)
SERVICES = {
    "onnxruntime": "import onnxruntime; f = onnxruntime.InferenceSession({onnx!r})",
    "examples/serve.py": (
        "import sys; sys.path.insert(0, 'examples'); import serve; from pathlib import Path; "
        "f = serve.make_app(serve.Decider(Path({onnx!r})))"
    ),
    "a pickle": "import pickle; f = pickle.load(open({pickle!r}, 'rb')); f.predict([[0.0] * 20])",
}
# Not by resource, whose maximum is inherited from the process that starts another.
MEMORY = "print(next(s for s in open('/proc/self/status') if s.startswith('VmHWM')).split()[1])"


def draw(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, labels and costs, at random: speed does not depend on what they mean."""
    rng = np.random.default_rng(0)
    y = rng.integers(5, size=n)
    cost = rng.uniform(1, 2, size=(n, 5))
    cost[np.arange(n), y] = 0
    return rng.normal(size=(n, 20)).astype(np.float32), y, cost


def seconds(call: Callable[[], Any], repeats: int) -> float:
    """Median CPU time of a call."""
    times = []
    for _ in range(repeats):
        start = time.process_time_ns()
        call()
        times.append(time.process_time_ns() - start)
    return median(times) / 1e9


def session(path: Path) -> Callable[[np.ndarray], Any]:
    """Predict by a file in one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    loaded = onnxruntime.InferenceSession(path, options)
    return lambda X: loaded.run(None, {"X": X})


def measure(name: str, folder: Path, turns: int) -> dict[str, Any]:
    """Times of a model, of its file and of the peer; and the sizes of the files."""
    n_networks, width, activation, per_sample = MODELS[name]
    X, y, cost = draw(2000)
    model = CostSensitiveAuxMLP(width=width, n_networks=n_networks, max_epochs=2, random_state=0)
    model.set_params(activation=activation, device="cpu")
    model.fit(X, y, cost=cost if per_sample else None)
    peer = MLPClassifier((width,) * 3, max_iter=2, random_state=0).fit(X, y)
    to_onnx(model, X, folder / "model.onnx")
    (folder / "model.pickle").write_bytes(pickle.dumps(model))
    calls = {PEER: peer.predict, "ours": model.predict, "onnx": session(folder / "model.onnx")}
    many = draw(N_ROWS)[0]
    times: dict[str, list[float]] = {}
    for _ in range(turns):
        for label, predict in calls.items():
            times.setdefault(f"{label}, one row", []).append(
                seconds(lambda predict=predict: predict(X[:1]), 500)
            )
            times.setdefault(f"{label}, {N_ROWS} rows", []).append(
                seconds(lambda predict=predict: predict(many), 3)
            )
    weights = sum(p.numel() * p.element_size() for p in model.net_.module_.parameters())
    return {
        "model": name,
        "networks": n_networks,
        "ratios": ratios(times, n_networks),
        "seconds": {label: median(values) for label, values in times.items()},
        "pickle_to_weights": (folder / "model.pickle").stat().st_size / weights,
        "onnx_to_weights": (folder / "model.onnx").stat().st_size / weights,
    }


def tables(turns: int) -> dict[str, Any]:
    """Times of one row of a table with strings, as a DataFrame, and ratios to boosting."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 8)), columns=list("abcdefgh"))
    y = (X["a"] + rng.normal(size=2000) > 1).to_numpy()
    X["city"] = rng.choice([f"city {i}" for i in range(12)], 2000)
    X["kind"] = rng.choice(["new", "old"], 2000)
    peer = HistGradientBoostingClassifier(early_stopping=True, random_state=0)
    models = {
        "boosting": peer.fit(X.astype({"city": "category", "kind": "category"}), y),
        "CostSensitiveAuxMLP": CostSensitiveAuxMLP(max_epochs=2, random_state=0).fit(X, y),
        "CostSensitiveEnsembleClassifier": CostSensitiveEnsembleClassifier(random_state=0).fit(
            X, y
        ),
    }
    rows = dict.fromkeys(models, X[:1])
    rows["boosting"] = X[:1].astype({"city": "category", "kind": "category"})
    times: dict[str, list[float]] = {name: [] for name in models}
    for _ in range(turns):
        for name, model in models.items():
            times[name].append(seconds(lambda m=model, row=rows[name]: m.predict(row), 100))
    of_peer = times["boosting"]
    return {
        "seconds": {name: median(values) for name, values in times.items()},
        "ratios": {n: median(a / b for a, b in zip(v, of_peer)) for n, v in times.items()},
        "trees": sum(
            one.n_iter_
            for one in models["CostSensitiveEnsembleClassifier"].estimators_[-1].estimators
        ),
    }


def ratios(times: dict[str, list[float]], n_networks: int) -> dict[str, float]:
    """Times over those of the peer in the same turn; of many rows for each network."""
    found = {}
    for label, values in times.items():
        kind = label.partition(", ")[2]
        share = 1 if kind == "one row" else n_networks
        found[label] = median(a / b / share for a, b in zip(values, times[f"{PEER}, {kind}"]))
    return found


def service(statement: str, folder: Path) -> dict[str, float]:
    """Seconds until a process has loaded a file, and its largest memory."""
    code = statement.format(onnx=str(folder / "model.onnx"), pickle=str(folder / "model.pickle"))
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\n{MEMORY}"], check=True, capture_output=True, text=True
    )
    return {**fresh(code), "megabytes": round(int(run.stdout) * 1024 / 1e6)}


def main() -> None:
    parser = make_parser(__doc__, out=RESULTS / "serving.json")
    parser.add_argument("--turns", type=int, default=9, help="turns of the models")
    parser.add_argument("--tables", action="store_true", help="only replace the rows of tables")
    options = parser.parse_args()
    torch.set_num_threads(1)
    with threadpool_limits(1):
        of_tables = {**provenance(), **tables(options.turns)}
    print(of_tables["ratios"], flush=True)
    if options.tables:
        write_json(options.out, {**json.loads(options.out.read_text()), "tables": of_tables})
        return
    result: dict[str, Any] = {**provenance("onnxruntime", "onnxscript"), "models": []}
    result["tables"] = of_tables
    with TemporaryDirectory() as name:
        folder = Path(name)
        for model in MODELS:
            found = measure(model, folder, options.turns)
            result["models"].append(found)
            print(model, {k: round(v, 2) for k, v in found["ratios"].items()}, flush=True)
            print({k: f"{1e6 * v:.0f} us" for k, v in found["seconds"].items()})
            print({k: round(v, 3) for k, v in found.items() if k.endswith("_to_weights")})
        result["services"] = {k: service(v, folder) for k, v in SERVICES.items()}
    result["imports"] = {s: median(fresh(s)["cpu"] for _ in range(5)) for s in IMPORTS}
    print(result["services"], result["imports"])
    write_json(options.out, result)


if __name__ == "__main__":
    main()
