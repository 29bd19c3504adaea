"""Labels of cost columns that are decisions, and of their rows."""

import numpy as np
import pandas as pd
import pytest

from auxcst_sklearn.costs._account import find_classes, find_decisions, labels_of_rows
from auxcst_sklearn.costs._validation import check_cost_matrix

NAMES = np.array(["ant", "bee", "cat"])
VALUES = np.arange(12.0).reshape(3, 4)


def frame(columns, index=NAMES):
    return pd.DataFrame(
        np.arange(len(index) * len(columns)).reshape(len(index), -1), index, columns
    )


def test_other_columns_than_the_index_are_decisions():
    costs = frame(["go", "stop"])

    np.testing.assert_array_equal(find_decisions(None, costs, None, NAMES), ["go", "stop"])
    np.testing.assert_array_equal(labels_of_rows(costs, NAMES[:2]), NAMES)


@pytest.mark.parametrize("columns", [NAMES, NAMES[::-1]])
def test_the_classes_as_columns_are_no_decisions(columns):
    assert find_decisions(None, frame(columns), None, NAMES) is None
    assert find_decisions(None, VALUES[:, :3], NAMES, NAMES) is None
    assert find_decisions(None, VALUES[:, :3], None, NAMES) is None


@pytest.mark.parametrize(
    ("index", "columns"), [([0, 1, 2], ["0", "1", "2"]), ([0, 1, 2], [0.0, 1.0, 2.0])]
)
def test_numbers_of_another_type_are_the_same_classes(index, columns):
    assert find_decisions(None, frame(columns, index), None, np.arange(3)) is None


def test_all_classes_and_more_are_decisions():
    columns = ["review", *NAMES[::-1]]

    np.testing.assert_array_equal(find_decisions(None, frame(columns), None, NAMES), columns)


@pytest.mark.parametrize(
    "columns",
    [["ant", "bee", "cta"], ["ant", "bee"], ["ant", "go", "x", "y"], ["go", "stop", "refer"]],
)
def test_columns_that_may_be_misspelt_classes_need_decisions(columns):
    """Some of the classes, or as many labels as there are classes."""
    with pytest.raises(ValueError, match="Rename the labels; or, .* decisions="):
        find_decisions(None, frame(columns), None, NAMES)
    np.testing.assert_array_equal(find_decisions(None, frame(columns), columns, NAMES), columns)


def test_a_transposed_matrix_adds_no_classes():
    costs = frame([*NAMES, "review"]).T
    classes = find_classes(NAMES, None, None, costs)

    with pytest.raises(ValueError, match="there is none for .'review'. of"):
        find_decisions(None, costs, None, classes)


def test_numbers_among_texts_are_texts():
    for costs, given in ((frame([0, 1, "review"], [0, 1]), None), (VALUES[:2], [0, 1, "review"])):
        np.testing.assert_array_equal(
            find_decisions(None, costs, given, np.arange(2)), ["0", "1", "review"]
        )
    mixed = np.array([0, 1, "review"], dtype=object)
    np.testing.assert_array_equal(
        find_decisions(None, VALUES[:2], mixed, np.arange(2)), ["0", "1", "review"]
    )


@pytest.mark.parametrize(
    ("decisions", "message"),
    [
        (["go", "go"], "once"),
        ([], "once"),
        ([["go", "stop"]], "one dimension"),
        (["go", None], "NaN or None"),
    ],
)
def test_each_decision_is_named_once(decisions, message):
    with pytest.raises(ValueError, match=message):
        find_decisions(None, VALUES, decisions, NAMES)


@pytest.mark.parametrize("index", [["0", "1", "2"], [0, 1, 2]])
def test_the_index_may_spell_numbers(index):
    np.testing.assert_array_equal(
        labels_of_rows(frame(["go", "stop"], index), np.arange(3)), [0, 1, 2]
    )


def test_a_default_index_counts_the_classes():
    """As an array would; labels that are not 0 .. K-1 need an index of their own, or decisions."""
    costs = pd.DataFrame(VALUES, columns=list("abcd"))

    np.testing.assert_array_equal(find_decisions(None, costs, None, np.arange(3)), list("abcd"))
    with pytest.raises(ValueError, match="need an index that holds the classes"):
        find_classes(NAMES, None, None, costs)
    np.testing.assert_array_equal(find_classes(NAMES, None, None, costs, list("abcd")), NAMES)
    with pytest.raises(ValueError, match="index labels of cost_matrix are .0, 1, 2."):
        check_cost_matrix(costs, classes=NAMES, decisions=np.array(list("abcd")))


@pytest.mark.parametrize("labels", [[False, True], ["False", "True"]])
def test_booleans_name_rows_and_columns(labels):
    costs = frame([*labels, "review"], labels)
    classes = np.array([False, True])

    np.testing.assert_array_equal(labels_of_rows(costs, classes), classes)
    np.testing.assert_array_equal(
        find_decisions(None, costs, None, classes), ["False", "True", "review"]
    )


def test_rows_and_columns_go_by_their_labels():
    costs = pd.DataFrame(VALUES, NAMES, ["ant", "bee", "cat", "go"])
    shuffled = costs.loc[["cat", "ant", "bee"], ["go", "bee", "ant", "cat"]]
    decisions = np.array(["go", "cat", "bee", "ant"])

    found = check_cost_matrix(shuffled, classes=NAMES, decisions=decisions)

    np.testing.assert_array_equal(found, costs[decisions])


def test_a_frame_without_index_has_rows_like_its_columns_if_these_are_the_classes():
    polars = pytest.importorskip("polars")
    costs = frame(NAMES, NAMES)
    order = ["cat", "ant", "bee"]
    shuffled = polars.from_pandas(costs.loc[order, order])

    for given in (NAMES, np.array(["bee", "cat", "ant"])):
        found = check_cost_matrix(shuffled, classes=NAMES, decisions=given)
        np.testing.assert_array_equal(found, costs[given])


@pytest.mark.parametrize(
    ("values", "message"),
    [(VALUES[:, :3], r"expected \(3, 4\)"), (VALUES[:2], "name all in classes=")],
)
def test_shapes_are_checked(values, message):
    with pytest.raises(ValueError, match=message):
        check_cost_matrix(values, classes=NAMES, decisions=np.array(list("abcd")))


def test_columns_without_names_are_an_error_that_says_how_to_name_them():
    with pytest.raises(ValueError, match="a DataFrame whose index holds the classes.*decisions="):
        check_cost_matrix(VALUES, classes=NAMES)
