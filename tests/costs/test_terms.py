from itertools import permutations

import numpy as np
import pandas as pd
import pytest

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs import binary_cost_matrices, cost_matrices
from auxcst_sklearn.metrics import mean_cost

AMOUNTS = pd.DataFrame({"limit": [100.0, 200.0, 300.0], "loan amount": [10, 20, 30]})
GRADES = {
    "low": {"low": 0, "medium": 1, "high": "limit"},
    "medium": {"low": "0.5 * `loan amount`", "medium": 0, "high": "2 * (limit - 50) + 1"},
    "high": {"low": "-limit / 4", "medium": AMOUNTS["limit"] ** 2, "high": 0},
}
LIMIT, LOAN, ZERO = AMOUNTS["limit"], AMOUNTS["loan amount"], np.zeros(3)
# In the order of the sorted labels: high, low, medium.
EXPECTED = np.array(
    [
        [ZERO, -LIMIT / 4, LIMIT**2],
        [LIMIT, ZERO, ZERO + 1],
        [2 * (LIMIT - 50) + 1, LOAN / 2, ZERO],
    ]
).transpose(2, 0, 1)


@pytest.mark.parametrize("order", list(permutations(GRADES)))
def test_the_order_of_writing_has_no_effect(order):
    terms = {true: {label: GRADES[true][label] for label in order[::-1]} for true in order}
    np.testing.assert_array_equal(cost_matrices(terms, AMOUNTS), EXPECTED)


def test_tables_of_other_libraries():
    polars = pytest.importorskip("polars")
    frame = pd.DataFrame.from_dict(GRADES, orient="index")
    columns = {name: column.to_list() for name, column in AMOUNTS.items()}
    plain = {**GRADES, "high": {**GRADES["high"], "medium": LIMIT.to_list()}}
    plain["high"]["medium"] = (LIMIT**2).to_list()
    for terms, amounts in ((frame, AMOUNTS), (plain, polars.DataFrame(columns)), (plain, columns)):
        np.testing.assert_array_equal(cost_matrices(terms, amounts), EXPECTED)


def test_a_table_that_was_written_to_a_file(tmp_path):
    labels = [10, 9, 2]
    table = pd.DataFrame([["0", "limit", 1], [2, 0, 3], [4, 5, 0]], labels, labels)
    table.rename_axis(index="true class", columns="EUR").to_csv(tmp_path / "costs.csv")
    read = pd.read_csv(tmp_path / "costs.csv", index_col=0)
    found = cost_matrices(read, AMOUNTS)
    np.testing.assert_array_equal(found[1], [[0, 5, 4], [3, 0, 2], [1, 200, 0]])


def test_decisions_keep_the_order_of_the_columns():
    terms = {
        "paid": {"review": 5, "grant": 0, "call": 1},
        "lost": {"call": 2, "grant": 9, "review": 6},
    }
    found = cost_matrices(terms)
    np.testing.assert_array_equal(found, [[6, 9, 2], [5, 0, 1]])  # lost, paid
    y = ["paid", "lost"]
    paid = mean_cost(
        y, ["review", "grant"], cost=found[None].repeat(2, 0), decisions=list(terms["paid"])
    )
    assert paid == (5 + 9) / 2


def test_two_classes_equal_the_four_outcomes():
    terms = {"good": {"fraud": 5, "good": 0}, "fraud": {"good": "limit", "fraud": 5}}
    expected = binary_cost_matrices(
        fp_cost=5, tp_cost=5, fn_cost=LIMIT, classes=["good", "fraud"], pos_label="fraud"
    )
    np.testing.assert_array_equal(cost_matrices(terms, AMOUNTS), expected)


def test_there_is_a_matrix_for_each_row_of_amounts():
    terms = {0: {0: 0, 1: "2 * rate"}, 1: {0: 2, 1: 0}}
    numbers = {"rate": 0.5}
    np.testing.assert_array_equal(cost_matrices(terms, numbers), [[0, 1], [2, 0]])
    for amounts in (AMOUNTS.assign(rate=0.5), {"rate": 0.5, "unused": [1, 2, 3]}):
        found = cost_matrices(terms, amounts)
        np.testing.assert_array_equal(found, [[[0, 1], [2, 0]]] * 3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        cost_matrices(terms, {"rate": [1, 2], "unused": [1, 2, 3]})


def test_many_classes():
    terms = {k: {j: abs(k - j) for j in range(60)} for k in range(60)}
    assert cost_matrices(terms)[3, 50] == 47


def test_columns_have_the_names_that_are_written():
    """Python's parser makes one letter of the micro sign and of mu, and two of a ligature."""
    micro, mu, cyrillic = "\u00b5m", "\u03bcm", "\u0440\u0430"
    ligature, long = "pro\ufb01t", "profit"
    amounts = {micro: [1.0], mu: [10.0], ligature: [100.0], long: [1000.0], cyrillic: [7.0]}
    for formula, expected in {
        f"{micro} + 2 * {mu}": 21,
        f"min({mu}, ({micro}))": 1,
        f"{cyrillic} + {ligature} - {mu}": 97,
        f"{ligature} < {long}": 1,
        f"`{ligature}` + {long}": 1100,
    }.items():
        costs = cost_matrices({"a": {"a": 0, "b": formula}, "b": {"a": 1, "b": 0}}, amounts)
        assert costs[0, 0, 1] == expected
    with pytest.raises(ValueError, match=f"names {micro!r}; expected columns"):
        cost_matrices({"a": {"a": 0, "b": micro}, "b": {"a": 1, "b": 0}}, {mu: [1.0]})


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("limits", r"terms\[0\]\[1\]='limits' names 'limits'; expected columns.*'limit', 'loan"),
        ("limit **", r"terms\[0\]\[1\]='limit \*\*' cannot be read; expected numbers and columns"),
        ("limit ** 2", "cannot be read"),
        ("abs(limit)", "cannot be read"),
        ("limit.shape", "cannot be read"),
        ("", "cannot be read"),
        ("limit / 0", r"terms\[0\]\[1\] has shape \(3,\) and 3 values that are not finite"),
        (None, r"terms\[0\]\[1\] has shape \(\) and 1 values"),
        (
            LIMIT[::-1] * 2,
            r"index of terms\[0\]\[1\] has labels of that of amounts in another order",
        ),
        ([1.0, 2.0], "inconsistent numbers of samples"),
    ],
)
def test_mistakes_in_a_cell_are_named(cell, message):
    with pytest.raises(ValueError, match=message):
        cost_matrices({0: {0: 0, 1: cell}, 1: {0: 1, 1: 0}}, AMOUNTS)


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        ({0: {0: 0, 1: 1}, 1: {0: 1}}, ValueError, r"terms\[1\] has costs for \[0\]; expected one"),
        ({0: {}}, ValueError, "expected one for each"),
        ({}, ValueError, "terms is empty"),
        ({0: {0: 0, "a": 1}, "a": {0: 1, "a": 0}}, ValueError, "no common order"),
        ([[0, 1], [1, 0]], TypeError, "of type list; expected {true class"),
        (pd.DataFrame(1, index=[0, 0], columns=[0, 1]), ValueError, "occurs twice"),
    ],
)
def test_mistakes_in_a_table_are_named(terms, error, message):
    with pytest.raises(error, match=message):
        cost_matrices(terms)


