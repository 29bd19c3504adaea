"""Runs of `bench_cost`: each training of each setting and seed once, kept in a file of its own.

The name of the file holds a digest of all that determines its content: the data and costs that
were drawn, the parameters of the estimator, the releases of the packages and, for our own
estimators, the code of the package. What is found is not run again, so that an interrupted
benchmark goes on where it stopped, and two methods that are the same training share it.
"""

from __future__ import annotations

import ast
import json
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from joblib import Parallel, delayed
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm  # comes with skorch

import auxcst_sklearn
from benchmarks.common.json_files import write_json
from benchmarks.cost import fit_methods as _trainings
from benchmarks.cost.fit_methods import Training
from benchmarks.cost.methods import METHODS
from benchmarks.cost.settings import Setting, Task

Row = dict[str, Any]


def run_all(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    methods: Sequence[str],
    *,
    folder: Path,
    data_home: Path | None = None,
    n_jobs: int = 1,
) -> list[Row]:
    """Run what has not been run, one setting and seed at a time in each process."""
    folder.mkdir(parents=True, exist_ok=True)
    # The largest come first, so that no process ends long after the others.
    jobs = sorted(
        ((setting, seed) for setting in settings for seed in seeds),
        key=lambda job: (job[0].pixels, job[0].n_classes),
        reverse=True,
    )
    rows = Parallel(n_jobs, return_as="generator_unordered")(
        delayed(run_setting)(setting, seed, methods, folder, data_home) for setting, seed in jobs
    )
    unordered = [row for some in tqdm(rows, total=len(jobs), unit="task") for row in some]
    names = [setting.name for setting in settings]
    return sorted(
        unordered,
        key=lambda row: (names.index(row["setting"]), row["seed"], methods.index(row["method"])),
    )


def run_setting(
    setting: Setting, seed: int, methods: Sequence[str], folder: Path, data_home: Path | None
) -> list[Row]:
    """All methods on the tasks that a seed draws."""
    tasks = setting.draw(seed, data_home)
    drawn = [joblib.hash(task) for task in tasks]
    rows = []
    for name in methods:
        training, decision, left_out = METHODS[name]
        if left_out(setting):
            continue
        identity = training.identity(tasks[0]) | code(training)
        path = folder / f"{setting.file_name}_seed{seed}_{digest([drawn, identity])}.json"
        if path.exists():
            record = json.loads(path.read_text())
        else:
            record = run_training(training, tasks)
            write_json(path, {"setting": setting.name, "seed": seed, **identity, **record})
        rows.append(
            {
                "setting": setting.name,
                "seed": seed,
                "method": name,
                "constant_cost": record["constant_cost"],
                **record["decisions"][decision],
            }
        )
    return rows


def run_training(training: Training, tasks: Sequence[Task]) -> dict[str, Any]:
    """Costs, accuracy and CPU time of each decision, means over the tasks."""
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        outcomes = [dict(judge(training, task)) for task in tasks]
    return {
        "constant_cost": float(np.mean([constant_cost(task) for task in tasks])),
        "decisions": {
            decision: {
                what: float(np.mean([outcome[decision][what] for outcome in outcomes]))
                for what in outcomes[0][decision]
            }
            for decision in outcomes[0]
        },
    }


def judge(training: Training, task: Task) -> Iterator[tuple[str, dict[str, float]]]:
    rows = np.arange(len(task.y_test))
    for decision, y_pred, seconds in training.run(task):
        yield (
            decision,
            {
                "test_cost": task.cost_test[rows, y_pred].mean(),
                "accuracy": (y_pred == task.y_test).mean(),
                "cpu_seconds": round(seconds, 3),
            },
        )


def constant_cost(task: Task) -> float:
    """Mean test cost of the one class that is cheapest in the training set."""
    return task.cost_test[:, task.cost_train.mean(axis=0).argmin()].mean()


def digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def code(training: Training) -> dict[str, str]:
    """Digests of the code that trains: of this benchmark and, for our estimators, the package."""
    digests = {"code": code_digest([Path(_trainings.__file__)])}
    if "auxcst_sklearn" in training.packages:
        digests["package code"] = package_digest()
    return digests


@cache  # what was imported stays, whatever happens to the files
def package_digest() -> str:
    return code_digest(Path(auxcst_sklearn.__file__).parent.rglob("*.py"))


def code_digest(paths: Iterable[Path]) -> str:
    """Digest of source files; comments and docstrings do not count."""
    return digest(
        [(path.name, ast.dump(without_docstrings(path.read_text()))) for path in sorted(paths)]
    )


def without_docstrings(source: str) -> ast.Module:
    tree = ast.parse(source)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return tree
