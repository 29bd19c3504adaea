import warnings

import numpy as np
import pandas as pd
import pytest

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs import ordinal_cost_matrix
from auxcst_sklearn.costs._source import find_classes, resolve_costs, warn_if_truth_is_dear
from tests.factories import small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])
LABEL = np.array([0, 2, 2, 0, 2])


def test_labels_of_costs_must_cover_y():
    y = np.array([0, 1, 2])
    frame = pd.DataFrame(np.ones((3, 3)), columns=[0, 1, 5])

    with pytest.raises(ValueError, match=r"columns of cost are \[0, 1, 5\], .* \[2\]"):
        find_classes(y, None, frame, None)
    frame.columns = [0.0, 1.0, 2.0]
    assert find_classes(y, None, frame, None).dtype == y.dtype


def test_classes_come_from_the_caller_from_labels_of_costs_or_from_y():
    y = np.array(["b", "a"])
    frame = pd.DataFrame(np.ones((2, 3)), columns=list("cab"))

    assert find_classes(y, ["a", "b", "d"], frame, None).tolist() == ["a", "b", "d"]
    assert find_classes(y, None, frame, None).tolist() == ["a", "b", "c"]
    assert find_classes(y, None, None, frame).tolist() == ["a", "b", "c"]
    assert find_classes(y, None, np.ones((2, 2)), None).tolist() == ["a", "b"]


@pytest.mark.parametrize("classes", [["b", "a"], ["a", "a", "b"], [["a"], ["b"]]])
def test_classes_must_be_sorted(classes):
    with pytest.raises(ValueError, match="each label once, in sorted order.*DataFrame"):
        find_classes(np.array(["a", "b"]), classes, None, None)


def test_a_single_class_is_refused():
    with pytest.raises(ValueError, match=r"1 class only, \['a'\]; .* classes="):
        find_classes(np.array(["a", "a"]), None, None, None)


def test_the_caller_may_not_name_a_single_class():
    with pytest.raises(ValueError, match=r"classes=\[0\] holds 1 class only"):
        find_classes(np.array([0, 0]), [0], None, None)


def test_costs_have_one_source():
    classes = np.arange(3)
    with pytest.raises(ValueError, match="both cost and cost_matrix; expected one source"):
        resolve_costs(MATRIX[LABEL], MATRIX, LABEL, classes)

    assert resolve_costs(MATRIX[LABEL], None, LABEL, classes)[1] is False
    np.testing.assert_array_equal(resolve_costs(None, MATRIX, LABEL, classes)[0], MATRIX)
    np.testing.assert_array_equal(resolve_costs(None, None, LABEL, classes)[0], 1 - np.eye(3))


LABELS = np.array(["cat", "cow", "dog"])


def test_a_transposed_matrix_warns_with_the_labels_in_their_order():
    matrix = np.array([[0.0, 9, 9], [0, 0.5, 9], [0, 0, 0.5]])
    label = np.array([0, 1, 2, 2])

    shown = r"of class 'cow' \(100%\), 'dog' \(100%\)\..*transposed.*\['cat', 'cow', 'dog'\]"
    with pytest.warns(UserWarning, match=shown):
        warn_if_truth_is_dear(resolve_costs(None, matrix, label, LABELS), label, LABELS)
    with pytest.warns(UserWarning, match=shown):
        warn_if_truth_is_dear(resolve_costs(matrix[label], None, label, LABELS), label, LABELS)


def test_a_wrong_sign_for_a_rare_class_warns():
    label = np.array([0] * 99 + [1])
    matrix = np.array([[0.0, 5], [-300, 0]])

    with pytest.warns(UserWarning, match=r"class 'cow' \(100%\)\. .*wrong sign"):
        warn_if_truth_is_dear(resolve_costs(None, matrix, label, LABELS[:2]), label, LABELS[:2])


def test_few_rows_of_a_class_may_be_cheaper_as_another(recwarn):
    label = np.repeat([0, 1], 5)
    cost = np.where(np.arange(2) == label[:, np.newaxis], 5.0, 20.0)
    cost[5:7] = [3, 5]  # frauds of less than an alert costs
    warn_if_truth_is_dear(resolve_costs(cost, None, label, LABELS[:2]), label, LABELS[:2])

    assert not recwarn.list


@pytest.mark.parametrize("matrix", [MATRIX, -10 * np.eye(3), 1 - np.eye(3), np.ones((3, 3))])
def test_costs_of_mistakes_and_profits_of_hits_do_not_warn(matrix, recwarn):
    label = np.array([0, 1, 2, 2])

    warn_if_truth_is_dear(resolve_costs(None, matrix, label, LABELS), label, LABELS)
    warn_if_truth_is_dear(resolve_costs(matrix[label], None, label, LABELS), label, LABELS)

    assert not recwarn.list


def test_the_message_names_a_filter_that_works():
    label = np.array([0, 1, 2])
    costs = resolve_costs(None, np.eye(3), label, LABELS)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "The true class is not the")
        warn_if_truth_is_dear(costs, label, LABELS)


# --- ordered categories -------------------------------------------------------------------

GRADES = ["low", "medium", "high"]


@pytest.mark.parametrize("model", [small_mlp(), BayesMinimumRiskClassifier()])
def test_a_matrix_without_labels_for_ordered_categories_warns(model, recwarn):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = pd.Series(pd.Categorical.from_codes(np.arange(60) % 3, GRADES, ordered=True))

    with pytest.warns(UserWarning, match="ordered categories, .'low', 'medium', 'high'") as warned:
        model.set_params(cost_matrix=ordinal_cost_matrix(3)).fit(X, y)
    assert warned[0].filename == __file__
    recwarn.clear()
    for cost_matrix, labels in [
        (ordinal_cost_matrix(GRADES), y),
        (ordinal_cost_matrix(3), y.astype(str)),
        (ordinal_cost_matrix(3), y.cat.rename_categories(["a", "b", "c"])),
        (None, y),
    ]:
        model.set_params(cost_matrix=cost_matrix).fit(X, labels)
    assert not [w for w in recwarn if "ordered categories" in str(w.message)]
