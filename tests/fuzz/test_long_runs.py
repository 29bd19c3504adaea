"""Many fits and predictions: no growth of memory or open files."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest
from sklearn.datasets import make_classification

from tests.factories import small_cnn, small_mlp, small_stack
from tests.fuzz.conftest import FUZZ

X, Y = make_classification(150, 16, n_informative=6, n_classes=3, random_state=0)


@pytest.mark.slow
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
