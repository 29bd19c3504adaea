import numpy as np
import pandas as pd
import polars as pl
import pytest

from auxcst_sklearn.costs._checks import check_cost, check_cost_matrix, label_index

CLASSES = np.array(["a", "b", "c"])
MATRIX = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])


def test_check_cost_matches_columns_by_label():
    cost = np.arange(6.0).reshape(2, 3)
    shuffled = [2, 0, 1]

    for frame in (
        pd.DataFrame(cost[:, shuffled], columns=CLASSES[shuffled]),
        pl.DataFrame(cost[:, shuffled], schema=CLASSES[shuffled].tolist()),
    ):
        np.testing.assert_array_equal(check_cost(frame, n_samples=2, classes=CLASSES), cost)


def test_check_cost_matches_text_columns_with_integer_classes():
    frame = pl.DataFrame(np.array([[1.0, 2.0]]), schema=["7", "3"])

    found = check_cost(frame, n_samples=1, classes=np.array([3, 7]))

    np.testing.assert_array_equal(found, [[2.0, 1.0]])


def test_check_cost_matrix_matches_rows_and_columns_by_label():
    frame = pd.DataFrame(MATRIX, index=CLASSES, columns=CLASSES).loc[
        ["b", "c", "a"], ["c", "a", "b"]
    ]

    np.testing.assert_array_equal(check_cost_matrix(frame, classes=CLASSES), MATRIX)


def test_check_cost_does_not_write_to_the_caller():
    cost = np.ones((2, 3), dtype=np.float32)
    cost.flags.writeable = False

    check_cost(cost, n_samples=2, classes=CLASSES)


@pytest.mark.parametrize(
    ("cost", "message"),
    [
        (MATRIX, "cost matrix of the 3 classes.*cost_matrix="),
        (np.ones((4, 3)), r"cost has 4 rows, but there are 5 samples"),
        (np.ones((5, 2)), r"cost has 2 columns, but there are 3 classes: \['a', 'b', 'c'\]"),
        (np.ones(5), r"shape \(5,\); expected two dimensions"),
        (np.where(np.eye(5, 3) > 0, np.nan, 1), "nan in row 0, column 0, and 3 values"),
        (np.where(np.eye(5, 3, 1) > 0, np.inf, 1), "inf in row 0, column 1"),
        ([["x", "y", "z"]] * 5, "cannot be read as numbers"),
        (pd.DataFrame(np.ones((5, 3)), columns=list("abd")), "expected each class once"),
        (pd.DataFrame(np.ones((5, 3)), columns=list("aab")), "expected each class once"),
    ],
)
def test_check_cost_says_what_is_wrong(cost, message):
    with pytest.raises((TypeError, ValueError), match=message):
        check_cost(cost, n_samples=5, classes=CLASSES)


@pytest.mark.parametrize(
    ("cost_matrix", "message"),
    [
        (np.ones((5, 3)), r"cost_matrix has shape \(5, 3\); expected a square matrix"),
        (np.ones((2, 2)), r"cost_matrix has shape \(2, 2\), but there are 3 classes"),
        (np.full((3, 3), np.nan), "cost_matrix holds nan"),
        (pd.DataFrame(np.ones((3, 3)), columns=list("abc")), "the index of cost_matrix"),
    ],
)
def test_check_cost_matrix_says_what_is_wrong(cost_matrix, message):
    with pytest.raises(ValueError, match=message):
        check_cost_matrix(cost_matrix, classes=CLASSES)


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
    with pytest.raises(ValueError, match=f"y holds labels that are not among .*{unknown}"):
        label_index(y, classes, name="y")
