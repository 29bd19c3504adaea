from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from auxcst_sklearn.costs import binary_cost_matrices, cost_matrices
from auxcst_sklearn.metrics import mean_cost

TABLE = pd.DataFrame({"limit": [100.0, 200.0, 300.0], "loan amount": [10, 20, 30]})
LIMIT, LOAN, ZERO = TABLE["limit"], TABLE["loan amount"], np.zeros(3)
GRADES = {
    "low": {"low": 0, "medium": 1, "high": LIMIT},
    "medium": {"low": 0.5 * LOAN, "medium": 0, "high": TABLE.eval("2 * (limit - 50) + 1")},
    "high": {"low": -LIMIT / 4, "medium": LIMIT**2, "high": 0},
}
# In the order of the sorted labels: high, low, medium.
EXPECTED = np.array(
    [[ZERO, -LIMIT / 4, LIMIT**2], [LIMIT, ZERO, ZERO + 1], [2 * (LIMIT - 50) + 1, LOAN / 2, ZERO]]
).transpose(2, 0, 1)


@pytest.mark.parametrize("order", list(permutations(GRADES)))
def test_the_order_of_writing_has_no_effect(order):
    terms = {true: {label: GRADES[true][label] for label in order[::-1]} for true in order}
    np.testing.assert_array_equal(cost_matrices(terms), EXPECTED)


def test_tables_and_columns_of_other_libraries():
    polars = pytest.importorskip("polars")
    kinds = (np.asarray, list, polars.Series, lambda c: c.convert_dtypes())
    for kind in kinds:
        terms = {
            true: {k: kind(cost) if np.ndim(cost) else cost for k, cost in row.items()}
            for true, row in GRADES.items()
        }
        np.testing.assert_array_equal(cost_matrices(terms), EXPECTED)
    frame = pd.DataFrame(GRADES, dtype=object).T
    np.testing.assert_array_equal(cost_matrices(frame), EXPECTED)


def test_a_table_that_was_written_to_a_file(tmp_path):
    labels = [10, 9, 2]
    table = pd.DataFrame([[0, 7, 1], [2, 0, 3], [4, 5, 0]], labels, labels)
    table.rename_axis(index="true class", columns="EUR").to_csv(tmp_path / "costs.csv")
    read = pd.read_csv(tmp_path / "costs.csv", index_col=0)
    read.columns = read.columns.astype(int)  # the header of a file is text
    found = cost_matrices(read)
    np.testing.assert_array_equal(found, [[0, 5, 4], [3, 0, 2], [1, 7, 0]])


def test_decisions_keep_the_order_of_the_columns():
    terms = {
        "paid": {"review": 5, "grant": 0, "call": 1},
        "lost": {"call": 2, "grant": 9, "review": 6},
    }
    found = cost_matrices(terms)
    np.testing.assert_array_equal(found, [[6, 9, 2], [5, 0, 1]])  # lost, paid
    y = ["paid", "lost"]
    paid = mean_cost(y, ["review", "grant"], cost=[found, found], decisions=list(terms["paid"]))
    assert paid == (5 + 9) / 2


def test_two_classes_equal_the_four_outcomes():
    terms = {"good": {"fraud": 5, "good": 0}, "fraud": {"good": LIMIT, "fraud": 5}}
    expected = binary_cost_matrices(
        fp_cost=5, tp_cost=5, fn_cost=LIMIT, classes=["good", "fraud"], pos_label="fraud"
    )
    np.testing.assert_array_equal(cost_matrices(terms), expected)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("limit", r"terms\[0\]\[1\] cannot be read as numbers: .* 0\.75 \* customers\['limit'\]"),
        ("3", "cannot be read as numbers"),
        (pd.date_range("2026-01-01", periods=3), "cannot be read as numbers"),
        ([1.0, np.nan, 3.0], r"terms\[0\]\[1\] has shape \(3,\) and 1 values that are not finite"),
        (None, r"terms\[0\]\[1\] has shape \(\) and 1 values"),
        (LIMIT[::-1] * 2, r"index of terms\[0\]\[1\] has labels of that of terms\[0\]\[0\] in"),
        ([1.0, 2.0], "inconsistent numbers of samples"),
    ],
)
def test_mistakes_in_a_cell_are_named(cell, message):
    with pytest.raises(ValueError, match=message):
        cost_matrices({0: {0: LOAN, 1: cell}, 1: {0: 1, 1: 0}})


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        ({0: {0: 0, 1: 1}, 1: {0: 1}}, ValueError, r"terms\[1\] has costs for \[0\]; expected one"),
        ({0: {}}, ValueError, "expected one for each"),
        ({}, ValueError, "terms is empty"),
        ({0: {0: 0, "a": 1}, "a": {0: 1, "a": 0}}, TypeError, "not supported between"),
        ([[0, 1], [1, 0]], TypeError, "of type list; expected {true class"),
        (pd.DataFrame(1, index=[0, 0], columns=[0, 1]), ValueError, "occurs twice"),
    ],
)
def test_mistakes_in_a_table_are_named(terms, error, message):
    with pytest.raises(error, match=message):
        cost_matrices(terms)
