"""Rows that are too many to be copied, or to be shuffled one by one."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from auxcst_sklearn import (
    CostSensitiveAuxCNN,
    CostSensitiveAuxMLP,
    CostSensitiveEnsembleClassifier,
    CSAEPretrainedMLP,
)
from auxcst_sklearn._checks import lazy_rows
from auxcst_sklearn._training import batches

COST = [[0, 1, 5], [2, 0, 1], [10, 4, 0]]
N = 900


@pytest.fixture
def on_disk(monkeypatch):
    monkeypatch.setattr(lazy_rows, "DISK_BYTES", 1000)


@pytest.fixture
def in_blocks(on_disk, monkeypatch):
    monkeypatch.setattr(lazy_rows, "LARGE_BYTES", 1000)
    monkeypatch.setattr(batches, "BLOCK_BYTES", 2**9)
    monkeypatch.setattr(batches, "MIXED_BYTES", 2**13)


@pytest.fixture
def data():
    """Three classes; columns with a category, gaps, outliers and a far-off mean."""
    rng = np.random.RandomState(0)
    y = rng.randint(3, size=N)
    X = rng.randn(N, 6) + 1.5 * np.eye(3, 6)[y]
    X[:, 3] = (y + rng.randint(2, size=N)) % 3
    X[::7, 4] = np.nan
    X[:, 5] = 1e3 + np.exp(3 * X[:, 5])
    return X.astype(np.float32), y


def stored(X, folder, mode="r"):
    np.save(folder / "X.npy", X)
    return np.load(folder / "X.npy", mmap_mode=mode)


def mlp(**parameters):
    given = {"width": 16, "max_epochs": 3, "n_networks": 2, "random_state": 0, "cost_matrix": COST}
    return CostSensitiveAuxMLP(**{**given, **parameters})


@pytest.mark.parametrize(("mode", "dtype"), [("r", "f4"), ("r+", "f8"), ("c", ">f4")])
def test_a_file_gives_what_memory_gives(data, on_disk, tmp_path, mode, dtype):
    X, y = data
    weight = np.tile([0.0, 1, 2], N // 3)
    model = mlp(categorical_features=[3])
    expected = model.fit(X, y, sample_weight=weight).predict_cost(X)
    mapped = stored(X.astype(dtype), tmp_path, mode)
    found = model.fit(mapped, y, sample_weight=weight)
    np.testing.assert_array_equal(found.predict_cost(mapped), expected)
    np.testing.assert_array_equal(np.load(tmp_path / "X.npy"), X.astype(dtype))


def test_columns_of_a_file_and_other_estimators(data, on_disk, tmp_path):
    X, y = data
    mapped, X = stored(X, tmp_path)[:, :3], X[:, :3]
    csae = CSAEPretrainedMLP(
        depth=1, width=8, pretrain_epochs=2, max_epochs=2, cost_matrix=COST, random_state=0
    )
    for model in (mlp(), csae, mlp().fit(X, y).set_params(warm_start=True)):
        expected = model.fit(X, y).predict_cost(X)
        found = model.fit(mapped, y).predict_cost(mapped)
        assert found.shape == expected.shape
        if not getattr(model, "warm_start", False):
            np.testing.assert_array_equal(found, expected)
    model = mlp(classes=[0, 1, 2]).partial_fit(mapped, y).partial_fit(mapped, y)
    expected = mlp(classes=[0, 1, 2]).partial_fit(X, y).partial_fit(X, y).predict_cost(X)
    np.testing.assert_array_equal(model.predict_cost(X), expected)


def test_images_of_a_file(on_disk, tmp_path):
    rng = np.random.RandomState(0)
    images, y = rng.randint(256, size=(40, 8, 8), dtype=np.uint8), np.arange(40) % 3
    cnn = CostSensitiveAuxCNN(channels=4, max_epochs=2, cost_matrix=COST, random_state=0)
    for kind in (images, images / 255.0):
        expected = cnn.fit(kind, y).predict_cost(kind)
        mapped = stored(kind, tmp_path)
        np.testing.assert_array_equal(cnn.fit(mapped, y).predict_cost(mapped), expected)


def test_a_file_in_fortran_order_is_refused(data, on_disk, tmp_path):
    X, y = data
    with pytest.raises(ValueError, match="in Fortran order.*to_memmap"):
        mlp().fit(stored(np.asfortranarray(X), tmp_path), y)


MODELS = {
    "default": mlp(n_networks=3, max_epochs=8),
    "one network": mlp(n_networks=1, max_epochs=10),
    "all rows": mlp(n_networks=1, early_stopping=False, max_epochs=8),
    "categories": mlp(categorical_features=[3], max_epochs=6),
    "CSDNN": CSAEPretrainedMLP(
        depth=1, width=16, pretrain_epochs=2, max_epochs=8, cost_matrix=COST, random_state=0
    ),
}


@pytest.mark.parametrize(
    ("name", "is_sorted"), [("default", False), *((name, True) for name in MODELS)]
)
def test_blocks_cost_what_single_rows_cost(data, in_blocks, tmp_path, name, is_sorted, monkeypatch):
    X, y = data
    X = np.nan_to_num(X, nan=0)
    X_test, y_test = X[600:], y[600:]
    order = y[:600].argsort(kind="stable") if is_sorted else np.arange(600)
    X, y = X[order], y[order]
    model = MODELS[name]
    found = model.fit(stored(X, tmp_path), y)
    in_blocks_cost = -found.score(X_test, y_test)
    if not is_sorted:  # reproducible
        expected = found.predict_cost(X_test)
        same = model.fit(stored(X, tmp_path), y).predict_cost(X_test)
        np.testing.assert_array_equal(same, expected)
    monkeypatch.setattr(lazy_rows, "LARGE_BYTES", 2**30)
    cost = -model.fit(X, y).score(X_test, y_test)
    assert in_blocks_cost < 1.35 * cost + 0.05


def test_rows_of_weight_zero_are_not_seen(data, in_blocks, tmp_path):
    X, y = data
    X = np.nan_to_num(X, nan=0)
    weight = (np.arange(N) % 4 > 0).astype(float)
    X[weight == 0] = 1e6
    kept = weight > 0
    found = mlp().fit(stored(X, tmp_path), y, sample_weight=weight).predict_cost(X)
    expected = mlp().fit(X[kept], y[kept]).predict_cost(X)
    np.testing.assert_array_equal(found, expected)


def test_sample_costs_groups_and_validation_sets(data, in_blocks, tmp_path):
    X, y = data
    mapped, cost = stored(X, tmp_path), np.array(COST)[y] * np.linspace(0.5, 1.5, N)[:, None]
    groups = np.arange(N) // 9
    for given in (
        {"groups": groups},
        {"X_val": mapped[:99], "y_val": y[:99], "cost_val": cost[:99]},
    ):
        model = mlp(cost_matrix=None, max_epochs=8).fit(mapped, y, cost=cost, **given)
        assert -model.score(X, y, cost=cost) < 0.6 * cost.mean(axis=0).min()
        assert "valid_cost" in model.history_[-1]


def test_folds_of_an_ensemble_may_leave_out_rows(data, in_blocks, tmp_path):
    X, y = data
    members = [("network", mlp(cost_matrix=None, n_networks=3, max_epochs=8))]
    rows = np.arange(N).reshape(9, -1)

    def fit(*unseen):
        cv = [(np.setdiff1d(np.arange(N), rows[i]), rows[i].ravel()) for i in map(list, unseen)]
        ensemble = CostSensitiveEnsembleClassifier(members, cost_matrix=COST, cv=cv, random_state=0)
        return ensemble.fit(stored(X, tmp_path), y)

    model = fit([0, 1], [4, 5])
    assert model.named_estimators_["network"].training_.n_networks == 3
    assert -model.score(X, y) < 0.6 * np.mean(COST, axis=0).min()
    with pytest.raises(ValueError, match="hold out each row at most once"):
        fit([0, 1], [1, 2])


def test_checkpoints(data, in_blocks, tmp_path):
    X, y = data
    mapped = stored(X, tmp_path)
    model = mlp(categorical_features=[3], checkpoint_dir=tmp_path / "fit", random_state=0)
    expected = model.fit(mapped, y).predict_cost(X)
    np.testing.assert_array_equal(model.fit(mapped, y).predict_cost(X), expected)
    other = stored(X + np.float32(0.5), tmp_path)
    with pytest.raises(ValueError, match="X"):
        model.fit(other, y)


@pytest.mark.slow
def test_memory_stays_far_below_the_size_of_the_file(tmp_path):
    script = f"""
    import numpy as np
    from benchmarks.speed.memory import measured
    from auxcst_sklearn import CostSensitiveAuxMLP
    X = np.lib.format.open_memmap({str(tmp_path / "X.npy")!r}, "w+", np.float32, (80_000, 1_000))
    X[::3, :5] = 30  # a file of 320 MB, most of it a hole
    X = np.load({str(tmp_path / "X.npy")!r}, mmap_mode="r")
    y, weight = np.arange(80_000) % 2, np.arange(80_000) % 5
    model = CostSensitiveAuxMLP(width=8, depth=1, n_networks=2, max_epochs=1, batch_size=512)
    model.fit(X[:500], y[:500])
    with measured() as fit:
        model.fit(X, y, sample_weight=weight)
    with measured() as predict:
        model.predict(X)
    print(model.input_scale_ is not None, fit.mib < 160, predict.mib < 40, fit.mib, predict.mib)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("True True True"), done.stdout
