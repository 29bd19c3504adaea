"""The review desk: habits keep the budget, and `decide` costs least as expected."""

import numpy as np
import pytest

from benchmarks.cost import bench_desk
from benchmarks.cost.bench_desk import DECISIONS, Desk, habits, stream


def draw(n=2000):
    rng = np.random.default_rng(0)
    p, amount = rng.beta(0.5, 5, size=n), rng.lognormal(3, 1, size=n)
    cost = np.zeros((n, 2, 3))
    cost[:, 0, 1], cost[:, 1, 0], cost[:, :, 2] = 10, amount, 2
    expected = (1 - p)[:, None] * cost[:, 0] + p[:, None] * cost[:, 1]
    return Desk((rng.random(n) < p).astype(int), p, cost, expected)


def test_all_ways_keep_the_budget():
    found = draw()
    by = dict(habits(found, 40))

    totals = {name: found.expected[np.arange(2000), c].sum() for name, c in by.items()}

    assert [np.count_nonzero(c == 2) for c in by.values()] == [40, 40, 40, 0]
    assert min(totals, key=totals.get) == "decide"


def test_a_stream_keeps_the_budget_on_average():
    found = stream(draw())

    assert found["rows a day"] == 200
    assert 0.5 < found["reviews over budget, mean"] < 1.5


@pytest.mark.slow
def test_results_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(bench_desk, "desk", lambda *_: draw())

    bench_desk.main(["--sets", "churn", "--seeds", "0", "--rows", "5000", "--out", str(tmp_path)])

    text = (tmp_path / "desk.json").read_text()
    assert all(part in text for part in (*DECISIONS[2:], "most expensive", "seconds", "streams"))
