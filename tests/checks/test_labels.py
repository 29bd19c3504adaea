"""Labels of samples: missing, masked, unknown."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from auxcst_sklearn._checks.data import check_frame
from auxcst_sklearn._checks.labels import check_labels, label_index
from auxcst_sklearn.costs import cost_vectors
from auxcst_sklearn.metrics import mean_cost
from tests.factories import small_mlp

CLASSES = np.array(["a", "b", "c"])
MATRIX = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b"],
        np.array(["a", np.nan, "b"], dtype=object),
        pd.Series(["a", None, "b"], dtype="category"),
        pd.Series(["a", None, "b"], dtype="string"),
        pd.array([0, None, 1], dtype="Int64"),
        pl.Series(["a", None, "b"]),
        np.array([0, None, 1], dtype=object),
    ],
)
def test_missing_labels_are_named(y):
    with pytest.raises(ValueError, match="Input y contains NaN .* 1 of 3 rows, first in row 1"):
        check_labels(y, "y")


THREE = [[0], [1], [2]]
MASKED = np.ma.array([0.0, 1, 1], mask=[0, 1, 0])


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("X", lambda: small_mlp().fit(MASKED[:, None], [0, 1, 1])),
        ("X", lambda: small_mlp().fit([[0], [1]], [0, 1]).predict(MASKED[:, None])),
        ("y", lambda: small_mlp().fit(THREE, MASKED)),
        ("y", lambda: cost_vectors(MASKED, [[0, 1], [1, 0]])),
        ("sample_weight", lambda: small_mlp().fit(THREE, [0, 1, 1], sample_weight=MASKED)),
        ("y_pred", lambda: mean_cost([0, 1, 1], MASKED, cost_matrix=[[0, 1], [1, 0]])),
    ],
)
def test_masked_values_are_refused(name, use):
    with pytest.raises(ValueError, match=rf"^{name} contains 1 masked values"):
        use()


def test_an_array_without_masked_values_is_accepted():
    check_frame(pd.DataFrame({"_mask": [0, 1]}))
    assert mean_cost(np.ma.array([0, 1]), [1, 1], cost_matrix=[[0, 1], [1, 0]]) == 0.5


def test_a_series_of_texts_is_explained():
    with pytest.raises(ValueError, match="cost of type Series cannot be read as numbers"):
        mean_cost([0, 1], [1, 0], cost=pd.Series(["1,000", "20"]))


@pytest.mark.parametrize("y", [["nan", "None"], [0.0, 1.0], [[1], [2, 3]], None])
def test_other_labels_are_not_missing(y):
    check_labels(y, "y")


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (np.array([2, 0, 2]), np.array([2, 1, 0])),
        (np.array(["b", "a", "b"]), np.array(["b", "c", "a"], dtype=object)),
        (np.array([True, False, True]), np.array([True, False])),
    ],
)
def test_label_index_finds_labels_in_any_order(y, classes):
    index = label_index(y, classes, name="y")

    assert classes[index].tolist() == y.tolist()


@pytest.mark.parametrize(
    ("y", "classes", "unknown"),
    [
        (np.array([0, 5, 9]), np.array([0, 1]), r"\[5, 9\]"),
        (np.array([0, 1]), np.array(["0", "1"]), r"\[0, 1\]"),
        (np.array(["z"]), np.array(["a", "b"]), r"\['z'\]"),
    ],
)
def test_label_index_names_unknown_labels(y, classes, unknown):
    with pytest.raises(ValueError, match=f"y contains labels that are not among .*{unknown}"):
        label_index(y, classes, name="y")


def test_labels_that_stand_twice_or_nowhere_are_refused():
    cost = np.ones((3, 3))
    with pytest.raises(ValueError, match="must name each label once"):
        mean_cost([0, 1, 2], [0, 1, 2], cost=cost, classes=[0, 1, 1])
    with pytest.raises(ValueError, match=r"y_true contains labels that are not.*\[7\]"):
        mean_cost([0, 1, 7], [0, 1, 2], cost=cost, classes=[0, 1, 2])


def test_a_file_read_without_its_index_is_explained():
    frame = pd.DataFrame(MATRIX, CLASSES, CLASSES).reset_index()
    with pytest.raises(ValueError, match="labels of rows as its index.*index_col=0"):
        mean_cost(CLASSES, CLASSES, cost_matrix=frame)
