"""Runs of `bench_cost`: each fit method on what each seed draws from each setting, once.

A run is known by the data and costs that were drawn, the parameters of the estimator, the
releases of the packages and the revision of the fit method. Two methods that differ only in the
decision share their run.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.common import engine
from benchmarks.common.engine import Result, Run
from benchmarks.cost.fit_methods import FitMethod
from benchmarks.cost.methods import METHODS
from benchmarks.cost.settings import Draw, Setting

Row = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """All methods on what a seed draws from a setting; the draws are made as it is iterated."""

    setting: Setting
    seed: int
    methods: Sequence[str]

    def __iter__(self) -> Iterator[Run]:
        draws = self.setting.draw(self.seed)
        drawn = [joblib.hash(draw._asdict()) for draw in draws]
        for name in self.methods:
            fit_method = METHODS[name].fit_method
            yield Run(
                f"{self.setting.file_name}_seed{self.seed}",
                {
                    "setting": self.setting.name,
                    "seed": self.seed,
                    "drawn": drawn,
                    **fit_method.identity(draws[0]),
                },
                partial(run_fit_method, fit_method, draws),
            )

    def rows(self, results: Sequence[Result]) -> Iterator[Row]:
        """What each method costs, from the results of the runs."""
        for name, result in zip(self.methods, results):
            yield {
                "setting": self.setting.name,
                "seed": self.seed,
                "method": name,
                "constant_cost": result["constant_cost"],
                **result["decisions"][METHODS[name].decision],
            }


def run_all(
    settings: Sequence[Setting],
    seeds: Sequence[int],
    methods: Sequence[str],
    *,
    folder: Path,
    n_jobs: int = 1,
) -> list[Row]:
    """Run what has not been run, one setting and seed at a time in each process."""
    jobs = [Job(setting, seed, methods) for setting in settings for seed in seeds]
    # The largest come first, so that no process ends long after the others.
    jobs.sort(key=lambda job: job.setting.n_classes, reverse=True)
    results = engine.run_all(jobs, folder=folder, n_jobs=n_jobs)
    names = [setting.name for setting in settings]
    return sorted(
        (row for job, of_job in zip(jobs, results) for row in job.rows(of_job)),
        key=lambda row: (names.index(row["setting"]), row["seed"], methods.index(row["method"])),
    )


def run_fit_method(fit_method: FitMethod, draws: Sequence[Draw]) -> Result:
    """Costs, accuracy and CPU time of each decision, means over the draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        outcomes = [dict(judge(fit_method, draw)) for draw in draws]
    return {
        "constant_cost": float(np.mean([constant_cost(draw) for draw in draws])),
        "decisions": {
            decision: {
                what: float(np.mean([outcome[decision][what] for outcome in outcomes]))
                for what in outcomes[0][decision]
            }
            for decision in outcomes[0]
        },
    }


def judge(fit_method: FitMethod, draw: Draw) -> Iterator[tuple[str, dict[str, float]]]:
    rows = np.arange(len(draw.y_test))
    for decision, y_pred, seconds in fit_method.run(draw):
        yield (
            decision,
            {
                "test_cost": draw.cost_test[rows, y_pred].mean(),
                "accuracy": (y_pred == draw.y_test).mean(),
                "cpu_seconds": round(seconds, 3),
            },
        )


def constant_cost(draw: Draw) -> float:
    """Mean test cost of the one class that is cheapest in the training set."""
    return draw.cost_test[:, draw.cost_train.mean(axis=0).argmin()].mean()
