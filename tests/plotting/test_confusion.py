from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs import cost_vectors, ordinal_cost_matrix
from auxcst_sklearn.metrics import cost_difference, mean_cost
from auxcst_sklearn.plotting import CostConfusionDisplay, CostThresholdDisplay

COST_MATRIX = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])


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


def test_cells_are_sums_of_sample_costs():
    y_true, y_pred, rng = predictions()
    cost, weight = rng.uniform(size=(60, 3)), rng.uniform(size=60)
    display = CostConfusionDisplay.from_predictions(y_true, y_pred, cost=cost, sample_weight=weight)
    expected = paid_cells(y_true, y_pred, cost, "abc", weight)
    np.testing.assert_allclose(display.cost, expected)
    np.testing.assert_allclose(
        display.counts, paid_cells(y_true, y_pred, np.ones((60, 3)), "abc", weight)
    )
    assert display.total_cost == pytest.approx(expected.sum())
    assert display.mean_cost == pytest.approx(
        mean_cost(y_true, y_pred, cost=cost, sample_weight=weight)
    )
    np.testing.assert_allclose(display.im_.get_array(), expected)


def test_cost_matrix_and_class_order():
    y_true, y_pred, _ = predictions(classes=("a", "c"))
    frame = pd.DataFrame(COST_MATRIX, index=list("cba"), columns=list("cba"))
    display = CostConfusionDisplay.from_predictions(y_true, y_pred, cost_matrix=frame)
    costs = COST_MATRIX[["cba".index(label) for label in y_true]]
    np.testing.assert_allclose(display.cost, paid_cells(y_true, y_pred, costs, "cba"))
    assert display.counts[1].sum() == 0
    assert [t.get_text() for t in display.ax_.get_yticklabels()] == ["c", "b", "a"]


def test_costs_of_the_estimator_itself(search, data):
    X, y = data
    display = CostConfusionDisplay.from_estimator(search, X, y)
    y_pred = search.predict(X)
    np.testing.assert_allclose(display.cost, paid_cells(y, y_pred, COST_MATRIX[y], [0, 1, 2]))
    assert display.mean_cost == pytest.approx(-search.score(X, y))
    assert display.ax_.get_title() == (
        f"total cost {display.total_cost:.0f}, mean {display.mean_cost:.3g}"
    )
    given = CostConfusionDisplay.from_estimator(search, X, y, cost=np.ones((90, 3)))
    np.testing.assert_array_equal(given.cost, display.counts)
    other = CostConfusionDisplay.from_estimator(search, X, y, cost_matrix=2 * COST_MATRIX)
    np.testing.assert_allclose(other.cost, 2 * display.cost)


def test_classes_are_in_the_order_of_labelled_costs(data):
    X, y = data
    names = np.array(["low", "medium", "high"])
    model = GaussianNB().fit(X, names[y % 3])
    matrix = ordinal_cost_matrix(list(names))

    display = CostConfusionDisplay.from_estimator(model, X, names[y % 3], cost_matrix=matrix)
    plain = CostConfusionDisplay.from_estimator(
        model,
        X,
        names[y % 3],
        cost_matrix=matrix.values[np.ix_(np.argsort(names), np.argsort(names))],
    )

    assert list(display.display_labels) == list(names)
    order = np.argsort(names)
    np.testing.assert_array_equal(plain.cost, display.cost[np.ix_(order, order)])
    np.testing.assert_array_equal(plain.counts, display.counts[np.ix_(order, order)])


GRADES = ["low", "medium", "high"]


def test_labels_are_the_order_of_the_axes(data):
    X, y = data
    graded = np.array(GRADES)[y]
    model = GaussianNB().fit(X, graded)
    matrix = np.arange(9.0).reshape(3, 3)  # rows and columns high, low, medium
    plain = CostConfusionDisplay.from_estimator(model, X, graded, cost_matrix=matrix)
    frame = pd.DataFrame(matrix, index=sorted(GRADES), columns=sorted(GRADES))

    for cost_matrix in (matrix, frame):
        display = CostConfusionDisplay.from_estimator(
            model,
            X,
            graded,
            cost_matrix=cost_matrix,
            labels=GRADES,
            display_labels=["1: low", "2: medium", "3: high"],
        )
        order = [1, 2, 0]
        np.testing.assert_array_equal(display.cost, plain.cost[np.ix_(order, order)])
        np.testing.assert_array_equal(display.counts, plain.counts[np.ix_(order, order)])
        assert display.counts[0].sum() == (graded == "low").sum()
        ticks = [tick.get_text() for tick in display.ax_.get_yticklabels()]
        assert ticks == ["1: low", "2: medium", "3: high"]
    assert plain.display_labels.tolist() == sorted(GRADES)
    for wrong in (GRADES[:2], [*GRADES, "high"]):
        with pytest.raises(ValueError, match=r"labels=.* expected each of the classes .* once"):
            CostConfusionDisplay.from_predictions(graded, graded, cost_matrix=matrix, labels=wrong)


