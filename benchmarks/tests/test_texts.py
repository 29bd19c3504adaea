"""Texts of many classes, on embeddings that are made up."""

import numpy as np
import pytest

from benchmarks.common.text_sets import ASK, TextSet
from benchmarks.cost.bench_texts import MODELS, REFERENCE, judge, table

N_CLASSES = 12


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    label = np.tile(np.arange(N_CLASSES), 20)
    costs = rng.uniform(0.5, 2, (N_CLASSES, N_CLASSES))
    np.fill_diagonal(costs, 0)
    classes = [f"class {k:02}" for k in range(N_CLASSES)]
    return TextSet(["text"] * len(label), label, ["text"] * len(label), label, classes, costs)


@pytest.fixture(scope="module")
def rows(texts):
    rng = np.random.default_rng(1)
    means = rng.normal(size=(N_CLASSES, 8))
    return [means[texts.label] + 0.7 * rng.normal(size=(len(texts.label), 8)) for _ in range(2)]


@pytest.mark.parametrize("asks", [False, True])
def test_a_model_is_judged_by_its_decisions(texts, rows, asks):
    found = judge(texts, rows, MODELS["rule with its defaults"], 0, asks)

    assert 0 < found["test_cost"] < ASK
    assert found["difference"] == pytest.approx(found["test_cost"] - found["most_probable"])
    assert 0 < found["log_loss"] < np.log(N_CLASSES)


def test_ratios_are_to_the_reference():
    run = {"set": "trec", "asks": False, "seed": 0, "error": 0.01, "cpu_seconds": 1.0}
    one = {"model": REFERENCE, "test_cost": 0.5, "log_loss": 2.0, "difference": 0.0}
    other = {"model": "network", "test_cost": 0.25, "log_loss": 1.0, "difference": 0.1}

    *_, row, _ = table([run | one, run | other]).splitlines()

    absent = "\\-"
    numbers = ["0.50", "0.50", "1", "1.0"]
    assert row.split() == ["network", absent, absent, "0.250", *[absent] * 3, *numbers]