@pytest.mark.parametrize("amounts", [[{"limit": 1.0}], pd.Series({"limit": 1.0}), np.ones((3, 1))])
def test_amounts_are_columns_with_names(amounts):
    with pytest.raises(TypeError, match="amounts is a .*; expected a DataFrame or a dict"):
        cost_matrices({0: {0: 0, 1: "limit"}, 1: {0: 1, 1: 0}}, amounts)


def test_gaps_in_amounts_name_their_column():
    with pytest.raises(ValueError, match=r"amounts\['limit'\] has .* 1 values that are not finite"):
        cost_matrices(
            {0: {0: 0, 1: "limit"}, 1: {0: 1, 1: 0}}, AMOUNTS.assign(limit=[1, 2, np.nan])
        )


def test_an_estimator_decides_by_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.array(list(GRADES))[rng.integers(3, size=60)]
    amounts = {"limit": rng.uniform(50, 100, 60), "loan amount": rng.uniform(1, 2, 60)}
    terms = {**GRADES, "high": {"low": "limit", "medium": 1, "high": 0}}
    C = cost_matrices(terms, amounts)
    rule = BayesMinimumRiskClassifier().fit(X, y, cost=C)
    expected = np.zeros((60, 3))
    for k, true in enumerate(rule.classes_):
        for j, decision in enumerate(rule.classes_):
            cell = cost_matrices({true: {decision: terms[true][decision]}}, amounts).ravel()
            expected[:, j] += rule.predict_proba(X)[:, k] * cell
    np.testing.assert_allclose(rule.predict_cost(X, cost=C), expected)


FORMULAS = {
    "max(limit - 150, 0)": np.maximum(LIMIT - 150, 0),
    "min(limit, 250, 10 * `loan amount`)": np.minimum(np.minimum(LIMIT, 250), 10 * LOAN),
    "20 * (limit < 200) + 5 * (limit >= 200)": np.where(LIMIT < 200, 20, 5),
    "limit == 200": LIMIT == 200,
    "-(limit <= 200)": -(LIMIT <= 200).astype(int),
    "limit * (100 < limit <= 200)": np.where((LIMIT > 100) & (LIMIT <= 200), LIMIT, 0),
    "max(min(limit, 2), 1) > 1": 1,
}


@pytest.mark.parametrize("formula", FORMULAS)
def test_limits_and_conditions(formula):
    found = cost_matrices({0: {0: 0, 1: formula}, 1: {0: 1, 1: 0}}, AMOUNTS)
    np.testing.assert_array_equal(found[:, 0, 1], np.broadcast_to(FORMULAS[formula], 3))


@pytest.mark.parametrize(
    "formula",
    [
        "min(limit)",
        "max()",
        "max(limit, *limit)",
        "max(limit, 1, key=abs)",
        "limit is 3",
        "limit != 3",
        "limit in limit",
        "(limit.max)(1, 2)",
        "pow(limit, 2)",
        "not limit",
        "limit > 1 and limit < 2",
        "limit if limit else 0",
        "lambda: 1",
        "limit * True",
        "__import__('os')",
    ],
)
def test_other_code_cannot_be_read(formula):
    with pytest.raises(ValueError, match="cannot be read; expected numbers and columns"):
        cost_matrices({0: {0: 0, 1: formula}, 1: {0: 1, 1: 0}}, AMOUNTS)


def test_a_gap_in_a_comparison_is_an_error():
    terms = {0: {0: 0, 1: "9 * (limit > 150)"}, 1: {0: 1, 1: 0}}
    for gap in (np.nan, None):
        with pytest.raises(
            ValueError, match=r"amounts\['limit'\] has .* 1 values that are not fin"
        ):
            cost_matrices(terms, {"limit": [100.0, gap, 300.0]})