@pytest.mark.parametrize(
    ("classes", "names"),
    [
        (["low", "medium", "high"], GRADES),
        (["low", "medium", "high"], ["Low", "Medium", "High"]),
        ([0, 1, 2], [2, 1, 0]),
        ([0, 1, 2], ["1", "0", "2"]),
        ([False, True], ["True", "False"]),
    ],
)
@pytest.mark.parametrize("labelled", [False, True])
def test_names_that_permute_the_labels_are_refused(classes, names, labelled):
    classes = sorted(classes)
    matrix = 1 - np.eye(len(classes))
    if labelled:
        matrix = pd.DataFrame(matrix, index=classes, columns=classes)
    y = np.array(classes)
    with pytest.raises(ValueError, match="are the labels .* in another order, .* pass labels="):
        CostConfusionDisplay.from_predictions(y, y, cost_matrix=matrix, display_labels=names)
    model = GaussianNB().fit(np.arange(len(y) * 2)[:, np.newaxis], np.repeat(y, 2))
    with pytest.raises(ValueError, match="in another order"):
        CostConfusionDisplay.from_estimator(
            model, [[0.0]], y[:1], cost_matrix=matrix, display_labels=names
        )
    for fitting in (classes, [str(label) for label in classes], range(1, len(classes) + 1)):
        CostConfusionDisplay.from_predictions(y, y, cost_matrix=matrix, display_labels=fitting)


def test_names_in_the_order_of_a_frame_are_its_labels():
    frame = pd.DataFrame(1 - np.eye(3), index=GRADES, columns=GRADES)
    y = np.array(GRADES)
    given = CostConfusionDisplay.from_predictions(
        y, y, cost_matrix=frame, display_labels=["Low", "Medium", "High"]
    )
    assert given.ax_.get_xticklabels()[2].get_text() == "High"
    with pytest.raises(ValueError, match="in another order"):
        CostConfusionDisplay.from_predictions(
            y, y, cost_matrix=frame, display_labels=sorted(GRADES)
        )


def test_classifier_without_costs_needs_some(data):
    X, y = data
    classifier = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="neither cost nor cost_matrix"):
        CostConfusionDisplay.from_estimator(classifier, X, y)
    display = CostConfusionDisplay.from_estimator(classifier, X, y, cost_matrix=COST_MATRIX)
    assert display.mean_cost == pytest.approx(
        mean_cost(y, classifier.predict(X), cost_matrix=COST_MATRIX)
    )


@pytest.mark.parametrize(("normalize", "axis"), [("all", None), ("true", 1), ("pred", 0)])
def test_shares_add_up_to_a_hundred(normalize, axis):
    cost = np.array([[0.0, 2.0, 1.0], [4.0, 0.0, 3.0], [6.0, 5.0, 0.0]])
    display = CostConfusionDisplay(cost, np.ones((3, 3))).plot(normalize=normalize)
    shown = display.im_.get_array()
    np.testing.assert_allclose(shown.sum(axis=axis), 100)
    np.testing.assert_allclose(shown, 100 * cost / cost.sum(axis=axis, keepdims=True))
    np.testing.assert_array_equal(display.cost, cost)


def test_shares_of_nothing_are_zero():
    cost = np.array([[0.0, 1.0], [0.0, 0.0]])
    display = CostConfusionDisplay(cost, np.ones((2, 2))).plot(normalize="true")
    np.testing.assert_array_equal(display.im_.get_array(), [[0, 100], [0, 0]])


def test_negative_costs_have_colours_around_zero_and_no_shares():
    display = CostConfusionDisplay(np.array([[-4.0, 1.0], [2.0, 0.0]]), np.ones((2, 2))).plot()
    assert display.im_.get_clim() == (-4, 4)
    with pytest.raises(ValueError, match="some costs are negative, down to -4"):
        display.plot(normalize="all")


