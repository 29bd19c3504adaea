"""The verdicts on the paper's claims: the criterion, what is compared, and the committed file."""

import json

import numpy as np
import pytest

from benchmarks.paper import verdicts
from benchmarks.paper.runs import RUNS
from benchmarks.paper.verdicts import FOLDER, Comparison, Experiment, cheaper, holm, judge

needs_results = pytest.mark.skipif(
    not (FOLDER / "verdicts.txt").is_file(), reason="the sdist has no results"
)


def runs(costs, savings=0.5):
    """Runs of a network, seed by seed."""
    return {
        seed: {"test_cost": cost, "savings": savings + seed / 1000}
        for seed, cost in enumerate(costs)
    }


def compared(less, more, **savings):
    (comparison,) = cheaper("", "", [runs(less, **savings)], [runs(more)])
    return comparison


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_each_verdict():
    low, high, noisy = [1.0, 1.1, 1.2], [2.0, 2.11, 2.19], [0.2, 2.0, 1.1]
    comparisons = [
        compared(low, high),
        compared(high, low),
        compared(low, noisy),
        compared(low, high, savings=-0.1),
        compared(low, low),
    ]
    found = [judged.verdict for judged in judge(comparisons)]
    holds, opposite, within, not_learnt = verdicts.VERDICTS
    assert found == [holds, opposite, within, not_learnt, within]


def test_more_comparisons_need_clearer_differences():
    clear = compared([1.0, 1.1, 1.2], [1.2, 1.31, 1.44])
    failed = compared([1.0, 1.1], [2.0, 2.2], savings=-1)  # which does not count
    (alone,), (first, *_) = judge([clear]), judge([clear] * 100 + [failed] * 100)
    assert alone.verdict == "holds"
    assert first.verdict == "within the errors"
    assert first.p_value == pytest.approx(100 * alone.p_value)


def test_a_diverged_run_has_not_learnt():
    diverged = {**runs([1.0, 1.1]), 2: {"diverged": True}}
    (comparison,) = cheaper("", "", [diverged], [runs([2.0, 2.1, 2.2])])
    assert judge([comparison])[0].verdict == "not learnt"
    assert comparison.differences == pytest.approx([-1, -1])


def test_differences_are_paired_by_seed_and_weighted():
    first, second = runs([1.0, 2.0, 3.0]), runs([5.0, 5.0])
    comparison = Comparison("", "", [(0.5, first), (-1, second)])
    assert comparison.differences == pytest.approx([-4.5, -4.0])


def line(alpha, rate, cost, seed=0, **more):
    identity = {"dataset": "mnist", "method": "aux", "depth": 2, "loss": "one_sided"}
    score = "held_out_cost" if more.get("tuning") else "test_cost"
    result = {score: cost, "savings": 0.5}
    return json.dumps(
        {
            **{**identity, "alpha": alpha, "learning_rate": rate, "seed": seed, "tuning": False},
            **more,
            "result": result,
        }
    )


def test_rates_and_alpha_are_those_of_the_least_held_out_cost(tmp_path, monkeypatch):
    monkeypatch.setattr(verdicts, "FOLDER", tmp_path)
    trials = {(0.0, 0.1): 5, (0.2, 0.1): 3, (0.2, 0.3): 4, (0.5, 0.1): 2, (0.5, 0.3): 1}
    lines = [line(*of, cost, seed=9, tuning=True) for of, cost in trials.items()]
    # Test costs are the other way round: they must choose nothing.
    lines += [line(alpha, rate, 10 - cost) for (alpha, rate), cost in trials.items()]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / RUNS).write_text("\n".join(lines) + "\n")
    found = Experiment("folder")
    assert found.data == ["mnist"]
    assert found.alphas("mnist", 2) == [0.2, 0.5]
    assert found("mnist", "aux", 2, 0.2)[0]["test_cost"] == 7
    assert found.aux("mnist", 2)[0]["test_cost"] == 9
    assert found.naive("mnist", 2)[0]["test_cost"] == 5
    assert not found.aux("mnist", 3)
    assert not found("cifar10", "aux", 2, 0.2)


@needs_results
def test_the_committed_verdicts_are_those_of_the_runs():
    numbers = [
        [float(word) if _is_number(word) else word for word in text.split()]
        for text in (verdicts.report(), (FOLDER / "verdicts.txt").read_text(encoding="utf-8"))
    ]
    assert len(numbers[0]) == len(numbers[1])
    for computed, committed in zip(*numbers):
        if isinstance(computed, float):
            assert computed == pytest.approx(committed, abs=2e-4, nan_ok=True)
        else:
            assert computed == committed


def _is_number(word):
    try:
        return np.isfinite(float(word))
    except ValueError:
        return False


@needs_results
def test_aux_dnn_is_that_of_the_table_of_methods():
    found = Experiment("relu_sgd")
    text = (FOLDER / "relu_sgd" / "compare.txt").read_text(encoding="utf-8")
    for data in ("mnist", "cifar10-imb"):
        block = text.split(f"\n{data}, by method")[1].split("\n\n")[0]
        for depth in (1, 3, 5):
            (row,) = (
                words for words in map(str.split, block.splitlines()) if words[0] == str(depth)
            )
            means = [
                np.mean([run["test_cost"] for run in of(data, depth).values()])
                for of in (found.aux, found.naive, found.csdnn)
            ]
            assert means == pytest.approx([float(row[i]) for i in (1, 4, 7)], abs=1e-4)
