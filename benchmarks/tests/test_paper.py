"""The experiments on fully connected networks, on tiny files in MNIST's format."""

import json
import shutil
import sys
from dataclasses import asdict, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.common import json_files
from benchmarks.common.engine import key
from benchmarks.paper import (
    alpha_depth,
    compare,
    deep,
    dense,
    draws,
    layer_losses,
    report,
    smoothing,
    tuning,
)
from benchmarks.paper import runs as paper_runs
from benchmarks.paper.dense import DenseConfiguration, run
from benchmarks.paper.draws import draw
from benchmarks.paper.options import make_dense_parser

run_all = partial(paper_runs.run_all, load=draws.load, run=run)

TINY = DenseConfiguration(
    *("mnist", 100, 0, "aux"),
    depth=2,
    width=4,
    epochs=2,
    loss="squared",
    activation="relu",
    optimizer="sgd",
    learning_rate=0.1,
    alpha=0.2,
)
TINY_OPTIONS = ["--datasets", "mnist", "mnist-imb", "--train-size", "100", "--width", "4"]
TINY_OPTIONS += ["--epochs", "2", "--seeds", "0", "1"]


@pytest.fixture(scope="session")
def data_home(tmp_path_factory):
    """Twenty training and five test images of each digit; brightness tells digits apart."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for part, n in [("train", 200), ("t10k", 50)]:
        labels = np.arange(n, dtype=np.uint8) % 10
        images = rng.integers(0, 30, (n, 4, 4), dtype=np.uint8)
        images += 20 * labels[:, None, None]
        for kind, array in [("images-idx3", images), ("labels-idx1", labels)]:
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (folder / f"{part}-{kind}-ubyte").write_bytes(header + array.tobytes())
    return folder


@pytest.fixture(scope="session")
def data(data_home):
    return draws.load("mnist", data_home)


@pytest.fixture
def options(data_home, tmp_path):
    arguments = ["--data-home", str(data_home), "--out", str(tmp_path), "--n-jobs", "1"]
    return make_dense_parser("An experiment.").parse_args(arguments)


def lines(folder):
    """The finished runs."""
    return (folder / "runs.jsonl").read_text().splitlines()


def run_one(configuration, data):
    (result,) = run([configuration], data, "cpu")
    return result


# --- what a seed draws -----------------------------------------------------------------------


def test_all_methods_meet_the_same_draw(data):
    reference = draw(TINY, data)
    others = [
        replace(TINY, method="csae", alpha=None),
        replace(TINY, method="blind", loss="cross_entropy"),
        replace(TINY, depth=5, width=8, epochs=7, alpha=1.0),
    ]
    for other in others:
        for drawn, expected in zip(draw(other, data), reference):
            np.testing.assert_array_equal(drawn, expected)
    other = draw(replace(TINY, seed=1), data)
    assert not np.array_equal(other.X_train, reference.X_train)
    assert not np.array_equal(other.cost_matrix, reference.cost_matrix)


def test_draw_takes_a_stratified_part_of_the_training_set(data):
    drawn = draw(TINY, data)
    np.testing.assert_array_equal(np.bincount(drawn.y_train), np.full(10, 10))
    np.testing.assert_array_equal(drawn.X_test, data.X[200:])
    np.testing.assert_array_equal(drawn.y_test, data.y[200:])
    whole = draw(replace(TINY, train_size=None), data)
    np.testing.assert_array_equal(whole.X_train, data.X[:200])


def test_only_the_training_set_is_thinned_out(data):
    drawn = draw(replace(TINY, dataset="mnist-imb"), data)
    assert sorted(np.bincount(drawn.y_train)) == [3] * 4 + [10] * 6
    np.testing.assert_array_equal(drawn.y_test, data.y[200:])
    balanced = draw(TINY, data)
    assert {row.tobytes() for row in drawn.X_train} < {row.tobytes() for row in balanced.X_train}


def test_costs_follow_the_class_counts_of_the_training_set(data):
    drawn = draw(replace(TINY, dataset="mnist-imb"), data)
    count = np.bincount(drawn.y_train)
    share = drawn.cost_matrix / (10 * count / count[:, None])
    assert (np.diag(share) == 0).all()
    off = share[~np.eye(10, dtype=bool)]
    assert (off > 0).all()
    assert (off < 1).all()
    assert np.ptp(off) > 0.9
    balanced = draw(TINY, data)
    np.testing.assert_allclose(share, balanced.cost_matrix / 10)


def test_a_tuning_run_never_meets_the_test_part(data):
    whole, drawn = (draw(replace(TINY, train_size=None, tuning=t), data) for t in (False, True))
    assert (len(drawn.X_train), len(drawn.X_test)) == (166, 34)
    rows = {row.tobytes() for row in np.concatenate([drawn.X_train, drawn.X_test])}
    assert rows == {row.tobytes() for row in whole.X_train}
    np.testing.assert_array_equal(drawn.cost_matrix, whole.cost_matrix)
    assert np.bincount(drawn.y_test).min() >= 3


@pytest.mark.parametrize(
    ("train_size", "message"),
    [
        (201, "--train-size is 201; expected 1 to 200"),
        (0, "--train-size is 0; expected 1 to 200"),
        (5, "--train-size 5 leaves some of the 10 classes"),
    ],
)
def test_impossible_train_size_is_named(data, train_size, message):
    with pytest.raises(ValueError, match=message):
        draw(replace(TINY, train_size=train_size), data)


# --- one run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "configuration",
    [
        TINY,
        replace(TINY, method="csae", alpha=None),
        replace(TINY, depth=1, alpha=None),
        replace(TINY, early_stopping=True),
    ],
)
def test_run_tests_what_it_trained(data, configuration):
    record = run_one(configuration, data)
    drawn = draw(configuration, data)
    estimator = dense.make_estimator(configuration, drawn.cost_matrix, "cpu")
    y_pred = estimator.fit(drawn.X_train, drawn.y_train).predict(drawn.X_test)
    assert record["test_cost"] == pytest.approx(drawn.cost_matrix[drawn.y_test, y_pred].mean())
    constant = drawn.cost_matrix[drawn.y_test].mean(axis=0).min()
    assert record["savings"] == pytest.approx(1 - record["test_cost"] / constant)
    assert record["accuracy"] == pytest.approx(np.mean(drawn.y_test == y_pred))
    assert list(record["layer_losses"]) == [*estimator.hidden_layers_, "output"]
    last = estimator.history_[-1]["train_loss_output"]
    assert record["layer_losses"]["output"][-1] == pytest.approx(last, abs=1e-4)


def test_blind_and_bayes_share_the_network_and_differ_in_the_decision(data):
    bayes = replace(TINY, loss="cross_entropy", alpha=0.0, epochs=20)
    of_bayes, of_blind = (run_one(c, data) for c in (bayes, replace(bayes, method="blind")))
    assert of_blind["layer_losses"] == of_bayes["layer_losses"]
    assert of_blind["test_cost"] != of_bayes["test_cost"]


def test_alphas_are_trained_together_with_the_same_result(data):
    job = [replace(TINY, alpha=alpha) for alpha in (0.0, 0.2, 1.0)]
    other = replace(TINY, seed=1)
    assert paper_runs.make_jobs([job[0], other, *job[1:]]) == [job, [other]]
    for together, configuration in zip(run(job, data, "cpu"), job):
        alone = run_one(configuration, data)
        assert together["test_cost"] == pytest.approx(alone["test_cost"])
        for layer, losses in alone["layer_losses"].items():
            assert together["layer_losses"][layer] == pytest.approx(losses, abs=2e-4)


def test_a_network_that_diverges_spares_the_others(data):
    job = [replace(TINY, alpha=a, loss="squared", learning_rate=0.05) for a in (0.0, 1e9)]
    together = run(job, data, "cpu")
    assert together[0]["test_cost"] == run_one(job[0], data)["test_cost"]
    assert together[1] == {"diverged": True}


# --- what is chosen ---------------------------------------------------------------------------


@pytest.fixture
def candidates():
    longer = replace(TINY, epochs=20)
    return {"a": [replace(longer, learning_rate=rate) for rate in (1e-9, 0.05, 1e9)], "b": [TINY]}


def test_the_candidate_of_least_held_out_cost_is_chosen(options, candidates, tmp_path):
    chosen = tuning.choose(candidates, options)
    runs = [json.loads(line) for line in lines(tmp_path)]
    assert {(r["identity"]["tuning"], r["identity"]["seed"]) for r in runs} == {(True, 100)}
    costs = [r["result"].get("held_out_cost", np.inf) for r in runs]
    assert costs[2] == np.inf
    assert chosen == {"a": candidates["a"][np.argmin(costs)], "b": TINY}
    assert not any("test_cost" in r["result"] for r in runs)

    options.seeds = [3, 4]
    rows = tuning.run_seeds(chosen, options)
    assert [(name, row["seed"], row["tuning"]) for name, row in rows] == [
        (name, seed, False) for seed in (3, 4) for name in "ab"
    ]


def test_nothing_is_chosen_on_the_test_part(data, candidates):
    y = data.y.copy()
    y[200:] = (y[200:] + 1) % 10
    other = data._replace(y=y)
    tuned = replace(candidates["a"][1], tuning=True)
    of_both = [run_one(tuned, d) for d in (data, other)]
    for result in of_both:
        del result["seconds"]
    assert of_both[0] == of_both[1]
    stopped = replace(TINY, width=16, epochs=40, loss="one_sided", early_stopping=True)
    one, two = (run_one(stopped, d) for d in (data, other))
    assert one["layer_losses"] == two["layer_losses"]
    assert one["test_cost"] != two["test_cost"]


def test_runs_that_diverged_are_left_out(options, candidates, capsys):
    options.seeds = [0]
    rows = tuning.run_seeds({"a": candidates["a"][2], "b": TINY}, options)
    assert [name for name, _ in rows] == ["b"]
    assert "1 of 2 runs diverged" in capsys.readouterr().out


# --- all runs ---------------------------------------------------------------------------------


def test_finished_runs_are_not_run_again(options, tmp_path):
    configurations = [replace(TINY, seed=seed, alpha=a) for seed in (0, 1) for a in (0.0, 0.2)]
    first = run_all(configurations, options)
    assert [(r["seed"], r["alpha"]) for r in first] == [(0, 0.0), (0, 0.2), (1, 0.0), (1, 0.2)]
    for configuration, row in zip(configurations, first):
        assert asdict(configuration).items() <= row.items()
    before = lines(tmp_path)
    assert len(before) == 4

    options.data_home = tmp_path / "nowhere"  # there is nothing left to load data for
    assert run_all(configurations[::-1], options) == first[::-1]
    assert lines(tmp_path) == before


def test_only_what_is_missing_is_run(options, tmp_path):
    configurations = [replace(TINY, seed=seed) for seed in (0, 1)]
    first = run_all(configurations, options)
    before = lines(tmp_path)
    (tmp_path / "runs.jsonl").write_text(before[0] + "\n" + before[1][:100])  # interrupted

    second = run_all(configurations, options)
    assert [r["test_cost"] for r in second] == [r["test_cost"] for r in first]
    assert lines(tmp_path)[:2] == [before[0], before[1][:100]]
    assert len(lines(tmp_path)) == 3
    assert run_all(configurations, options) == second


def test_what_is_finished_is_reported_without_a_run(options, tmp_path):
    run_all([TINY], options)
    before = lines(tmp_path)
    options.finished, options.seeds, options.data_home = True, [0, 1], tmp_path / "nowhere"
    candidates = [replace(TINY, learning_rate=rate) for rate in (0.1, 0.2)]
    rows = tuning.run_seeds(tuning.choose({"a": candidates}, options), options)
    assert [(name, row["seed"]) for name, row in rows] == [("a", 0)]
    assert lines(tmp_path) == before


def test_equal_configurations_are_run_once(options, tmp_path):
    rows = run_all([TINY, TINY], options)
    assert rows[0] == rows[1]
    assert len(lines(tmp_path)) == 1


def test_what_was_finished_before_an_error_is_kept(options, tmp_path):
    with pytest.raises(ValueError, match="--train-size"):
        run_all([TINY, replace(TINY, train_size=5)], options)
    (line,) = lines(tmp_path)
    assert json.loads(line)["identity"] == TINY.identity
    assert "torch" in json.loads(line)["versions"]


def test_a_new_parameter_that_is_none_keeps_earlier_runs(options, tmp_path):
    first = run_all([TINY], options)
    text = (tmp_path / "runs.jsonl").read_text()
    (tmp_path / "runs.jsonl").write_text(text.replace('"tau": null, ', ""))
    assert text != (tmp_path / "runs.jsonl").read_text()
    assert run_all([TINY], options) == first
    assert len(lines(tmp_path)) == 1


def test_missing_data_names_the_folder(options, data_home, tmp_path):
    options.data_home = tmp_path / "incomplete"
    options.data_home.mkdir()
    shutil.copy(data_home / "train-images-idx3-ubyte", options.data_home)
    with pytest.raises(FileNotFoundError, match="incomplete lacks t"):
        run_all([TINY], options)


@pytest.mark.parametrize("content", [{"cost": object()}, {"cost": float("nan")}])
def test_failed_write_leaves_nothing_behind(tmp_path, content):
    path = tmp_path / "run.json"
    with pytest.raises((TypeError, ValueError)):
        json_files.write_json(path, content)
    assert list(tmp_path.iterdir()) == []
    json_files.write_json(path, {"cost": 1})
    with pytest.raises((TypeError, ValueError)):
        json_files.write_json(path, content)
    assert [json.loads(p.read_text()) for p in tmp_path.iterdir()] == [{"cost": 1}]


def test_every_option_that_matters_is_part_of_the_identity():
    other = DenseConfiguration(
        *("mnist-imb", None, 1, "csae", 3, 8, 5, "one_sided", "tanh", "adam", 1.0, 0.0, 0.1, 2.0),
        early_stopping=True,
        tuning=True,
    )
    changed = [replace(TINY, **{f.name: getattr(other, f.name)}) for f in fields(TINY)]
    assert len({key(c.identity) for c in [TINY, *changed]}) == 1 + len(fields(TINY))


# --- results ----------------------------------------------------------------------------------


def test_summary_equals_numpy():
    rows = [
        {"dataset": "mnist", "depth": depth, "seed": seed, "test_cost": (seed + depth) ** 0.5}
        for seed in range(4)
        for depth in (1, 2)
    ]
    rows.append({"dataset": "mnist", "depth": 3, "seed": 0, "test_cost": 2.0})
    one, two, single = report.summarize(rows, ["dataset", "depth"])
    for entry in (one, two):
        costs = np.sqrt(np.arange(4) + entry["depth"])
        assert entry["mean"] == pytest.approx(np.mean(costs))
        assert entry["standard_error"] == pytest.approx(np.std(costs, ddof=1) / 2)
        assert entry["n_seeds"] == 4
    assert single == {
        "dataset": "mnist",
        "depth": 3,
        "n_seeds": 1,
        "mean": 2.0,
        "standard_error": None,
    }


def test_differences_are_paired():
    costs = {(0, "a"): 1.0, (0, "b"): 1.5, (1, "b"): 7.25, (1, "a"): 7.0, (2, "b"): 3.0}
    rows = [
        {"dataset": "mnist", "depth": 2, "seed": seed, "method": method, "test_cost": cost}
        for (seed, method), cost in costs.items()
    ]
    excess = report.differences(rows, "method", "a")
    assert [(row["seed"], row["difference"]) for row in excess] == [(0, 0.5), (1, 0.25)]


def test_table_has_a_block_per_data_set():
    summary = [
        {"dataset": "mnist", "depth": 1, "alpha": None, "mean": 0.5, "standard_error": None},
        {"dataset": "mnist", "depth": 2, "alpha": 0.2, "mean": 1.25, "standard_error": 0.1},
        {"dataset": "cifar10", "depth": 2, "alpha": 0.2, "mean": 3.0, "standard_error": 0.2},
    ]
    lines = [line.split() for line in report.format_table(summary, "depth", "alpha").splitlines()]
    assert lines[:4] == [
        ["mnist,", "by", "alpha"],
        ["depth", "any", "0.2"],
        ["1", "0.5000"],
        ["2", "1.2500", "+-", "0.1000"],
    ]
    assert lines[-1] == ["2", "3.0000", "+-", "0.2000"]


# --- the scripts ------------------------------------------------------------------------------


def results(script, arguments, monkeypatch, name):
    """Run a script here, and read what it writes."""
    monkeypatch.setattr(sys, "argv", [script.__file__, *map(str, arguments)])
    script.main()
    out = Path(arguments[arguments.index("--out") + 1])
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert (out / f"{name}.txt").read_text()
    saved = json.loads((out / f"{name}.json").read_text())
    assert saved["command"].startswith("python ")
    assert "torch" in saved["versions"]
    return saved


def test_alpha_depth_in_parallel_then_resumed(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 2]
    arguments += ["--depths", "1", "2", "--alphas", "0", "0.5"]
    saved = results(alpha_depth, arguments, monkeypatch, "alpha_depth")
    runs = lines(tmp_path)
    assert len(runs) == 2 * 2 * 3  # data sets, seeds; once for depth 1, two alphas for depth 2
    assert results(alpha_depth, arguments, monkeypatch, "alpha_depth") == saved
    assert lines(tmp_path) == runs

    assert len(saved["runs"]) == 12
    assert [run["alpha"] for run in saved["runs"][:3]] == [None, 0.0, 0.5]
    costs = [
        run["test_cost"]
        for run in saved["runs"]
        if (run["dataset"], run["depth"], run["alpha"]) == ("mnist-imb", 2, 0.5)
    ]
    (entry,) = (
        entry
        for entry in saved["costs"]
        if (entry["dataset"], entry["depth"], entry["alpha"]) == ("mnist-imb", 2, 0.5)
    )
    assert entry["mean"] == pytest.approx(np.mean(costs))
    assert {entry["alpha"] for entry in saved["differences"]} == {0.5}


def test_compare(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    arguments += ["--depths", "1", "2", "--alphas", "0", "1", "--learning-rates", "0.1", "0.2"]
    arguments += ["--csdnn-pretrain-rates", "0.1", "1"]
    saved = results(compare, arguments, monkeypatch, "compare")
    labels = ["AuxDNN", "NaiveDNN", "CSDNN", "blind", "Bayes"]
    named = {(r["dataset"], r["depth"], r["method"], r["seed"]): r for r in saved["runs"]}
    assert len(named) == len(saved["runs"]) == 2 * 2 * 5 * 2
    assert {name for *_, name, _ in named} == set(labels)
    one_layer = [named["mnist", 1, name, 0]["test_cost"] for name in labels[:2]]
    assert one_layer[0] == one_layer[1]
    assert named["mnist", 2, "CSDNN", 0]["pretrain_learning_rate"] in (0.1, 1)
    tuned = [line for line in lines(tmp_path) if json.loads(line)["identity"]["tuning"]]
    assert len(tuned) == 2 * ((2 + 4 + 4) + (4 + 4 + 4))


def test_layer_losses(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    saved = results(layer_losses, arguments, monkeypatch, "layer_losses")
    assert [(e["layer"], e["epoch"]) for e in saved["losses"][:6]] == [
        (layer, epoch) for layer in ("hidden1", "hidden2", "output") for epoch in (1, 2)
    ]
    runs = [json.loads(line) for line in lines(tmp_path)]
    of_mnist = [run["result"] for run in runs if run["identity"]["dataset"] == "mnist"]
    last = [result["layer_losses"]["hidden2"][1] for result in of_mnist]
    assert saved["losses"][3]["mean"] == pytest.approx(np.mean(last))


def test_deep(data_home, tmp_path, monkeypatch):
    arguments = ["--train-size", "50", "--seeds", "0", "--depths", "2", "--alphas", "0", "1"]
    arguments += ["--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    saved = results(deep, arguments, monkeypatch, "deep")
    assert [(run["depth"], run["alpha"]) for run in saved["runs"]] == [(2, 0), (2, 1)]
    assert all(run["epochs"] > 1 for run in saved["runs"])


def test_smoothing(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    arguments += ["--depths", "2", "--taus", "0", "0.001", "5"]
    saved = results(smoothing, arguments, monkeypatch, "smoothing")
    assert [run["loss"] for run in saved["runs"][:3]] == ["one_sided"] + ["smooth_one_sided"] * 2
    first = [json.loads(line)["result"] for line in lines(tmp_path)[:3]]
    none, little, much = [result["layer_losses"]["output"] for result in first]
    assert little == pytest.approx(none, abs=0.02)
    assert much[0] > none[0] + 5