def test_numbers_stand_where_something_was_paid():
    display = CostConfusionDisplay(np.array([[0.0, 64.58], [0.61, 0.0]]), np.ones((2, 2))).plot()
    assert display.text_[0, 0].get_text() == "0.0\nn = 1"
    texts = [display.text_[0, 1].get_text(), display.text_[1, 0].get_text()]
    assert texts == ["64.6\nn = 1", "0.6\nn = 1"]
    assert display.plot(include_values=False).text_ is None
    many = CostConfusionDisplay(np.eye(100), np.eye(100))
    many.plot(include_values=True, max_classes=None)
    assert many.text_[99, 99].get_text() == "1"


def test_counts_stand_below_the_costs_wherever_there_are_samples():
    cost, counts = np.array([[0.0, 64.58], [0, 0.61]]), np.array([[1200.0, 3], [0, 2.5]])
    display = CostConfusionDisplay(cost, counts).plot()

    texts = [[text and text.get_text() for text in row] for row in display.text_]
    assert texts == [["0.0\nn = 1,200", "64.6\nn = 3"], [None, "0.6\nn = 2.5"]]
    shares = display.plot(normalize="all").text_[0, 1].get_text()
    assert shares == "99.1\nn = 3"


def test_many_classes_have_few_labels_and_no_numbers():
    names = [f"class {i}" for i in range(100)]
    display = CostConfusionDisplay(np.ones((100, 100)), np.ones((100, 100)), display_labels=names)
    display.plot(max_classes=None)
    assert display.text_ is None
    labels = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert 5 <= len(labels) <= 25
    assert labels == [names[int(place)] for place in display.ax_.get_xticks()]


def test_small_axes_of_one_figure():
    fig, axes = plt.subplots(2, 3, figsize=(6, 4))
    for ax in axes.flat:
        display = CostConfusionDisplay(np.ones((10, 10)), np.ones((10, 10))).plot(ax)
        assert display.ax_ is ax
        assert display.text_ is None
    assert display.figure_ is fig
    assert len(fig.axes) == 12
    assert len(display.plot(axes[0, 0], colorbar=False).figure_.axes) == 12


def test_ten_classes_are_all_named_and_numbered():
    display = CostConfusionDisplay(np.full((10, 10), 12.3), np.ones((10, 10))).plot()
    assert len(display.ax_.get_xticks()) == 10
    assert display.text_[9, 9].get_text() == "12.3\nn = 1"
    costs_alone = CostConfusionDisplay(np.full((10, 10), 12.3), np.full((10, 10), 1e7)).plot()
    assert costs_alone.text_[9, 9].get_text() == "12.3"


def test_title_and_colour_bar_have_the_unit():
    display = CostConfusionDisplay(np.array([[0.0, 9], [1, 0]]), np.ones((2, 2))).plot(unit="EUR")
    assert display.ax_.get_title() == "total cost 10 EUR, mean 2.5 EUR"
    assert display.figure_.axes[1].get_ylabel() == "cost paid (EUR)"


def test_names_must_fit_the_classes():
    with pytest.raises(ValueError, match="display_labels has 3 names"):
        CostConfusionDisplay(np.ones((2, 2)), np.ones((2, 2)), display_labels=list("abc"))


def test_unknown_label():
    with pytest.raises(ValueError, match="y_true holds labels that are not among the classes"):
        CostConfusionDisplay.from_predictions([0, 7], [0, 1], cost=np.ones((2, 2)), classes=[0, 1])


def test_inputs_are_left_alone(data, network):
    X, y = data
    cost = COST_MATRIX[y]
    copies = X.copy(), y.copy(), cost.copy()
    classifier = network(cost_matrix=None).fit(X, y, cost=cost)
    CostConfusionDisplay.from_estimator(classifier, X, y, cost=cost, normalize="all")
    for array, copy in zip((X, y, cost), copies):
        np.testing.assert_array_equal(array, copy)


@pytest.mark.parametrize("y", [[0, 1, 1], np.array([0, 1, 1], object), pd.array([0, 1, 1])])
def test_labels_that_mean_cost_takes(y):
    matrix = pd.DataFrame([[0, 1], [5, 0]], index=["0", "1"], columns=["0", "1"])
    confusion = CostConfusionDisplay.from_predictions(y, [0, 0, 1], cost_matrix=matrix)
    np.testing.assert_array_equal(confusion.cost, [[0, 0], [5, 0]])
    np.testing.assert_array_equal(cost_vectors(y, matrix), [[0, 1], [5, 0], [5, 0]])
    threshold = CostThresholdDisplay.from_predictions(y, [0.1, 0.6, 0.7], cost_matrix=matrix)
    assert threshold.best_cost == 0


