"""What a fresh process pays: imports and the first fit. And what a pickle weighs."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys

from benchmarks.common.folders import ROOT
from benchmarks.speed.methods import METHODS, Case, draw

IMPORTS = {
    "import torch": "import torch",
    "import torch, sklearn.base": "import torch, sklearn.base",
    "import auxcst_sklearn": "import auxcst_sklearn",
    "import CostSensitiveAuxMLP": "from auxcst_sklearn import CostSensitiveAuxMLP",
    "import MLPClassifier": "from sklearn.neural_network import MLPClassifier",
    "import skorch": "import skorch",
}

FIRST_FITS = ("ours", "raw", "skorch", "mlp")

FIRST_FIT = """
from benchmarks.speed.methods import METHODS, Case, draw
case = Case(2000, (20,), 10, epochs=1, methods=(), width=32)
X, y, cost_matrix = draw(case)
"""

SCRIPT = """
import time
{setup}
wall, cpu = time.perf_counter(), time.process_time()
{statement}
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


def fresh(statement: str, setup: str = "") -> dict[str, float]:
    """CPU and wall seconds of a statement, in a new process with one thread."""
    code = SCRIPT.format(setup=setup, statement=statement)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", code]
    run = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT
    )
    return dict(zip(("cpu", "wall"), map(float, run.stdout.split())))


def measure_startup(repeats: int) -> dict[str, list[dict[str, float]]]:
    """Times of imports, and of imports and a first fit of one epoch, in turn."""
    times: dict[str, list[dict[str, float]]] = {}
    for _ in range(repeats):
        for name, statement in IMPORTS.items():
            times.setdefault(name, []).append(fresh(statement))
        for name in FIRST_FITS:
            statement = f"METHODS[{name!r}](case, cost_matrix).fit(X, y)"
            times.setdefault(f"import and first fit, {name}", []).append(
                fresh(statement, FIRST_FIT)
            )
    return times


def measure_pickle() -> dict[str, int]:
    """Bytes of a fitted estimator of width 256-256, and of its weights."""
    case = Case(2000, (100,), 10, epochs=2, methods=(), depth=2)
    X, y, cost_matrix = draw(case)
    estimator = METHODS["ours"](case, cost_matrix).fit(X, y)
    parameters = estimator.net_.module_.parameters()
    return {
        "pickle_bytes": len(pickle.dumps(estimator)),
        "weight_bytes": sum(p.numel() * p.element_size() for p in parameters),
    }
