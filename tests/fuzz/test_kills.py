"""Trainings that are killed at random moments end with the bits of one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from multiprocessing import get_context

import numpy as np
import pytest
from sklearn.datasets import make_classification

from tests.factories import small_stack
from tests.fuzz.conftest import FUZZ

X, Y = make_classification(200, 6, n_informative=4, n_classes=3, random_state=0)


def make(folder=None):
    return small_stack(max_epochs=12, patience=12, batch_size=8, checkpoint_dir=folder)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("series", range(FUZZ))
def test_killed_at_random(series, tmp_path):
    rng = np.random.default_rng(series)
    start = time.perf_counter()
    expected = make().fit(X, Y).predict_cost(X)
    seconds, n_kills = time.perf_counter() - start, 0

    for _ in range(12):
        process = get_context("fork").Process(target=make(tmp_path).fit, args=(X, Y))
        process.start()
        process.join(rng.uniform(0.01, 0.15) * seconds)
        if process.is_alive():
            os.kill(process.pid, signal.SIGKILL)
            n_kills += 1
        process.join()

    np.testing.assert_array_equal(make(tmp_path).fit(X, Y).predict_cost(X), expected)
    assert n_kills
    print(f"series {series}: {n_kills} kills")


def slow_disk(pid):
    """Let the system take its time over each fsync of a process; None where it must not."""
    delay = "fsync:delay_enter=30000"  # microseconds
    command = ["strace", "-f", "-p", str(pid), "-e", "trace=fsync", "-e", f"inject={delay}"]
    try:
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        return None
    return tracer if "attached" in tracer.stderr.readline() else None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("n_syncs", [1, 2, 9])
def test_killed_on_a_slow_disk(n_syncs, tmp_path):
    """After the sync of a file, which then has no name yet; each takes 30 ms."""
    expected = make().fit(X, Y).predict_cost(X)
    context = get_context("fork")
    traced = context.Event()

    def run():
        traced.wait()
        make(tmp_path).fit(X, Y)

    process = context.Process(target=run)
    process.start()
    tracer = slow_disk(process.pid)
    if tracer is None:
        process.kill()
        pytest.skip("strace is missing, or may not trace")
    traced.set()
    syncs = (line for line in tracer.stderr if "fsync(" in line)
    for _ in range(n_syncs):
        next(syncs)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    tracer.communicate()

    np.testing.assert_array_equal(make(tmp_path).fit(X, Y).predict_cost(X), expected)
