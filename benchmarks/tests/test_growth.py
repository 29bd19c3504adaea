"""`bench_growth`: its rows, and one case."""

import numpy as np
import pytest

pytest.importorskip("pandas")

from benchmarks.speed.bench_growth import measure
from benchmarks.speed.growth_data import KINDS, draw


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_the_same_problem_for_any_number(kind):
    few, many = draw(kind, 1000), draw(kind, 4000)
    assert few.X_train.dtypes.tolist() == many.X_train.dtypes.tolist()
    shares = [np.bincount(split.y_test) / len(split.y_test) for split in (few, many)]
    np.testing.assert_allclose(*shares, atol=0.01)
    if kind == "claims":
        assert 0.03 < shares[0][1] < 0.05


def test_a_case():
    found = measure("claims", 1500, "boosting, early stop")
    assert 0 < found["cost"] < 0.8  # 0.8 is the cost of the constant decision for 4 % positives
    assert found["cpu_seconds"] > 0
    assert found["one_row_ms"] > 0
