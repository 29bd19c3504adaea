import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxcst_sklearn.costs import (
    cost_vectors,
    ordinal_cost_matrix,
    randomized_proportional_cost_matrix,
    tree_distance_cost_matrix,
)
from auxcst_sklearn.metrics import cost_difference, mean_cost

CLASSES = np.array(["a", "b", "c"])
MATRIX = np.array([[0.0, 1, 2], [3, 0, 4], [5, 6, 0]])


def test_cost_vectors_are_rows_of_the_matrix():
    frame = pd.DataFrame(MATRIX, index=list("abc"), columns=list("abc"))

    np.testing.assert_array_equal(cost_vectors(["c", "a", "c", "b"], MATRIX), MATRIX[[2, 0, 2, 1]])
    in_order = cost_vectors(["x", "z"], MATRIX, classes=["z", "x", "y"])
    np.testing.assert_array_equal(in_order, MATRIX[[1, 0]])
    np.testing.assert_array_equal(cost_vectors(["a", "c"], frame), MATRIX[[0, 2]])


def test_cost_vectors_of_a_labelled_matrix_are_in_the_order_of_an_estimator():
    order = ["low", "medium", "high"]
    y, y_pred = ["low", "high", "medium", "high"], ["high", "low", "low", "high"]
    matrix = ordinal_cost_matrix(order, power=2)
    frame = pd.DataFrame(matrix, order, order)

    cost = cost_vectors(y, matrix)

    np.testing.assert_array_equal(cost, frame.loc[y, sorted(order)])
    np.testing.assert_array_equal(cost, cost_vectors(y, frame))
    assert mean_cost(y, y_pred, cost=cost) == mean_cost(y, y_pred, cost_matrix=matrix)
    in_order = cost_vectors(y, matrix, classes=order)
    np.testing.assert_array_equal(in_order, frame.loc[y, order])


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
    np.testing.assert_array_equal(tree_distance_cost_matrix(iter(paths)), expected)


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
    for classes in (0, [], ["a", "b", "a"]):
        with pytest.raises(ValueError, match="classes=.*; expected the number of classes"):
            ordinal_cost_matrix(classes)
    for power in (-1, "2"):
        with pytest.raises(ValueError, match=f"power must be positive, got {power!r}"):
            ordinal_cost_matrix(3, power=power)


def test_ordinal_costs_of_too_high_and_too_low():
    found = ordinal_cost_matrix(["low", "medium", "high"], power=2, over_cost=3, under_cost=0.5)
    assert found.values[0, 2] == 3 * 4  # predicted too high
    assert found.values[2, 0] == 0.5 * 4
    assert (np.diag(found) == 0).all()
    for wrong in (-1, np.inf, np.nan, [1, 2]):
        with pytest.raises(ValueError, match="under_cost=.*; expected the cost of one class"):
            ordinal_cost_matrix(3, under_cost=wrong)


def test_labels_without_an_order_are_refused():
    mixed = np.array([0, "a"], dtype=object)
    for call in (
        lambda: cost_vectors(mixed, np.eye(2)),
        lambda: randomized_proportional_cost_matrix(mixed),
        lambda: mean_cost(mixed, mixed, cost_matrix=np.eye(2)),
        lambda: cost_difference(mixed, mixed, mixed, cost_matrix=np.eye(2)),
    ):
        with pytest.raises(ValueError, match="labels of types int, str, which have no"):
            call()


def test_paths_of_numbers_are_refused():
    for paths in ([0], [("a", 1)], [None]):
        with pytest.raises(ValueError, match="paths contains .*; expected the names"):
            tree_distance_cost_matrix(paths)


def test_a_missing_label_is_no_class():
    with pytest.raises(ValueError, match="Input y contains NaN or None for 1 of 3 rows"):
        randomized_proportional_cost_matrix([0, 1, np.nan], random_state=0)
