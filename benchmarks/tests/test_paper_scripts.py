"""The scripts of the experiments on fully connected networks."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from auxcst_sklearn import PAPER, CostSensitiveAuxMLP
from benchmarks.paper import alpha_depth, compare, layer_losses, parts
from benchmarks.paper.branches import GROUPS, group_alphas
from benchmarks.paper.dense import make_estimator
from benchmarks.tests.tiny_paper import TINY, finished, lines

pytestmark = pytest.mark.slow

TINY_OPTIONS = ["--datasets", "mnist", "mnist-imb", "--train-size", "100", "--width", "4"]
TINY_OPTIONS += ["--epochs", "2", "--seeds", "0", "1"]


def results(script, arguments, monkeypatch, name):
    """Run a script here: its numbers, the first of which stand in its tables."""
    monkeypatch.setattr(sys, "argv", [script.__file__, *map(str, arguments)])
    found = script.main()
    out = Path(arguments[arguments.index("--out") + 1])
    assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    command, versions, *text = (out / f"{name}.txt").read_text().splitlines()
    assert command.startswith(f"python -m benchmarks.paper.{name} --")
    assert "torch 2" in versions
    assert f" {found.get('costs', found.get('losses'))[0]['mean']:.4f}" in "".join(text)
    return found


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
    labels = ["AuxDNN", "NaiveDNN", "CSDNN", "blind", "Bayes", "MetaCost", "Zhou-Liu", "Kukar"]
    named = {(r["dataset"], r["depth"], r["method"], r["seed"]): r for r in saved["runs"]}
    assert len(named) == len(saved["runs"]) == 2 * 2 * 8 * 2
    assert {name for *_, name, _ in named} == set(labels)
    one_layer = [named["mnist", 1, name, 0]["test_cost"] for name in labels[:2]]
    assert one_layer[0] == one_layer[1]
    assert named["mnist", 2, "CSDNN", 0]["pretrain_learning_rate"] in (0.1, 1)
    tuned = sum(identity["tuning"] for identity, _ in finished(tmp_path))
    assert tuned == 2 * ((2 + 4 + 4 + 6) + (4 + 4 + 4 + 6))


def test_layer_losses(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    saved = results(layer_losses, arguments, monkeypatch, "layer_losses")
    assert [(e["layer"], e["epoch"]) for e in saved["losses"][:6]] == [
        (layer, epoch) for layer in ("hidden1", "hidden2", "output") for epoch in (1, 2)
    ]
    runs = finished(tmp_path)
    of_mnist = [result for identity, result in runs if identity["dataset"] == "mnist"]
    last = [result["layer_losses"]["hidden2"][1] for result in of_mnist]
    assert saved["losses"][3]["mean"] == pytest.approx(np.mean(last))


def test_parts(data_home, tmp_path, monkeypatch):
    arguments = ["--train-size", "50", "--seeds", "0", "1", "--data-home", data_home]
    arguments = [*map(str, arguments), "--out", str(tmp_path), "--n-jobs", "1"]
    monkeypatch.setattr(sys, "argv", [parts.__file__, *arguments])
    header, paper, *others = parts.table(parts.main()["runs"])
    assert [line[0] for line in (paper, *others)] == [*parts.PARTS, parts.WITHOUT_HEADS]
    cost = {line[0]: float(line[1].split()[0]) for line in (paper, *others)}
    assert paper[2] == ""
    first = next(iter(others))
    assert float(first[2].split()[0]) == pytest.approx(cost[first[0]] - cost["PAPER"], abs=2e-3)
    assert (tmp_path / "parts.txt").read_text().startswith("python -m benchmarks.paper.parts --")


def test_parts_end_in_the_default():
    last = [*parts.PARTS][-1]
    default = CostSensitiveAuxMLP().get_params()
    assert parts.parameters("PAPER") == PAPER
    assert all(default[name] == value for name, value in parts.parameters(last).items())


def test_the_start_of_the_authors():
    """Uniform within 4 sqrt(6 / (inputs + outputs)), with biases of zero."""
    configuration = replace(TINY, depth=2, activation="sigmoid", start="authors", epochs=1)
    still = replace(configuration, learning_rate=1e-30)
    X, y = np.random.default_rng(0).random((60, 30)), np.arange(60) % 3
    costs = 1 - np.eye(3)
    network = make_estimator(still, costs, "cpu").fit(X, y)
    for linear, *_ in network.net_.module_.hidden.values():
        weight = linear.weight.detach().numpy()
        bound = 4 * np.sqrt(6 / sum(weight.shape[1:]))
        assert 0.8 * bound < abs(weight).max() <= bound
        assert linear.bias.detach().numpy() == pytest.approx(0, abs=1e-20)
    network = make_estimator(replace(still, start=None), costs, "cpu").fit(X, y)
    assert abs(network.net_.module_.hidden["hidden1"][0].weight).max() <= 1 / np.sqrt(30)


def test_branches(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    saved = results(alpha_depth, [*arguments, "--depths", "1", "2"], monkeypatch, "alpha_depth")
    assert (tmp_path / "branches.png").exists()
    runs = [run for run in saved["runs"] if run["dataset"] == "mnist-imb"]
    cost = {(run["depth"], run["seed"], run["alpha"]): run["test_cost"] for run in runs}
    for row in group_alphas(runs):
        alphas = GROUPS[row["alphas"]] if row["depth"] > 1 else [None]
        expected = np.mean([cost[row["depth"], row["seed"], alpha] for alpha in alphas])
        assert row["test_cost"] == pytest.approx(expected)


def test_branches_of_some_alphas(data_home, tmp_path, monkeypatch):
    arguments = [*TINY_OPTIONS, "--data-home", data_home, "--out", tmp_path, "--n-jobs", 1]
    arguments += ["--depths", "2", "--alphas", "0", "0.2", "1"]
    results(alpha_depth, arguments, monkeypatch, "alpha_depth")
    assert not (tmp_path / "branches.png").exists()
