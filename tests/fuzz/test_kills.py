"""Trainings that are killed at random moments end with the bits of one that was not."""

from __future__ import annotations

import os
import signal
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
