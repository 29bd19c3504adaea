import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxcst_sklearn.costs import (
    check_cost,
    check_cost_matrix,
    cost_vectors,
    label_index,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)

CLASSES = np.array(["a", "b", "c"])
MATRIX = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])


def test_cost_vectors_are_rows_of_the_matrix():
    y = ["c", "a", "c", "b"]

    np.testing.assert_array_equal(cost_vectors(y, MATRIX), MATRIX[[2, 0, 2, 1]])


def test_cost_vectors_follow_the_classes_in_any_order():
    found = cost_vectors(["x", "z"], MATRIX, classes=["z", "x", "y"])

    np.testing.assert_array_equal(found, MATRIX[[1, 0]])


def test_cost_vectors_of_a_labelled_matrix_with_an_absent_class():
    frame = pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc"))

    np.testing.assert_array_equal(cost_vectors(["a", "c"], frame), MATRIX[[0, 2]])


def test_randomized_proportional_cost_matrix():
    y = np.repeat([0, 1, 2], [10, 20, 70])

    draws = np.stack([randomized_proportional_cost_matrix(y, s) for s in range(300)])

    limit = 10 * np.array([10, 20, 70]) / np.array([[10], [20], [70]])
    off = ~np.eye(3, dtype=bool)
    assert (draws[:, ~off] == 0).all()
    assert (draws >= 0).all()
    assert (draws <= limit).all()
    np.testing.assert_allclose((draws.mean(axis=0) / limit)[off], 0.5, atol=0.06)


def test_randomized_proportional_cost_matrix_is_reproducible():
    state = np.random.get_state()[1].copy()

    a, b = (randomized_proportional_cost_matrix([0, 1, 1], 5) for _ in range(2))

    np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(np.random.get_state()[1], state)


def test_tree_distance_of_tuples_and_strings():
    paths = ["root/animal/cat", ("root", "animal", "dog"), "root/car", "root/animal/bird/owl"]
    expected = [[0, 2, 3, 3], [2, 0, 3, 3], [3, 3, 0, 4], [3, 3, 4, 0]]

    np.testing.assert_array_equal(tree_distance_cost_matrix(paths), expected)


names = st.sampled_from("abcd")


@given(st.lists(st.lists(names, min_size=1, max_size=4).map(tuple), min_size=1, unique=True))
def test_tree_distance_is_a_metric(paths):
    distance = tree_distance_cost_matrix(paths)

    assert (np.diag(distance) == 0).all()
    assert (distance == distance.T).all()
    assert (distance + np.eye(len(paths)) > 0).all()
    assert (distance[:, :, None] + distance[None] >= distance[:, None, :]).all()


@pytest.mark.parametrize(
    ("paths", "message"),
    [(["a/b", "a/b"], "more than once"), (["a", ()], "at least the class"), (["a//b"], "empty")],
)
def test_tree_distance_refuses_ill_paths(paths, message):
    with pytest.raises(ValueError, match=message):
        tree_distance_cost_matrix(paths)


def test_ordinal_cost_matrix():
    np.testing.assert_array_equal(ordinal_cost_matrix(3), [[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    assert ordinal_cost_matrix(4, power=2)[0, 3] == 9
    with pytest.raises(ValueError, match="n_classes must be at least 1, got 0"):
        ordinal_cost_matrix(0)
    with pytest.raises(ValueError, match="power must be positive, got -1"):
        ordinal_cost_matrix(3, power=-1)


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
