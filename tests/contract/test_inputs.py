"""Every kind of X, y and costs that users bring, and the units they use."""

from __future__ import annotations

import os
import subprocess
import sys
from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from auxcst_sklearn.losses import LOSSES

NAMES = np.array(["ant", "bee", "cat"])
MATRIX = np.array([[0.0, 1, 5], [3, 0.2, 1], [2, 7, 0]])
SHUFFLED = [2, 0, 1]


def readonly(array):
    array = array.copy()
    array.flags.writeable = False
    return array


# ------------------------------------------------------------------------------------- X


LAYOUTS = {
    "fortran": np.asfortranarray,
    "negative strides": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "every second column": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": readonly,
    "big-endian": lambda X: X.astype(">f4"),
    "float64": lambda X: X.astype(np.float64),
    "object": lambda X: X.astype(object),
    "list": lambda X: X.tolist(),
    "masked, with no gap": np.ma.masked_array,
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcd"), index=np.arange(len(X))[::-1]),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcd")),
    "torch": torch.from_numpy,
    "CSR": sparse.csr_matrix,
    "CSR array": sparse.csr_array,
    "CSC": sparse.csc_matrix,
    "COO": sparse.coo_matrix,
    "COO float64": lambda X: sparse.coo_array(X.astype(np.float64)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("error")
def test_every_layout_of_the_same_numbers_gives_the_same_network(problem, mlp, layout):
    X, y, cost = problem
    expected, same_X = mlp().fit(X, y, cost=cost).predict_cost(X), LAYOUTS[layout](X)
    found = mlp().fit(same_X, y, cost=cost).predict_cost(same_X)
    np.testing.assert_array_equal(found, expected)


NUMBERS = [bool, np.uint8, np.int8, np.int64, np.float64]


@pytest.mark.parametrize(
    ("container", "dtype"),
    [(np.asarray, np.float16)]
    + [(container, dtype) for container in (np.asarray, sparse.csr_matrix) for dtype in NUMBERS],
)
def test_every_type_of_number_gives_the_same_network(problem, mlp, container, dtype):
    X, y, cost = problem
    X = (X > 0).astype(np.float32)
    expected = mlp().fit(X, y, cost=cost).predict_cost(X)
    same_X = container(X.astype(dtype))
    found = mlp().fit(same_X, y, cost=cost).predict_cost(same_X)
    np.testing.assert_array_equal(found, expected)


def test_sparse_rows_in_every_method(problem, mlp):
    X, y, cost = problem
    X = X * (X > 0)
    rows = sparse.csr_matrix(X)
    weight = np.tile([0.0, 1, 2], 20)
    networks = [
        mlp(early_stopping=True, dropout=0.2).fit(kind, y, cost=cost, sample_weight=weight)
        for kind in (X, rows)
    ]
    for network, kind in zip(networks, (X, rows)):
        network.partial_fit(kind, y, cost=cost)
    dense, thin = networks
    np.testing.assert_array_equal(thin.predict_cost(rows), dense.predict_cost(X))
    np.testing.assert_array_equal(thin.predict_proba(rows), dense.predict_proba(X))
    assert thin.score(rows, y, cost=cost) == dense.score(X, y, cost=cost)
    for found, expected in zip(thin.staged_predict(rows), dense.staged_predict(X), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_single_rows_and_columns(problem, mlp):
    X, y, cost = problem
    one_row = mlp(classes=[0, 1, 2]).fit(X[:1], y[:1], cost=cost[:1])
    assert one_row.predict(X).shape == (60,)
    np.testing.assert_array_equal(one_row.predict_cost(X[:1][::-1]), one_row.predict_cost(X[:1]))
    column = X[:, :1].copy()
    costs = [mlp().fit(one, y, cost=cost).predict_cost(one) for one in (column, column[:, ::-1])]
    np.testing.assert_array_equal(*costs)


# ------------------------------------------------------------------------------------- y


LABELS = {
    "str": lambda k: NAMES[k],
    "object": lambda k: NAMES[k].astype(object),
    "list": lambda k: NAMES[k].tolist(),
    "Categorical": lambda k: pd.Categorical(NAMES[k], categories=NAMES[::-1]),
    "categorical Series": lambda k: pd.Series(NAMES[k], dtype="category"),
    "text Series": lambda k: pd.Series(NAMES[k]),
    "polars text": lambda k: pl.Series(NAMES[k]),
    "polars Categorical": lambda k: pl.Series(NAMES[k], dtype=pl.Categorical),
    "polars integers": pl.Series,
    "uint8": lambda k: k.astype(np.uint8),
    "negative": lambda k: k - 5,
    "with gaps": lambda k: np.array([-7, 3, 1000])[k],
    "big-endian": lambda k: k.astype(">i4"),
    "whole floats": lambda k: k.astype(float),
    "negative strides": lambda k: k[::-1].copy()[::-1],
    "read-only": readonly,
}


@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label_gives_the_same_network(problem, mlp, kind):
    X, k, cost = problem
    y = LABELS[kind](k)
    network = mlp().fit(X, y, cost=cost)
    reference = mlp().fit(X, k, cost=cost)
    np.testing.assert_array_equal(network.predict_cost(X), reference.predict_cost(X))
    np.testing.assert_array_equal(network.classes_, np.unique(np.asarray(y)))
    np.testing.assert_array_equal(network.predict(X), network.classes_[reference.predict(X)])
    assert network.score(X, y, cost=cost) == reference.score(X, k, cost=cost)


def test_boolean_labels(problem, mlp):
    X, k, cost = problem
    network = mlp().fit(X, k > 0, cost=cost[:, :2])
    reference = mlp().fit(X, np.minimum(k, 1), cost=cost[:, :2])
    assert network.predict(X).dtype == bool
    np.testing.assert_array_equal(network.predict(X), reference.predict(X))


# ---------------------------------------------------------------------------------- costs


COSTS = {
    "list": lambda cost: cost.tolist(),
    "fortran": np.asfortranarray,
    "negative strides": lambda cost: cost[::-1, ::-1].copy()[::-1, ::-1],
    "big-endian": lambda cost: cost.astype(">f8"),
    "read-only": readonly,
    "object": lambda cost: cost.astype(object),
    "torch": torch.from_numpy,
    "pandas": lambda cost: pd.DataFrame(cost[:, SHUFFLED], columns=SHUFFLED),
    "pandas, Float64": lambda cost: pd.DataFrame(cost).astype("Float64"),
    "pandas, any index": lambda cost: pd.DataFrame(cost, index=np.arange(len(cost))[::-1]),
}


@pytest.mark.parametrize("kind", COSTS)
def test_every_kind_of_costs_gives_the_same_network(problem, mlp, kind):
    X, y, cost = problem
    expected = mlp().fit(X, y, cost=cost)
    network = mlp().fit(X, y, cost=COSTS[kind](cost))
    np.testing.assert_array_equal(network.predict_cost(X), expected.predict_cost(X))
    assert network.score(X, y, cost=COSTS[kind](cost)) == expected.score(X, y, cost=cost)


MATRICES = {
    "list": MATRIX.tolist(),
    "fortran": np.asfortranarray(MATRIX),
    "labelled": pd.DataFrame(MATRIX, NAMES, NAMES),
    "rows and columns in other orders": pd.DataFrame(MATRIX, NAMES, NAMES).iloc[[1, 2, 0], ::-1],
    "polars": pl.DataFrame(MATRIX[np.ix_(SHUFFLED, SHUFFLED)], schema=list(NAMES[SHUFFLED])),
}


@pytest.mark.parametrize("kind", MATRICES)
def test_every_kind_of_cost_matrix_gives_the_same_network(problem, mlp, kind):
    X, y = problem.X, NAMES[problem.y]
    expected = mlp(cost_matrix=MATRIX).fit(X, y)
    network = mlp(cost_matrix=MATRICES[kind]).fit(X, y)
    np.testing.assert_array_equal(network.predict_cost(X), expected.predict_cost(X))
    assert network.score(X, y) == expected.score(X, y)


def test_no_costs_are_zero_one_costs(problem, mlp):
    X, y, _ = problem
    blind = mlp().fit(X, y)
    np.testing.assert_array_equal(
        blind.predict_cost(X), mlp(cost_matrix=1 - np.eye(3)).fit(X, y).predict_cost(X)
    )
    assert blind.score(X, y) == np.mean(blind.predict(X) == y)


@pytest.mark.parametrize("labelled", [False, True])
def test_a_class_without_examples_keeps_its_column(problem, mlp, labelled):
    X, y, cost = (part[problem.y != 1] for part in problem)
    cost = cost - [0, 9, 0]
    y = NAMES[y]
    if labelled:
        network = mlp(max_epochs=20).fit(X, y, cost=pd.DataFrame(cost, columns=NAMES))
    else:
        network = mlp(max_epochs=20, classes=NAMES).fit(X, y, cost=cost)
    np.testing.assert_array_equal(network.classes_, NAMES)
    assert set(network.predict(X)) == {"bee"}


# ---------------------------------------------------------------------- units and offsets


@pytest.mark.parametrize("loss", ["one_sided", "smooth_one_sided", "softmin", "squared"])
def test_the_costs_decide_even_where_the_true_class_is_dear(problem, mlp, loss):
    X, y, _ = problem
    gain = np.column_stack([X[:, 0], -X[:, 0], X[:, 1]]).astype(float)
    network = mlp(loss=loss, max_epochs=60, learning_rate=0.02, width=32)
    network.fit(X, y, cost=-gain)
    won = gain[np.arange(60), network.predict(X)].mean()
    assert won > 0.9 * gain.max(axis=1).mean()
    relabelled = mlp(**network.get_params()).fit(X, np.roll(y, 1), cost=-gain)
    np.testing.assert_array_equal(relabelled.predict_cost(X), network.predict_cost(X))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("level", [0.0, 7.0])
def test_costs_that_are_all_equal(problem, mlp, loss, level):
    X, y, cost = problem
    estimate = mlp(loss=loss).fit(X, y, cost=np.full_like(cost, level)).predict_cost(X)
    assert np.isfinite(estimate).all()


# --------------------------------------------------------------------- the caller's arrays


@pytest.mark.parametrize("writeable", [True, False])
def test_arrays_of_the_caller_stay_as_they_are(problem, mlp, writeable):
    weight = np.tile([0.0, 1, 2], 20)
    arrays = [*problem, weight, MATRIX.copy(), np.arange(3)]
    X, y, cost, weight, matrix, classes = arrays
    before = deepcopy(arrays)
    for array in arrays:
        array.flags.writeable = writeable
    for parameters, costs in (({}, cost), ({"cost_matrix": matrix}, None)):
        network = mlp(classes=classes, early_stopping=True, dropout=0.5, warm_start=True)
        network.set_params(**parameters)
        for _ in range(2):
            network.fit(X, y, cost=costs, sample_weight=weight)
        network.partial_fit(X, y, classes, cost=costs, sample_weight=weight)
        network.score(X, y, weight, cost=costs)
        list(network.staged_predict(X))
        network.predict_cost(X)[:] = 0
    for array, copy in zip(arrays, before):
        np.testing.assert_array_equal(array, copy)


ARRAY_API = """
import numpy as np, sklearn, sys, torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import cost_vectors
from auxcst_sklearn.metrics import mean_cost
from tests.factories import small_mlp

rng = np.random.default_rng(0)
X, y, cost = rng.normal(size=(30, 4)), np.arange(30) % 3, rng.uniform(size=(30, 3))
weight = rng.uniform(size=30)
expected = small_mlp().fit(X, y, weight, cost=cost)
tensors = [torch.from_numpy(array) for array in (X, y, cost, weight)]
try:
    sklearn.set_config(array_api_dispatch=True)
except ImportError:
    sys.exit()
model = small_mlp().fit(tensors[0], tensors[1], tensors[3], cost=tensors[2])
X_t, y_t, cost_t, weight_t = tensors
np.testing.assert_array_equal(model.predict_cost(X_t), expected.predict_cost(X))
assert model.score(X_t, y_t, cost=cost_t) == expected.score(X, y, cost=cost)
assert small_mlp().fit(X_t, y_t).score(X_t, y_t, sample_weight=weight_t) > 0
y_pred = model.predict(X_t)
assert mean_cost(y_t, torch.from_numpy(y_pred), cost=cost_t) == mean_cost(y, y_pred, cost=cost)
assert (cost_vectors(y_t, cost_t[:3]).values == cost[:3][y]).all()
for rule in (
    BayesMinimumRiskClassifier(LogisticRegression()),
    BayesMinimumRiskClassifier(LinearDiscriminantAnalysis()),
    BayesMinimumRiskClassifier(RidgeClassifier(), calibration="sigmoid", cv=2),
    CostSensitiveEnsembleClassifier([("a", LogisticRegression())], cv=2, random_state=0),
):
    found = rule.fit(X_t, y_t, cost=cost_t).predict_cost(X_t)
    with sklearn.config_context(array_api_dispatch=False):
        np.testing.assert_allclose(found, rule.fit(X, y, cost=cost).predict_cost(X), rtol=1e-5)
"""


@pytest.mark.slow
def test_tensors_under_array_api_dispatch():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}  # read at the first import
    subprocess.run([sys.executable, "-c", ARRAY_API], env=environment, check=True)