@pytest.mark.parametrize(
    "use",
    [
        lambda y: CostConfusionDisplay.from_predictions(y, ["a", "b", "b"], cost_matrix=np.eye(2)),
        lambda y: CostThresholdDisplay.from_predictions(y, [0, 0.5, 1], cost_matrix=np.eye(2)),
        lambda y: cost_difference(y, ["a"] * 3, ["b"] * 3, cost_matrix=np.eye(2)),
    ],
)
@pytest.mark.parametrize("y", [["a", None, "b"], [0.0, np.nan, 1.0]])
def test_missing_labels_have_the_message_of_mean_cost(use, y):
    with pytest.raises(ValueError, match="Input y_true contains NaN or None for 1 of 3 rows"):
        use(y)


DECIDED = pd.DataFrame(
    [[0.0, 2, 4, 0.9], [3, 0, 1, 0.2], [8, 1, 0, 0.6]], [0, 1, 2], ["0", "1", "2", "refer"]
)


@pytest.mark.parametrize("as_array", [False, True])
def test_decisions_are_the_columns(data, as_array):
    X, y = data
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=DECIDED).fit(X, y)
    given = {"cost_matrix": DECIDED.to_numpy() if as_array else DECIDED}

    display = CostConfusionDisplay.from_estimator(model, X, y, labels=[2, 0, 1], **given)

    decided = model.decide(X)
    assert "refer" in decided
    counts = pd.crosstab(y, decided).reindex([2, 0, 1], columns=DECIDED.columns, fill_value=0)
    np.testing.assert_array_equal(display.counts, counts)
    np.testing.assert_allclose(display.cost, counts * DECIDED.loc[[2, 0, 1]])
    assert display.mean_cost == pytest.approx(-model.score(X, y))
    ticks = display.ax_.get_yticklabels(), display.ax_.get_xticklabels()
    assert [[t.get_text() for t in part] for part in ticks] == [["2", "0", "1"], [*DECIDED]]
    assert display.ax_.get_xlabel() == "decision"
    display.figure_.draw_without_rendering()


def test_the_index_of_the_costs_orders_the_rows(data):
    X, y = data
    costs = DECIDED.loc[[2, 0, 1]]
    model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=costs).fit(X, y)

    for display in (
        CostConfusionDisplay.from_estimator(model, X, y),
        CostConfusionDisplay.from_predictions(y, model.decide(X), cost_matrix=costs),
    ):
        assert list(display.display_labels) == [2, 0, 1]
        np.testing.assert_array_equal(display.counts.sum(axis=1), np.bincount(y)[[2, 0, 1]])


def test_classes_as_decisions_of_a_classifier_without_decisions(data):
    X, y = data
    model = GaussianNB().fit(X, y)

    display = CostConfusionDisplay.from_estimator(model, X, y, cost_matrix=DECIDED)

    np.testing.assert_array_equal(display.counts[:, :3], pd.crosstab(y, model.predict(X)))
    np.testing.assert_array_equal(display.counts[:, 3], 0)


def test_of_many_classes_those_of_the_costliest_cells_are_drawn():
    rng = np.random.default_rng(0)
    classes = [f"class {i:03d}" for i in range(150)]
    y = rng.integers(150, size=3000)
    pred = np.where(rng.random(3000) < 0.9, y, rng.integers(150, size=3000))
    pred[y == 7] = 99  # the costliest mistake
    names = np.array(classes)
    matrix = 1.0 - np.eye(150)
    display = CostConfusionDisplay.from_predictions(names[y], names[pred], cost_matrix=matrix)

    assert display.cost.shape == (150, 150)
    assert display.im_.get_array().shape == (30, 30)
    shown = [tick.get_text() for tick in display.ax_.get_yticklabels()]
    assert shown == sorted(shown)
    assert {"class 007", "class 099"} <= set(shown)
    assert "30 of 150 classes, with " in display.ax_.get_title()
    total = display.im_.get_array().sum()
    assert f"{100 * total / display.total_cost:.0f} % of the cost" in display.ax_.get_title()
    whole = display.plot(max_classes=None)
    assert whole.im_.get_array().shape == (150, 150)


def test_of_many_decisions_those_of_the_costliest_cells_are_drawn():
    y, decided = ["a", "b"] * 20, [f"d{i:02d}" for i in range(40)]
    display = CostConfusionDisplay.from_predictions(
        y, decided, cost_matrix=np.arange(80.0).reshape(2, 40), classes=["a", "b"],
        decisions=decided, max_classes=5,
    )  # fmt: skip
    assert display.im_.get_array().shape == (2, 5)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == decided[-9::2]
