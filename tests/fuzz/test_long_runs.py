"""Many fits and predictions: no growth of memory or open files, no state that threads share."""

from __future__ import annotations

import gc
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_classification

from tests.factories import small_cnn, small_mlp, small_stack
from tests.fuzz.conftest import FUZZ

X, Y = make_classification(150, 16, n_informative=6, n_classes=3, random_state=0)


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads /proc")
@pytest.mark.parametrize("make", [small_mlp, small_stack, small_cnn])
def test_fits_leave_nothing_behind(make):
    def fit(n):
        for _ in range(n):
            make(max_epochs=1).fit(X, Y).predict(X)
        gc.collect()
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE"), len(os.listdir("/proc/self/fd"))

    before, files = fit(10)
    after, files_after = fit(10 * FUZZ)

    assert files_after <= files
    assert after - before < 4e6 + 10_000 * 10 * FUZZ


def test_threads_predict_what_one_thread_does():
    model = small_stack().fit(X, Y)
    expected = model.predict_proba(X)
    rows = np.random.default_rng(0).integers(0, len(X), size=(8, 20 * FUZZ))

    def predict(mine):
        return [model.predict_proba(X[i : i + 1]) for i in mine]

    with ThreadPoolExecutor(8) as pool:
        for mine, found in zip(rows, pool.map(predict, rows)):
            np.testing.assert_allclose(np.concatenate(found), expected[mine], rtol=1e-6)


def test_threads_fit_what_one_thread_does():
    expected = small_stack().fit(X, Y).predict_cost(X)
    with ThreadPoolExecutor(4) as pool:
        for model in pool.map(lambda _: small_stack().fit(X, Y), range(4 * FUZZ)):
            np.testing.assert_array_equal(model.predict_cost(X), expected)
