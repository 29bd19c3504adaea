from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import CenteredNorm
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import confusion_matrix
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs import ordinal_cost_matrix
from auxcst_sklearn.metrics import mean_cost
from auxcst_sklearn.plotting import CostConfusionDisplay
from tests.plotting.conftest import COST_MATRIX

from_estimator = CostConfusionDisplay.from_estimator
from_predictions = CostConfusionDisplay.from_predictions
GRADES = ["low", "medium", "high"]
DECIDED = pd.DataFrame(
    [[0.0, 2, 4, 0.9], [3, 0, 1, 0.2], [8, 1, 0, 0.6]], [0, 1, 2], [0, 1, 2, "refer"]
)


def paid_cells(y_true, y_pred, costs, classes, weight=None):
    """Sum the costs of each cell, one sample at a time."""
    classes = list(classes)
    cells = np.zeros((len(classes), len(classes)))
    weight = np.ones(len(y_true)) if weight is None else weight
    for i, (t, p) in enumerate(zip(y_true, y_pred)):
        cells[classes.index(t), classes.index(p)] += weight[i] * costs[i, classes.index(p)]
    return cells


def predictions(n=60, classes=("a", "b", "c")):
    rng = np.random.RandomState(0)
    return rng.choice(classes, n), rng.choice(classes, n), rng


def names_of(ticks):
    return [tick.get_text() for tick in ticks]


def test_cells_are_sums_of_sample_costs():
    y_true, y_pred, rng = predictions()
    cost, weight = rng.uniform(size=(60, 3)), rng.uniform(size=60)
    display = from_predictions(y_true, y_pred, cost=cost, sample_weight=weight)
    expected = paid_cells(y_true, y_pred, cost, "abc", weight)
    np.testing.assert_allclose(display.confusion_matrix, expected)
    np.testing.assert_allclose(display.im_.get_array(), expected)


@pytest.mark.parametrize(("normalize", "axis"), [("all", None), ("true", 1), ("pred", 0)])
def test_normalized_costs_are_means(normalize, axis):
    y_true, y_pred, rng = predictions()
    cost, weight = rng.uniform(size=(60, 3)) - 0.2, rng.uniform(size=60)
    given = {"cost": cost, "sample_weight": weight}
    display = from_predictions(y_true, y_pred, normalize=normalize, **given)

    n = paid_cells(y_true, y_pred, np.ones((60, 3)), "abc", weight)
    expected = paid_cells(y_true, y_pred, cost, "abc", weight) / n.sum(axis=axis, keepdims=True)
    np.testing.assert_allclose(display.confusion_matrix, expected)
    if normalize == "all":
        assert expected.sum() == pytest.approx(mean_cost(y_true, y_pred, **given))


def test_a_class_without_samples_has_no_mean_cost():
    costs = {"cost_matrix": [[0, 1], [5, 0]], "classes": [0, 1]}
    display = from_predictions([0, 0], [0, 1], **costs, normalize="true")
    np.testing.assert_array_equal(display.confusion_matrix, [[0, 0.5], [0, 0]])
    with pytest.raises(ValueError, match="normalize='row'; expected"):
        from_predictions([0, 1], [0, 1], **costs, normalize="row")


def test_costs_of_the_estimator_itself(search, data):
    X, y = data
    y_pred = search.predict(X)
    paid = from_estimator(search, X, y).confusion_matrix
    np.testing.assert_allclose(paid, paid_cells(y, y_pred, COST_MATRIX[y], [0, 1, 2]))
    assert paid.sum() / len(y) == pytest.approx(-search.score(X, y))
    given = from_estimator(search, X, y, cost=np.ones((90, 3)))
    np.testing.assert_array_equal(given.confusion_matrix, confusion_matrix(y, y_pred))
    other = from_estimator(search, X, y, cost_matrix=2 * COST_MATRIX)
    np.testing.assert_allclose(other.confusion_matrix, 2 * paid)


def test_labels_are_the_order_of_the_axes(data):
    X, y = data
    graded = np.array(GRADES)[y]
    model = GaussianNB().fit(X, graded)
    matrix = ordinal_cost_matrix(GRADES, over_cost=3)
    plain = from_estimator(model, X, graded, cost_matrix=matrix, labels=sorted(GRADES))

    named = {"labels": GRADES, "display_labels": ["1", "2", "3"]}
    display = from_estimator(model, X, graded, cost_matrix=matrix, **named)

    order = np.ix_([1, 2, 0], [1, 2, 0])  # plain has high, low, medium
    np.testing.assert_array_equal(display.confusion_matrix, plain.confusion_matrix[order])
    assert names_of(display.ax_.get_yticklabels()) == ["1", "2", "3"]
    assert names_of(plain.ax_.get_xticklabels()) == sorted(GRADES)
    with pytest.raises(ValueError, match="labels contains labels that are not among the classes"):
        from_predictions(graded, graded, cost_matrix=matrix, labels=["none"])
    with pytest.raises(ValueError, match="y_true contains labels that are not among the classes"):
        from_predictions([0, 7], [0, 1], cost=np.ones((2, 2)), classes=[0, 1])
    some = from_estimator(model, X, graded, cost_matrix=matrix, labels=["medium", "high"])
    assert np.array_equal(some.confusion_matrix, plain.confusion_matrix[np.ix_([2, 0], [2, 0])])


