"""The engine that runs and caches, and the JSON that it writes."""

import json
import shutil
import sys
from dataclasses import replace
from functools import partial
from importlib import import_module

import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.common import engine
from benchmarks.common.engine import Run, key
from benchmarks.common.folders import RESULTS, ROOT
from benchmarks.common.json_files import to_json
from benchmarks.common.provenance import program, provenance
from benchmarks.cost.fit_methods import Classifier
from benchmarks.cost.methods import METHODS
from benchmarks.cost.runs import Job
from benchmarks.cost.settings import Setting
from benchmarks.paper.dense import DenseConfiguration

TINY = DenseConfiguration("mnist", 9, 0, "aux", 2, 4, 2, "squared", "relu", "sgd", 0.1)
COST_METHODS = ["ours: default", "same network: blind", "Bayes: logistic"]


# --- runs -------------------------------------------------------------------------------------


def square(x, offset=0):
    return {"y": x * x + offset}


def jobs_of(numbers):
    return [[Run(f"n{x}", {"x": x}, partial(square, x))] for x in numbers]


def test_results_are_in_the_order_of_the_jobs_and_kept(tmp_path):
    folder = tmp_path / "new" / "runs"
    assert engine.run_all(jobs_of([3, 1, 2]), folder=folder) == [[{"y": 9}], [{"y": 1}], [{"y": 4}]]
    assert len(list(folder.iterdir())) == 3
    assert all(job[0].is_finished(folder) for job in jobs_of([1, 2, 3]))


def test_a_finished_run_is_read(tmp_path):
    (run,) = jobs_of([3])[0]
    assert run.result(tmp_path, 1) == {"y": 10}
    content = json.loads((tmp_path / run.file_name).read_text())
    assert content == {"identity": {"x": 3}, "result": {"y": 10}}
    assert engine.run_all([[run]], folder=tmp_path, shared=[5]) == [[{"y": 10}]]


def test_no_jobs(tmp_path):
    assert engine.run_all([], folder=tmp_path) == []


# --- keys -------------------------------------------------------------------------------------


def test_the_order_of_names_is_no_part_of_the_key():
    assert key({"a": 1, "b": 2}) == key({"b": 2, "a": 1}) != key({"a": 2, "b": 1})


def test_an_address_is_no_part_of_a_key():
    with pytest.raises(ValueError, match="address of an object"):
        key({"a": repr(square)})


@pytest.fixture
def moved(monkeypatch, tmp_path):
    """The package under another name, in another folder, with another name for each module."""
    shutil.copytree(ROOT / "benchmarks", tmp_path / "moved", ignore=lambda *_: ["results"])
    for path in (tmp_path / "moved").rglob("*.py"):
        source = path.read_text().replace("benchmarks", "moved")
        for name in ("fit_methods", "settings", "dense"):
            source = source.replace(f".{name} import", f".{name}_moved import")
        path.write_text("# moved\n" + source)
    for name in ("cost/fit_methods", "cost/settings", "paper/dense"):
        path = tmp_path / "moved" / f"{name}.py"
        path.rename(path.with_stem(f"{path.stem}_moved"))
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda module: import_module(f"moved.{module}")
    for name in [name for name in sys.modules if name.split(".")[0] == "moved"]:
        del sys.modules[name]


def test_moved_and_renamed_modules_keep_their_keys(moved):
    other_job, other_settings = moved("cost.runs").Job, moved("cost.settings_moved")
    other = other_settings.Setting("wine", "squared")
    names = [run.file_name for run in Job(Setting("wine", "squared"), 0, COST_METHODS)]
    assert [run.file_name for run in other_job(other, 0, COST_METHODS)] == names
    assert len(set(names)) == len(names)
    other_tiny = moved("paper.dense_moved").DenseConfiguration(**vars(TINY))
    assert type(other_tiny) is not type(TINY)
    assert key(other_tiny.identity) == key(TINY.identity)


def test_every_change_of_a_parameter_changes_the_key(monkeypatch):
    def names(setting="squared", seed=0):
        return {run.file_name for run in Job(Setting("wine", setting), seed, ["changing"])}

    methods = [
        METHODS["Bayes: logistic"],
        METHODS["Bayes: boosting, early stop"],
        METHODS["Bayes: logistic"]._replace(
            fit_method=Classifier(lambda draw: LogisticRegression(C=2.0))
        ),
    ]
    found = []
    for method in methods:
        monkeypatch.setitem(METHODS, "changing", method)
        found += [names(), names(seed=1), names("proportional")]
    monkeypatch.setattr(Classifier, "revision", Classifier.revision + 1)
    found.append(names())
    assert len(set.union(*found)) == len(found) == 10
    assert key(replace(TINY, width=5).identity) != key(TINY.identity)


# --- JSON -------------------------------------------------------------------------------------


def test_json_has_a_line_per_value_and_a_line_per_record():
    content = {"b": [1, -2.5e-07, None], "a": [{"x": "[\n 1]"}, {"y": [2, 3]}], "c": []}
    text = to_json(content)
    assert json.loads(text) == content
    assert text.splitlines() == [
        "{",
        ' "b": [1, -2.5e-07, null],',
        ' "a": [',
        '  {"x": "[\\n 1]"},',
        '  {"y": [2, 3]}',
        " ],",
        ' "c": []',
        "}",
    ]


def test_results_take_little_space():
    assert sum(path.stat().st_size for path in RESULTS.rglob("*") if path.is_file()) < 4 * 2**20


def test_the_command_of_a_result_starts_its_module(monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(ROOT / "benchmarks" / "cost" / "bench_cost.py")])
    assert program() == "python -m benchmarks.cost.bench_cost"
    monkeypatch.setattr(sys, "argv", ["elsewhere/script.py"])
    assert program() == "python script.py"


def test_the_command_of_a_result_has_no_path_of_a_machine(monkeypatch):
    arguments = ["--data-home", "/home/me/data", "--out", "some/folder", "--seeds", "0", "a b"]
    monkeypatch.setattr(sys, "argv", ["script.py", *arguments])
    command = provenance()["command"]
    assert command == "python script.py --data-home data --out some/folder --seeds 0 'a b'"
