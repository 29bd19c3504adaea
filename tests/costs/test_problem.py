"""The problem of a fit: classes, one source of costs, warnings."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import cost_vectors, ordinal_cost_matrix
from auxcst_sklearn.metrics import (
    cost_difference,
    cost_scorer,
    make_cost_scorer,
    mean_cost,
    savings_score,
)
from tests.factories import small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])
LABEL = np.array([0, 2, 2, 0, 2])
CLASSES = np.arange(3)


def test_classes_come_from_the_caller_from_labels_of_costs_or_from_y():
    y = np.array(["b", "a"])
    frame = pd.DataFrame(np.ones((2, 3)), columns=list("cab"))
    X, cost = np.eye(2), np.ones((2, 2))

    assert small_mlp().fit(X, y, cost=frame).classes_.tolist() == ["a", "b", "c"]
    assert small_mlp().fit(X, y, cost=cost).classes_.tolist() == ["a", "b"]
    named = small_mlp(classes=["a", "b", "d"]).fit(X, y, cost=np.ones((2, 3)))
    assert named.classes_.tolist() == ["a", "b", "d"]


@pytest.mark.parametrize("classes", [["b", "a"], ["a", "a", "b"], [["a"], ["b"]]])
def test_classes_must_be_sorted(classes):
    with pytest.raises(ValueError, match="each label once, in sorted order.*DataFrame"):
        of_fit(label=np.array([0, 1]), labels=np.array(["a", "b"]), classes=classes)


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match=r"1 class only, \['a'\]; .* classes="):
        BayesMinimumRiskClassifier(DummyClassifier()).fit(np.eye(2), ["a", "a"])
    with pytest.raises(ValueError, match=r"classes=\[0\] contains 1 class only"):
        of_fit(label=np.array([0, 0]), classes=[0])


def of_fit(cost=None, matrix=None, label=LABEL, labels=CLASSES, classes=None):
    known = {"cost_matrix": matrix, "classes": labels if classes is None else classes}
    model = BayesMinimumRiskClassifier(DummyClassifier(), **known)
    return model.fit(np.zeros((len(label), 1)), labels[label], cost=cost)


def test_costs_have_one_source():
    with pytest.raises(ValueError, match="both cost and cost_matrix; expected one source"):
        of_fit(MATRIX[LABEL], MATRIX)

    means = of_fit(MATRIX[LABEL]).cost_matrix_[[0, 2]]
    np.testing.assert_allclose(means, MATRIX[[0, 2]], rtol=1e-15)
    np.testing.assert_array_equal(of_fit(None, MATRIX).cost_matrix_, MATRIX)
    np.testing.assert_array_equal(of_fit().cost_matrix_, 1 - np.eye(3))


LABELS = np.array(["cat", "cow", "dog"])


def test_a_transposed_matrix_warns_with_the_labels_in_their_order():
    matrix = np.array([[0.0, 9, 9], [0, 0.5, 9], [0, 0, 0.5]])
    label = np.array([0, 1, 2, 2])

    shown = r"of class 'cow' \(100%\), 'dog' \(100%\)\..*transposed.*\['cat', 'cow', 'dog'\]"
    for costs in ((None, matrix), (matrix[label], None)):
        with pytest.warns(UserWarning, match=shown):
            of_fit(*costs, label, LABELS)


def test_a_model_and_the_networks_in_it_warn_once():
    matrix = np.array([[0.0, 9, 9], [0, 0.5, 9], [0, 0, 0.5]])
    members = [("logistic", LogisticRegression()), ("network", small_mlp())]
    X, y = np.eye(30), np.arange(30) % 3
    ensemble = CostSensitiveEnsembleClassifier(members, cost_matrix=matrix, cv=2, random_state=0)
    for model, cost in ((ensemble, None), (BayesMinimumRiskClassifier(small_mlp()), matrix[y])):
        with pytest.warns(UserWarning, match="not the cheapest") as warned:
            model.fit(X, y, cost=cost)
        assert len([w for w in warned if "not the cheapest" in str(w.message)]) == 1


def test_a_wrong_sign_for_a_rare_class_warns():
    matrix = np.array([[0.0, 5], [-300, 0]])

    with pytest.warns(UserWarning, match=r"class 'cow' \(100%\)\. .*wrong sign"):
        of_fit(None, matrix, np.array([0] * 99 + [1]), LABELS[:2])


def test_few_rows_of_a_class_may_be_cheaper_as_another(recwarn):
    label = np.repeat([0, 1], 5)
    cost = np.where(np.arange(2) == label[:, np.newaxis], 5.0, 20.0)
    cost[5:7] = [3, 5]  # frauds of less than an alert costs
    of_fit(cost, None, label, LABELS[:2])

    assert not recwarn.list


@pytest.mark.parametrize("matrix", [MATRIX, -10 * np.eye(3), 1 - np.eye(3), np.ones((3, 3))])
def test_costs_of_mistakes_and_profits_of_hits_do_not_warn(matrix, recwarn):
    label = np.array([0, 1, 2, 2])

    of_fit(None, matrix, label, LABELS)
    of_fit(matrix[label], None, label, LABELS)

    assert not recwarn.list


def test_the_message_names_a_filter_that_works():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The true class is not the")
        of_fit(None, np.eye(3), np.array([0, 1, 2]), LABELS)


# --- labels with an order of their own ----------------------------------------------------

GRADES = ["low", "medium", "high"]
CODES = np.arange(60) % 3
X = np.random.default_rng(0).normal(size=(60, 2))
COST = ordinal_cost_matrix(3)


def in_polars():
    polars = pytest.importorskip("polars")
    return polars.Series(np.array(GRADES)[CODES], dtype=polars.Enum(GRADES))


def in_pandas():
    return pd.Series(pd.Categorical.from_codes(CODES, GRADES, ordered=True))


ORDERED = {
    "pandas": in_pandas,
    "pandas array": lambda: in_pandas().array,
    "pandas frame": lambda: in_pandas().to_frame(),
    "polars": in_polars,
}


def confusion_of(y, C):
    pytest.importorskip("matplotlib")
    from auxcst_sklearn.plotting import CostConfusionDisplay

    return CostConfusionDisplay.from_predictions(y, np.array(GRADES)[CODES], **C)


def rule():
    return BayesMinimumRiskClassifier(LogisticRegression()).fit(X, np.array(GRADES)[CODES])


MATRIX_USES = {
    "network": lambda y, C: small_mlp(cost_matrix=C).fit(X, y),
    "rule": lambda y, C: BayesMinimumRiskClassifier(cost_matrix=C).fit(X, y),
    "metric": lambda y, C: mean_cost(y, np.array(GRADES)[CODES], cost_matrix=C),
    "difference": lambda y, C: cost_difference(y, y, y, cost_matrix=C),
    "scorer": lambda y, C: make_cost_scorer(cost_matrix=C)(rule(), X, y),
    "vectors": lambda y, C: cost_vectors(y, C),
    "display": lambda y, C: confusion_of(y, {"cost_matrix": C}),
}
ROWS_USES = {
    "fit": lambda y, c: small_mlp().fit(X, y, cost=c),
    "score": lambda y, c: rule().score(X, y, cost=c),
    "scorer of rows": lambda y, c: cost_scorer(rule(), X, y, cost=c),
    "metric of rows": lambda y, c: savings_score(np.array(GRADES)[CODES], y, cost=c),
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("make", ORDERED.values(), ids=ORDERED)
@pytest.mark.parametrize("use", MATRIX_USES.values(), ids=MATRIX_USES)
def test_a_matrix_without_labels_for_ordered_categories_warns(use, make):
    with pytest.warns(UserWarning, match="ordered categories, .'low', 'medium', 'high'") as warned:
        use(make(), COST)
    found = [w.filename for w in warned if "ordered categories" in str(w.message)]
    assert set(found) == {__file__}


@pytest.mark.parametrize("use", ROWS_USES.values(), ids=ROWS_USES)
def test_rows_without_labels_warn_too(use):
    with pytest.warns(UserWarning, match="ordered categories, .'low', 'medium', 'high'"):
        use(in_pandas(), COST[CODES])


@pytest.mark.parametrize("use", MATRIX_USES.values(), ids=MATRIX_USES)
def test_no_warning_where_no_order_is_lost(use, recwarn):
    y = in_pandas()
    use(y, ordinal_cost_matrix(GRADES))
    use(y.astype(str), COST)
    use(y.cat.as_unordered(), COST)
    mean_cost(y, y, cost_matrix=COST, classes=GRADES)
    small_mlp(cost_matrix=COST, classes=sorted(GRADES)).fit(X, y)
    small_mlp().fit(X, y)
    small_mlp(cost_matrix=COST).fit(X, y.cat.rename_categories(["a", "b", "c"]))
    assert not [w for w in recwarn if "ordered categories" in str(w.message)]
