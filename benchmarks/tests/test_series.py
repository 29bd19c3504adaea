"""The benchmark of time series, on the simulated ECG and a tiny file in the format of aeon."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from benchmarks.cost import bench_series, series_data
from benchmarks.cost.bench_series import DEFAULT, LITTLE, METHODS, ROCKET, Job, judge, render
from benchmarks.cost.series_data import SeriesSplit, draw, ecg
from benchmarks.cost.series_networks import NETWORKS


@pytest.fixture
def split():
    """Twelve series of each of two classes: rising and falling, in noise."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 2
    X = rng.normal(0, 0.1, (24, 1, 32)) + np.linspace(-1, 1, 32) * np.where(y, 1, -1)[:, None, None]
    X = X.astype(np.float32)
    return SeriesSplit(X, y, X, y, np.array([[0, 1.0], [3, 0]]))


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package with one set of two channels."""
    folder = tmp_path / "datasets" / "data" / "BasicMotions"
    folder.mkdir(parents=True)
    for part, n in (("TRAIN", 8), ("TEST", 12)):
        rows = [f"{i},1.5,2:0,{i},1:{'ab'[i % 2]}" for i in range(n)]
        (folder / f"BasicMotions_{part}.ts").write_text("\n".join(["@classLabel", "@data", *rows]))
    origin = str(tmp_path / "__init__.py")
    monkeypatch.setattr(series_data, "find_spec", lambda name: SimpleNamespace(origin=origin))


def test_series_are_read_as_they_are(package):
    X, y, X_test, y_test, costs = draw("BasicMotions", 0)

    np.testing.assert_array_equal(X[3], [[3, 1.5, 2], [0, 3, 1]])
    assert (X.shape, X_test.shape, X.dtype) == ((8, 2, 3), (12, 2, 3), np.float32)
    assert y.tolist() == [0, 1] * 4
    assert (np.diag(costs) == 0).all()
    again = draw("BasicMotions", 1)
    assert sorted(np.concatenate([again.X_train, again.X_test])[:, 0, 0]) == sorted(
        np.concatenate([X, X_test])[:, 0, 0]
    )
    assert np.bincount(again.y_train).tolist() == [4, 4]


def test_the_error_names_what_to_install(monkeypatch):
    monkeypatch.setattr(series_data, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install aeon"):
        draw("GunPoint", 0)


def test_grades_of_the_ecg_lower_its_st_segments():
    X, y = ecg(300, np.random.RandomState(0))
    level = np.sort(X[:, 0], axis=1)[:, :40].mean(axis=1)
    means = [level[y == grade].mean() for grade in range(5)]
    assert X.shape == (300, 1, 150)
    assert means == sorted(means, reverse=True)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", [(1, 24), (6, 100)])
def test_networks_take_series_of_any_size(name, shape):
    net = NETWORKS[name](shape, 3).eval()
    assert net(torch.zeros(2, *shape)).shape == (2, 3)


@pytest.mark.slow
def test_each_method_learns_a_simple_problem(split, monkeypatch):
    monkeypatch.setattr(bench_series, "RATE", 1e-2)
    for method in METHODS:
        if method not in (ROCKET, "five networks"):
            found = judge(split, method, "ResNet", 0)
            assert found["cost"] < 0.3, method
            assert found["cpu_seconds"] > 0


def test_runs_of_methods_are_told_apart(package):
    runs = list(Job("BasicMotions", 0, ["ResNet", "Inception"], [DEFAULT, "plain torch"]))
    assert len({run.file_name for run in runs}) == len(runs) == 4


def test_ratios_are_geometric_means_and_a_method_without_network_counts_for_each():
    def run(name, network, method, cost):
        known = {"set": name, "seed": 0, "network": network, "method": method, "errors": 0.1}
        return {**known, "cost": cost - LITTLE, "log_loss": 1.0, "cpu_seconds": 2.0}

    runs = [
        *(run("ECG", "ResNet", m, c) for m, c in ((DEFAULT, 0.2), ("alpha=0", 0.1))),
        *(run("ECG", "Inception", m, c) for m, c in ((DEFAULT, 0.1), ("alpha=0", 0.2))),
        *(run("GunPoint", "ResNet", m, c) for m, c in ((DEFAULT, 0.1), ("alpha=0", 0.8))),
        run("ECG", "-", ROCKET, 0.2),
    ]
    lines = {line[:31].strip(): line[31:].split() for line in render(runs).splitlines()}
    others = {"alpha=0": ["8.000", "(0.000)"], ROCKET: ["-"]}
    assert lines["alpha=0"] == ["2.000", "(0.800)", *others["alpha=0"], "1.000", "1.000", "3"]
    assert lines[ROCKET] == ["1.414", "(0.347)", *others[ROCKET], "1.000", "1.000", "2"]
