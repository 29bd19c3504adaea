from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.metrics import mean_cost
from auxcst_sklearn.plotting import CostThresholdDisplay

from_estimator = CostThresholdDisplay.from_estimator
from_predictions = CostThresholdDisplay.from_predictions
MATRIX = np.array([[1.0, 6.0], [40.0, 3.0]])  # tn, fp; fn, tp


@pytest.fixture(scope="module")
def fraud():
    """Labels, probabilities with ties, weights and a cost matrix for each row."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    p = np.round(np.clip(0.3 * y + rng.uniform(0, 0.7, 200), 0, 1), 2)
    amount = rng.lognormal(2, 1, 200)
    cost = binary_cost_matrices(fp_cost=5, tp_cost=4, fn_cost=amount, classes=[0, 1], pos_label=1)
    return y, p, rng.uniform(0.1, 2, 200), cost.values


def paid(y, positive, cost, weight):
    """Mean cost and share of positives, one row at a time."""
    costs = [cost[i, y[i], int(positive[i])] for i in range(len(y))]
    return np.average(costs, weights=weight), np.average(positive, weights=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["matrix", "matrices", "rows"])
def test_each_threshold_is_exact(fraud, kind, weighted):
    y, p, weight, cost = fraud
    weight = weight if weighted else np.ones(len(y))
    if kind == "matrix":
        cost = np.tile(MATRIX, (len(y), 1, 1))
    costs = {
        "matrix": {"cost_matrix": MATRIX},
        "matrices": {"cost": cost},
        "rows": {"cost": cost[np.arange(len(y)), y]},
    }[kind]

    display = from_predictions(y, p, sample_weight=weight if weighted else None, **costs)

    np.testing.assert_array_equal(display.thresholds, [*sorted(set(p)), np.inf])
    by_hand = np.array([paid(y, p >= t, cost, weight) for t in display.thresholds])
    np.testing.assert_allclose(display.mean_cost, by_hand[:, 0])
    np.testing.assert_allclose(display.alert_rate, by_hand[:, 1], atol=1e-12)
    best = by_hand[:, 0].argmin()
    assert display.best_threshold == display.thresholds[best]
    assert (display.best_cost, display.best_alert_rate) == pytest.approx(tuple(by_hand[best]))
    if kind == "rows":
        assert display.bayes_cost is display.bayes_threshold is display.bayes_line_ is None
        return
    expected = np.stack([1 - p, p], axis=1)[:, np.newaxis] @ cost
    bayes = paid(y, expected[:, 0, 1] < expected[:, 0, 0], cost, weight)
    assert (display.bayes_cost, display.bayes_alert_rate) == pytest.approx(bayes)


def test_the_bayes_threshold_of_one_matrix(fraud):
    y, p, *_ = fraud
    display = from_predictions(y, p, cost_matrix=MATRIX)

    assert display.bayes_threshold == pytest.approx((6 - 1) / (6 - 1 + 40 - 3))
    assert set(display.bayes_line_.get_xdata()) == {display.bayes_threshold}
    at = np.searchsorted(display.thresholds, display.bayes_threshold)
    assert display.bayes_cost == pytest.approx(display.mean_cost[at])
    assert display.bayes_alert_rate == pytest.approx(display.alert_rate[at])


def test_each_row_has_a_bayes_threshold_of_its_own(fraud):
    y, p, _, cost = fraud
    display = from_predictions(y, p, cost=cost)

    own = 5 / (5 + cost[:, 1, 0] - 4)
    assert display.bayes_threshold is None
    assert display.bayes_alert_rate == pytest.approx(np.mean((p > own) & (own > 0)))
    assert set(display.bayes_line_.get_ydata()) == {display.bayes_cost}
    assert "for each sample" in display.legend_.get_texts()[0].get_text()


def test_costs_by_which_the_positive_class_is_never_worth_it(fraud):
    y, p, *_ = fraud
    above = from_predictions(y, p, cost_matrix=[[0, 1], [1, 1.5]])
    nowhere = from_predictions(y, p, cost_matrix=[[0, 1], [1, 5]])

    assert (above.bayes_threshold, nowhere.bayes_threshold) == (2, None)
    for display in (above, nowhere):
        assert display.bayes_alert_rate == display.best_alert_rate == 0
        assert display.bayes_cost == pytest.approx(display.best_cost)
        assert display.best_threshold == np.inf
        assert "threshold above all" in display.legend_.get_texts()[-1].get_text()


def test_texts_need_the_name_of_the_positive_class(fraud):
    y, p, _, cost = fraud
    text = np.where(y == 1, "fraud", "good")
    flipped = np.asarray(cost)[:, ::-1, ::-1]  # "fraud" comes first

    with pytest.raises(ValueError, match="pos_label=None, but the classes"):
        from_predictions(text, p, cost=flipped)
    with pytest.raises(ValueError, match="pos_label='bad' is not among"):
        from_predictions(text, p, cost=flipped, pos_label="bad")
    found = from_predictions(text, p, cost=flipped, pos_label="fraud")

    numbers = from_predictions(y, p, cost=cost)
    np.testing.assert_allclose(found.mean_cost, numbers.mean_cost)
    assert found.bayes_cost == pytest.approx(numbers.bayes_cost)
    assert found.ax_.get_xlabel() == "threshold on the probability of fraud"


def test_an_estimator_with_its_own_costs_and_with_known_ones(fraud):
    y, p, _, cost = fraud
    X, text = p[:, np.newaxis], np.where(y == 1, "fraud", "good")
    M = pd.DataFrame(MATRIX, index=["good", "fraud"], columns=["good", "fraud"])
    own = BayesMinimumRiskClassifier(LogisticRegression(), cost_matrix=M)
    model = make_pipeline(StandardScaler(), own).fit(X, text)

    display = from_estimator(model, X, text, pos_label="fraud")
    assert display.bayes_cost == pytest.approx(-model.score(X, text))
    assert display.bayes_alert_rate == np.mean(model.predict(X) == "fraud")

    flipped = np.asarray(cost)[:, ::-1, ::-1]
    known = from_estimator(model, X, text, cost=flipped, pos_label="fraud")
    step = model[-1]
    decided = step.predict(model[:-1].transform(X), cost=flipped)
    assert known.bayes_cost == pytest.approx(mean_cost(text, decided, cost=flipped))


def test_the_curve_is_drawn_from_all_positive_to_none(fraud):
    y, p, *_ = fraud
    display = from_predictions(y, p, cost_matrix=MATRIX)

    x, cost = display.line_.get_data()
    assert (x[0], x[-1]) == (0, 1)
    costs = np.tile(MATRIX, (200, 1, 1))
    all_positive, none = (paid(y, np.full(200, v), costs, None)[0] for v in (1, 0))
    assert (cost[0], cost[-1]) == pytest.approx((all_positive, none))
    assert display.line_.get_drawstyle() == "steps-pre"


def test_the_axis_on_top_has_the_share_at_the_thresholds_below(fraud):
    y, p, *_ = fraud
    display = from_predictions(y, p, cost_matrix=MATRIX)

    display.figure_.canvas.draw()
    axis = display.rate_axis_.xaxis

    np.testing.assert_allclose(axis.get_majorticklocs(), display.ax_.get_xticks())
    shown = [float(label.get_text().rstrip(" %")) for label in axis.get_majorticklabels()]
    shares = [100 * (p >= place).mean() for place in axis.get_majorticklocs()]
    assert shown == pytest.approx(shares, abs=1)


def test_thresholds_on_a_logarithmic_axis(fraud):
    y, p, *_ = fraud
    some = np.where(p < 0.3, 0.0, p)
    _, ax = plt.subplots()

    display = from_predictions(y, some, cost_matrix=MATRIX, ax=ax, xscale="log")

    assert display.ax_ is ax
    assert ax.get_xlim() == (some[some > 0].min(), 1)
    assert display.rate_axis_.xaxis.get_major_formatter()(
        0.5, 0
    ) == f"{(some >= 0.5).mean():.0%}".replace("%", " %")
    none = from_predictions(y, 0 * p, cost_matrix=MATRIX, xscale="log")
    assert none.ax_.get_xlim() == (0.5, 1)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_proba": [0.1, 0.5, 1.1]}, r"y_proba has 1 of 3 rows such as \[1.1\]"),
        ({"y_proba": [0.1, 0.5, np.nan]}, "expected probabilities"),
        ({"y_proba": [0.1, 0.5]}, "inconsistent numbers of samples"),
        ({"y_proba": np.eye(3)[:, :2]}, r"shape \(3, 2\); expected \(3,\), a row for each .*le\."),
        ({"y_true": [0, 1, 2]}, r"shape \(2, 2\); expected \(3, 3\)"),
        ({"y_true": [0, 0, 0]}, "without samples in classes="),
        ({"cost_matrix": 1 - np.eye(3), "y_true": [0, 1, 2]}, "two classes, but there are .0, 1"),
        ({"cost_matrix": None}, "neither cost nor cost_matrix"),
        ({"pos_label": 3}, "pos_label=3 is not among"),
        ({"pos_label": np.array([0, 1])}, "pos_label=.* is not among"),
    ],
)
def test_mistakes_are_named(change, message):
    arguments = {"y_true": [0, 1, 0], "y_proba": [0.1, 0.5, 0.2], "cost_matrix": MATRIX}

    with pytest.raises(ValueError, match=message):
        from_predictions(**{**arguments, **change})


def test_a_class_that_does_not_occur_can_be_named():
    display = from_predictions([0, 0], [0.2, 0.4], cost_matrix=MATRIX, classes=[0, 1])

    assert display.mean_cost.tolist() == pytest.approx([6, 3.5, 1])


COARSE = {
    "neighbours": KNeighborsClassifier(5),
    "forest": RandomForestClassifier(10, max_depth=3, random_state=0),
    "tree": DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
}


@pytest.mark.parametrize("decisions", [None, ["pass", "stop"], ["stop", "pass"]], ids=str)
@pytest.mark.parametrize("costs", [[[0, 1], [4, 0]], [[0, 1], [1, 0]], [[0, 0], [4, 0]]], ids=str)
@pytest.mark.parametrize("classifier", COARSE)
def test_where_probabilities_tie_displays_decide_as_models(classifier, costs, decisions):
    """Few distinct probabilities are often at the threshold, which may be 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = (X[:, 0] + rng.normal(size=600) > 1).astype(int)
    if decisions == ["stop", "pass"] and costs == [[0, 0], [4, 0]]:
        pytest.skip("the first decision is the cheaper one for both classes")
    costs = np.array(costs, float)[:, :: -1 if decisions and decisions[0] == "stop" else 1]
    model = BayesMinimumRiskClassifier(COARSE[classifier], cost_matrix=costs, decisions=decisions)
    model.fit(X[:300], y[:300])
    X, y = X[300:], y[300:]
    chosen, p = model.decide(X), model.predict_proba(X)[:, 1]
    alerts = (chosen == (1 if decisions is None else "stop")).mean()
    each = np.broadcast_to(costs, (300, 2, 2))
    for pos_label in (0, 1):
        for given in ({"cost_matrix": costs}, {"cost": each}):
            display = from_estimator(model, X, y, **given, pos_label=pos_label)
            assert display.bayes_cost == pytest.approx(-model.score(X, y))
            assert display.bayes_alert_rate == pytest.approx(alerts if pos_label else 1 - alerts)
            if decisions is None:
                of_p = from_predictions(y, p if pos_label else 1 - p, **given, pos_label=pos_label)
                assert of_p.bayes_alert_rate == display.bayes_alert_rate


def test_of_two_decisions_the_one_for_the_positive_class_is_above_the_threshold():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = (X[:, 0] > 0).astype(int)
    matrix = np.array([[0.0, 1.0], [4.0, 0.0]])
    of_classes = BayesMinimumRiskClassifier(cost_matrix=matrix).fit(X, y)
    expected = from_estimator(of_classes, X, y)
    named = {"cost_matrix": matrix[:, ::-1], "decisions": ["stop", "pay"]}
    rule = BayesMinimumRiskClassifier(**named).fit(X, y)
    found = from_estimator(rule, X, y)

    np.testing.assert_array_equal(found.mean_cost, expected.mean_cost)
    assert found.bayes_threshold == expected.bayes_threshold == 0.2
    costs = np.array([[0.0, 1.0], [3.0, 4.0]])
    always = BayesMinimumRiskClassifier(cost_matrix=costs, decisions=["stop", "pay"]).fit(X, y)
    with pytest.raises(ValueError, match="'stop' is the cheaper decision for both classes"):
        from_estimator(always, X, y)
