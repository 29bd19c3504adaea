"""The benchmark of extreme costs, on few rows."""

import numpy as np
import pytest

from benchmarks.cost.bench_extreme import CONSTANT, DATA, KINDS, Draw, Job, divided, judge, render


@pytest.mark.parametrize(("name", "rate"), [("signals", 0.012), ("wrong labels", 0.022)])
def test_one_class_is_rare(name, rate):
    draw = DATA[name](0)
    assert draw.p_test.mean() == pytest.approx(rate, abs=0.002)
    assert draw.y.mean() == pytest.approx(rate, abs=0.005)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["network", "module"])
def test_each_method_learns_a_simple_problem(kind):
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    X = (y[:, np.newaxis] + rng.normal(0, 0.1, (200, 5))).astype(np.float32)
    for method in KINDS[kind].values():
        found = judge(Draw(X, y, X, y), method, 20, 0)
        assert found["cost"] < 0.1
        assert found["cpu_seconds"] > 0


def test_runs_are_told_apart():
    runs = list(Job("signals", 100, 0, [*KINDS]))
    assert len({run.file_name for run in runs}) == len(runs) == 7


def test_the_default_is_divided_by_the_least_of_each_seed():
    costs = {20: (0.6, 0.5, 0.9), 21: (0.6, 0.9, 0.8)}
    runs = [
        {"data": "signals", "ratio": 100, "seed": seed, "kind": "network", "method": m, "cost": c}
        for seed, of_seed in costs.items()
        for m, c in zip((*KINDS["network"], CONSTANT), of_seed)
    ]
    np.testing.assert_allclose(divided(runs, "network", "signals", 100), [1.2, 0.75])
    assert "0.975 (1.200)" in render(runs)
