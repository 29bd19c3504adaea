"""Results of encoders that are fine-tuned, on probabilities and runs that are made up."""

import numpy as np
import pytest

from benchmarks.cost.bench_fine_tuned_texts import judged, rows_of, table


def test_probabilities_are_judged_by_their_decisions():
    costs = np.array([[0.0, 2, 4], [2, 0, 4], [4, 4, 0]])
    p = np.array([[0.9, 0.1, 0], [0.4, 0.3, 0.3], [0, 0, 1]])
    label = np.array([0, 2, 2])

    found = judged(p, label, costs)

    assert found["log_loss"] == pytest.approx(-np.log([0.9, 0.3, 1]).mean())
    # The second row: expected costs are 1.8, 2.0 and 2.8, to ask costs 1.
    assert (found["cost"], found["cost_ask"]) == pytest.approx((4 / 3, 1 / 3))
    assert found["most_probable"] == pytest.approx(4 / 3)


def test_rows_of_arrays_by_name():
    given = {"a": np.arange(6).reshape(3, 2), "b": np.arange(3)}

    assert {k: v.tolist() for k, v in rows_of(given, np.array([2, 0])).items()} == {
        "a": [[4, 5], [0, 1]],
        "b": [2, 0],
    }


def test_the_table_has_the_rates_of_least_held_out_loss():
    run = {"set": "trec", "seed": 0, "method": "ours", "most_probable": 1.0, "cpu_seconds": 9.0}
    one = {"rates": "a", "held_out_log_loss": 0.5, "log_loss": 0.1, "cost": 0.2, "cost_ask": 0.1}
    other = {"rates": "b", "held_out_log_loss": 0.4, "log_loss": 0.9, "cost": 0.7, "cost_ask": 0.6}

    *_, row, _ = table([run | one, run | other]).splitlines()

    assert row.split() == ["trec", "ours", "0", "b", "0.700", "0.600", "1.000", "0.900", "9"]
