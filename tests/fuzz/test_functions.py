"""Public functions of costs and metrics: the right answer, or an error that names the argument."""

from __future__ import annotations

import re
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from auxcst_sklearn.costs import (
    binary_cost_matrices,
    cost_vectors,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)
from auxcst_sklearn.metrics import cost_difference, mean_cost, savings_score
from tests.fuzz.conftest import examples
from tests.fuzz.inputs import checked, costs, labels, rng_of, weights

TMP = Path(tempfile.mkdtemp())
NAMED = re.compile(r"cost|y_|\by\b|class|label|weight|path|power|positive|sample|Found|array", re.I)


def allowed(error):
    return isinstance(error, (ValueError, TypeError)) and NAMED.search(str(error))


check_call = partial(checked, allowed=allowed)


@examples(40)
@given(data=st.data())
def test_metrics(data):
    n = data.draw(st.sampled_from([0, 1, 2, 9, 30]))
    y_true, y_pred, other = (data.draw(labels(n), label="y") for _ in range(3))
    cost = data.draw(costs(n, len(set(map(str, y_true))), TMP), label="cost").value
    weight = data.draw(weights(n), label="weight")
    given = {"cost": cost, "sample_weight": weight}

    mean = check_call(lambda: mean_cost(y_true, y_pred, **given), y_true, y_pred, cost, weight)
    check_call(lambda: savings_score(y_true, y_pred, **given), y_true, y_pred, cost, weight)
    check_call(lambda: cost_difference(y_true, y_pred, other, **given), y_true, cost, weight)
    if mean is not None:
        assert np.isfinite(mean)
        if cost is not None and cost.ndim == 2:
            assert cost.min() * (1 - 1e-9) - 1e-300 <= mean or cost.min() < 0
            assert mean <= cost.max() * (1 + 1e-9) + 1e-300 or cost.max() < 0


@examples(40)
@given(data=st.data())
def test_cost_vectors(data):
    y = data.draw(labels(data.draw(st.sampled_from([0, 1, 2, 9]))), label="y")
    k = data.draw(st.sampled_from([1, 2, 3]))
    matrix = data.draw(costs(k, k, TMP), label="matrix").value
    found = check_call(lambda: cost_vectors(y, matrix), y, matrix)
    if found is not None:
        classes = np.unique(np.asarray(y))
        for i, (row, label) in enumerate(zip(found, np.asarray(y))):
            own = matrix[i] if np.ndim(matrix) == 3 else matrix
            expected = np.asarray(own)[np.flatnonzero(classes == label)[0]]
            np.testing.assert_array_equal(row, expected)


@examples(40)
@given(data=st.data())
def test_matrices(data):
    y = data.draw(labels(data.draw(st.sampled_from([0, 1, 9]))), label="y")
    found = check_call(lambda: randomized_proportional_cost_matrix(y, random_state=0), y)
    assert found is None or (np.isfinite(found.values).all() and not np.diag(found).any())

    n, power = data.draw(st.tuples(st.integers(-1, 6), st.floats() | st.integers(-2, 3)))
    found = check_call(lambda: ordinal_cost_matrix(n, power))
    assert found is None or np.isfinite(found).all()

    parts = st.sampled_from(["a", "b", "", "a/b", "b/a/c"])
    paths = data.draw(st.lists(parts | st.tuples(parts, parts) | st.integers(0, 2), max_size=4))
    found = check_call(lambda: tree_distance_cost_matrix(paths))
    assert found is None or (found == found.T).all()


@examples(40)
@given(data=st.data())
def test_binary_matrices(data):
    n = data.draw(st.sampled_from([0, 1, 5]))
    values = [3.0, "x", None, np.nan, -1, rng_of(data.draw).exponential(size=n)]
    values += [pd.Series(rng_of(data.draw).exponential(size=n)), [1, 2], np.ones((n, 1))]
    fp, fn, tp = (data.draw(st.sampled_from(values)) for _ in range(3))
    classes = data.draw(st.sampled_from([[0, 1], ["no", "yes"], [1, 0], [0], [0, 1, 2], None]))
    positive = data.draw(st.sampled_from([1, "yes", 7]))

    given = {"fp_cost": fp, "fn_cost": fn, "tp_cost": tp, "classes": classes}
    found = check_call(lambda: binary_cost_matrices(**given, pos_label=positive), fp, fn, tp)
    if found is not None:
        assert np.isfinite(found.values).all()
        assert found.shape[-2:] == (2, 2)
