"""The runs of the experiments: which are run, how they are kept, how they are summarized."""

import json
import shutil
from argparse import Namespace
from dataclasses import MISSING, asdict, fields, replace
from functools import partial

import numpy as np
import pytest

from benchmarks.common import json_files
from benchmarks.common.engine import key
from benchmarks.common.folders import RESULTS
from benchmarks.common.ledger import Ledger, known_by
from benchmarks.paper import draws, report, tuning
from benchmarks.paper import runs as paper_runs
from benchmarks.paper.alexnet import AlexNetConfiguration
from benchmarks.paper.dense import DenseConfiguration, run
from benchmarks.paper.fine_tuning import HEAD_INPUTS, FineTuningConfiguration
from benchmarks.paper.parts import PartsConfiguration
from benchmarks.tests.tiny_paper import TINY, finished, lines

run_all = partial(paper_runs.run_all, load=draws.load, run=run)

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
    ((identity, _),) = finished(tmp_path)
    assert identity == {n: v for n, v in TINY.identity.items() if v is not None}
    assert "torch" in json.loads(lines(tmp_path)[0])["versions"]


def test_a_line_has_what_differs_from_the_line_before(tmp_path):
    ledger = Ledger(tmp_path / "runs.jsonl")
    identities = [{"a": 1, "b": None}, {"a": 1, "b": 2}, {"a": 1, "c": "x"}, {"a": 1, "b": 2}]
    for i, identity in enumerate(identities):
        ledger.add(identity, {"cost": i / 3})
    written = [json.loads(line) for line in lines(tmp_path)]
    assert [line.pop("result") for line in written[1:3]] == [{"cost": 0.333333}, {"cost": 0.666667}]
    assert written[1:3] == [{"b": 2}, {"b": None, "c": "x"}]
    again = Ledger(tmp_path / "runs.jsonl")
    assert again.runs == ledger.runs
    assert again.get({"a": 1}) == {"cost": 0}  # what is None is no part of it
    assert again.get({"a": 1, "b": 2}) == {"cost": 1}
    assert {"a": 1, "b": 3} not in again


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
        "mnist-imb",
        None,
        1,
        "csae",
        3,
        8,
        5,
        "one_sided",
        "tanh",
        "adam",
        1.0,
        0.0,
        0.1,
        "authors",
        early_stopping=True,
        tuning=True,
        curves=True,
    )
    changed = [replace(TINY, **{f.name: getattr(other, f.name)}) for f in fields(TINY)]
    assert len({key(c.identity) for c in [TINY, *changed]}) == 1 + len(fields(TINY))


# --- results ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", (RESULTS / "paper").glob("*/runs.jsonl"), ids=lambda p: p.parent.name
)
def test_committed_runs_are_those_of_todays_configurations(path):
    """So that a command finds them, and does not repeat them."""
    kinds = {
        "fine": FineTuningConfiguration,
        "clos": AlexNetConfiguration,
        "part": PartsConfiguration,
    }
    kind = kinds.get(path.parent.name[:4], DenseConfiguration)
    for identity, _ in Ledger(path).runs.values():
        required = {field.name for field in fields(kind) if field.default is MISSING}
        known = {name: identity.get(name) for name in {*identity, *required} - {"revision"}}
        assert known_by(kind(**known).identity) == known_by(identity)
        assert kind is not FineTuningConfiguration or known["head_input"] in HEAD_INPUTS


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
    names = ["dataset", "depth", "alpha", "n_seeds", "mean", "standard_error"]
    summary = [
        dict(zip(names, values))
        for values in [
            ("mnist", 1, None, 1, 0.5, None),
            ("mnist", 2, 0.2, 2, 1.25, 0.1),
            ("cifar10", 2, 0.2, 2, 3.0, 0.2),
        ]
    ]
    lines = [line.split() for line in report.format_table(summary, "depth", "alpha").splitlines()]
    assert lines[:4] == [
        ["mnist,", "by", "alpha;", "seeds:", "1", "or", "2"],
        ["depth", "any", "0.2"],
        ["1", "0.5000"],
        ["2", "1.2500", "+-", "0.1000"],
    ]
    assert lines[-1] == ["2", "3.0000", "+-", "0.2000"]


@pytest.fixture
def drawn(monkeypatch):
    """The figures and axes of all plots."""
    found, subplots = [], report.subplots

    def keep(datasets):
        found.append(subplots(datasets))
        return found[-1]

    monkeypatch.setattr(report, "subplots", keep)
    return found


@pytest.mark.parametrize("depths", [(1, 2), (2, 3), (3,)])
def test_a_curve_has_the_same_colour_in_all_panels(depths, tmp_path, drawn):
    of_dataset = {"mnist": (1, 2), "cifar10": depths}
    rows = [
        {"dataset": name, "depth": depth, "alpha": alpha, "seed": 0, "test_cost": alpha + depth}
        for name, found in of_dataset.items()
        for depth in found
        for alpha in (0.0, 1.0)
    ]
    report.plot_costs("name", rows, Namespace(out=tmp_path), x="alpha", hue="depth")
    figure, axes = drawn[0]
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == [str(depth) for depth in sorted({1, 2, *depths})]
    colours = dict(zip(labels, [line.get_color() for line in legend.get_lines()]))
    assert len(set(colours.values())) == len(labels)
    for name, ax in axes.items():
        assert ax.get_legend() is None
        assert {line.get_label() for line in ax.lines} == {str(d) for d in of_dataset[name]}
        assert all(line.get_color() == colours[line.get_label()] for line in ax.lines)


def test_costs_of_very_different_size_have_a_logarithmic_axis(tmp_path, drawn):
    costs = {"mnist": [3.3, 0.13], "cifar10": [3.3, 2.8]}
    rows = [
        {"dataset": name, "depth": 3, "alpha": alpha, "test_cost": cost}
        for name, of_dataset in costs.items()
        for alpha, cost in enumerate(of_dataset)
    ]
    report.plot_costs("name", rows, Namespace(out=tmp_path), x="alpha", hue="depth")
    ((_, axes),) = drawn
    assert {name: ax.get_yscale() for name, ax in axes.items()} == {
        "mnist": "log",
        "cifar10": "linear",
    }