def test_a_classifier_needs_costs_and_a_fit(data):
    X, y = data
    classifier = LogisticRegression()
    with pytest.raises(NotFittedError):
        from_estimator(classifier, X, y, cost_matrix=COST_MATRIX)
    with pytest.raises(ValueError, match="neither cost nor cost_matrix"):
        from_estimator(classifier.fit(X, y), X, y)


def test_values_stand_in_the_cells():
    display = CostConfusionDisplay(np.array([[0.0, 64.58], [1234.5, -0.611]])).plot()
    texts = [[text.get_text() for text in row] for row in display.text_]
    assert texts == [["0", "64.6"], ["1,234", "-0.611"]]
    assert display.plot(values_format=".1f").text_[0, 1].get_text() == "64.6"
    assert display.plot(text_kw={"size": 3}).text_[0, 1].get_size() == 3
    assert display.plot(include_values=False).text_ is None


def test_arguments_of_scikit_learns_display():
    fig, ax = plt.subplots()
    display = CostConfusionDisplay(np.array([[-4.0, 1], [2, 0]]))
    assert display.plot(ax=ax, colorbar=False).figure_ is fig
    assert len(fig.axes) == 1
    display.plot(cmap="RdBu_r", im_kw={"norm": CenteredNorm()})
    assert display.im_.get_clim() == (-4, 4)
    assert display.figure_.axes[1].get_ylabel() == "cost"


@pytest.mark.parametrize("as_array", [False, True])
def test_decisions_are_the_columns(data, as_array):
    X, y = data
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=DECIDED).fit(X, y)
    given = {"cost_matrix": DECIDED.to_numpy() if as_array else DECIDED}

    display = from_estimator(model, X, y, labels=[2, 0, 1], xticks_rotation=30, **given)

    decided = model.decide(X)
    assert "refer" in decided
    counts = [[np.sum((y == k) & (decided == d)) for d in DECIDED] for k in (2, 0, 1)]
    np.testing.assert_allclose(display.confusion_matrix, np.array(counts) * DECIDED.loc[[2, 0, 1]])
    assert names_of(display.ax_.get_yticklabels()) == ["2", "0", "1"]
    assert names_of(display.ax_.get_xticklabels()) == ["0", "1", "2", "refer"]
    assert display.ax_.get_xticklabels()[3].get_rotation() == 30
    assert display.ax_.get_xlabel() == "Decision"
    assert display.text_.shape == (3, 4)
    display.figure_.draw_without_rendering()


def test_the_index_of_the_costs_orders_the_rows(data):
    X, y = data
    costs = DECIDED.loc[[2, 0, 1]]
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=costs).fit(X, y)
    decided = model.decide(X)

    display = from_predictions(y, decided, cost_matrix=costs)

    assert list(display.display_labels) == [2, 0, 1]
    of_model = from_estimator(model, X, y)
    assert list(of_model.display_labels) == [2, 0, 1]
    np.testing.assert_array_equal(display.confusion_matrix, of_model.confusion_matrix)


def test_classes_as_decisions_of_a_classifier_without_decisions(data):
    X, y = data
    model = GaussianNB().fit(X, y)

    display = from_estimator(model, X, y, cost_matrix=DECIDED)

    paid = pd.crosstab(y, model.predict(X)) * DECIDED.to_numpy()[:, :3]
    np.testing.assert_allclose(display.confusion_matrix[:, :3], paid)
    np.testing.assert_array_equal(display.confusion_matrix[:, 3], 0)


def test_benefits_and_costs_differ_in_colour():
    y_true, y_pred, _ = predictions()
    shift = COST_MATRIX - np.diag([4.0, 1, 2])
    display = from_predictions(y_true, y_pred, cost_matrix=shift)
    plain = from_predictions(y_true, y_pred, cost_matrix=COST_MATRIX)

    low, high = display.im_.get_clim()
    assert low == -high == -np.abs(display.confusion_matrix).max()
    red, _, blue, _ = display.im_.cmap(display.im_.norm(display.confusion_matrix.min()))
    assert blue > red
    assert plain.im_.cmap.name == "Blues"


@pytest.mark.parametrize("name", ["classes", "y_pred", "decisions"])
def test_what_the_estimator_determines_cannot_be_passed(data, name):
    X, y = data
    model = LogisticRegression().fit(X, y)
    with pytest.raises(TypeError, match=rf"multiple values for keyword argument '{name}'"):
        from_estimator(model, X, y, cost_matrix=COST_MATRIX, **{name: y})


def test_grades_of_an_estimator_keep_the_order_of_the_costs():
    X = np.random.default_rng(0).normal(size=(90, 2))
    y = np.array(GRADES)[np.digitize(X[:, 0], [-0.4, 0.4])]
    M = ordinal_cost_matrix(GRADES)
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=M).fit(X, y)

    display = from_estimator(model, X, y)
    assert names_of(display.ax_.get_yticklabels()) == GRADES
    expected = paid_cells(y, model.predict(X), np.asarray(M)[[GRADES.index(g) for g in y]], GRADES)
    np.testing.assert_allclose(display.confusion_matrix, expected)
    chosen = from_estimator(model, X, y, labels=["high", "low"])
    assert names_of(chosen.ax_.get_xticklabels()) == ["high", "low"]
