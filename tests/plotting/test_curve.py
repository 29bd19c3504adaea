from __future__ import annotations

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.exceptions import FitFailedWarning, NotFittedError
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from auxcst_sklearn import CostSensitiveAuxMLPCV
from auxcst_sklearn.metrics import make_cost_scorer
from auxcst_sklearn.plotting import CostCurveDisplay

COST_MATRIX = np.array([[0.0, 1.0, 5.0], [2.0, 0.0, 1.0], [9.0, 3.0, 0.0]])
ALPHAS = [0.0, 0.2, 1.0]


def candidates(search, **fixed):
    """Costs over the folds of all candidates with exactly these values."""
    results = search.cv_results_
    folds = -np.array([results[f"split{k}_test_score"] for k in range(search.n_splits_)]).T
    return [
        cost
        for cost, params in zip(folds, results["params"])
        if all(params.get(f"costsensitiveauxmlp__{k}") == v for k, v in fixed.items())
    ]


def test_curves_of_a_search_are_the_best_of_the_other_parameters(search):
    display = CostCurveDisplay.from_search(search)
    folds = candidates(search)
    assert display.x_values == [*ALPHAS, None]
    assert display.hue_values == [1, 2, 3]
    for i, depth in enumerate([1, 2, 3]):
        for k, alpha in enumerate([*ALPHAS, None]):
            found = candidates(search, depth=depth, alpha=alpha)
            if (depth == 1) != (alpha is None):
                assert not found
                assert np.isnan(display.mean[i, k])
                assert np.isnan(display.spread[i, k])
                continue
            assert len(found) == 2
            best = min(found, key=np.mean)
            np.testing.assert_allclose(display.mean[i, k], best.mean())
            centred = np.array(list(folds)) - np.mean(folds, axis=0)
            errors = centred.std(axis=1, ddof=1) * np.sqrt(len(folds) / (len(folds) - 1) / 3)
            place = [np.array_equal(best, cost) for cost in folds].index(True)
            np.testing.assert_allclose(display.spread[i, k], errors[place])
    assert np.nanmin(display.mean) == pytest.approx(-search.best_score_)


def test_where_fixes_a_parameter(search):
    display = CostCurveDisplay.from_search(search, "alpha", "depth", where={"loss": "squared"})
    for i, depth in enumerate([2, 3], start=1):
        for k, alpha in enumerate(ALPHAS):
            (cost,) = candidates(search, depth=depth, alpha=alpha, loss="squared")
            assert display.mean[i, k] == pytest.approx(cost.mean())


def test_scores_can_be_drawn_as_they_are(search):
    costs = CostCurveDisplay.from_search(search)
    scores = CostCurveDisplay.from_search(search, negate=False)
    np.testing.assert_array_equal(scores.mean, -costs.mean)
    assert scores.ax_.get_ylabel() == "cross-validated score"


def test_depth_is_the_hue_where_it_was_searched(data, network):
    grid = {"alpha": [0.0, 0.5]}
    search = GridSearchCV(
        network(), grid, scoring=make_cost_scorer(cost_matrix=COST_MATRIX), cv=2
    ).fit(*data)
    display = CostCurveDisplay.from_search(search, x="alpha")
    assert display.hue_values == [None]
    assert display.legend_ is None
    with pytest.raises(ValueError, match="hue='depth' is not there"):
        CostCurveDisplay.from_search(search, x="alpha", hue="depth")
    deep = GridSearchCV(network(), {"depth": [1, 2]}, cv=2).fit(*data)
    assert CostCurveDisplay.from_search(deep, x="depth").hue_values == [None]


@pytest.mark.parametrize(
    ("scoring", "cost_matrix", "label", "sign"),
    [
        ("accuracy", COST_MATRIX, "accuracy", 1),
        ("neg_log_loss", COST_MATRIX, "neg_log_loss", 1),
        (make_scorer(accuracy_score), COST_MATRIX, "score", 1),
        (None, None, "score", 1),
        (None, COST_MATRIX, "cost", -1),
        (make_cost_scorer(cost_matrix=COST_MATRIX), None, "cost", -1),
    ],
)
def test_only_costs_are_drawn_as_costs(data, network, scoring, cost_matrix, label, sign):
    model = make_pipeline(Nystroem(n_components=5), network(cost_matrix=cost_matrix))
    search = GridSearchCV(model, {"costsensitiveauxmlp__alpha": [0.5]}, scoring=scoring, cv=2)
    display = CostCurveDisplay.from_search(search.fit(*data))
    assert display.ax_.get_ylabel() == f"cross-validated {label}"
    assert display.mean[0, 0] == sign * search.cv_results_["mean_test_score"][0]
    costs = CostCurveDisplay.from_search(search, negate=True)
    assert costs.ax_.get_ylabel() == "cross-validated cost"
    assert costs.mean[0, 0] == -search.cv_results_["mean_test_score"][0]


@pytest.mark.parametrize("cv", [None, 4])
def test_path_of_the_estimator_that_chooses_alpha(data, cv):
    X, y = data
    weight = np.random.RandomState(0).uniform(0.1, 3, size=len(y))
    model = CostSensitiveAuxMLPCV(
        [1.0, 0.0, 0.2], 2, 4, cv=cv, cost_matrix=COST_MATRIX, max_epochs=3, random_state=0
    ).fit(X, y, sample_weight=weight)
    display = CostCurveDisplay.from_search(make_pipeline(model), x="alpha")
    assert display.x_values == [0.0, 0.2, 1.0]
    assert display.x_values[display.mean[0].argmin()] == model.alpha_
    if cv:
        folds = StratifiedKFold(cv).split(X, np.searchsorted(model.classes_, y))
        share = [weight[test].sum() for _, test in folds]
        np.testing.assert_allclose(display.mean[0], model.mean_cost_path_ @ share / sum(share))
    kind = "4 folds" if cv else f"{model.n_networks} networks"
    assert display.caption == f"best: alpha {model.alpha_:g}\n± standard error over {kind}, paired"
    for wrong in ({"x": "depth"}, {"hue": "depth"}, {"where": {"alpha": 1}}, {"negate": False}):
        with pytest.raises(ValueError, match="expected x='alpha' and nothing else, got"):
            CostCurveDisplay.from_search(model, **wrong)


def test_estimators_without_results_of_a_search(data, network):
    with pytest.raises(TypeError, match="CostSensitiveAuxMLP is neither a search"):
        CostCurveDisplay.from_search(network().fit(*data))
    few = CostSensitiveAuxMLPCV([0, 1], 2, 4, max_epochs=1, random_state=0)
    with pytest.warns(UserWarning, match="Fewer than ten rows"):
        few.fit(data[0][:9], [0, 1, 2] * 3)
    with pytest.raises(ValueError, match="too few rows"):
        CostCurveDisplay.from_search(few)
    with pytest.raises(NotFittedError):
        CostCurveDisplay.from_search(CostSensitiveAuxMLPCV())


def test_drawn_curves_are_the_data(search):
    display = CostCurveDisplay.from_search(search)
    level, *curves = display.lines_
    assert set(level.get_ydata()) == {display.mean[0, -1]}
    for i, curve in enumerate(curves, start=1):
        np.testing.assert_array_equal(curve.get_xdata(), ALPHAS)
        np.testing.assert_array_equal(curve.get_ydata(), display.mean[i, :-1])
        heights = display.spread_[i].get_paths()[0].vertices[:, 1]
        assert heights.max() == pytest.approx((display.mean + display.spread)[i, :-1].max())
    assert len({line.get_color() for line in display.lines_}) == 3
    assert display.ax_.get_xlabel() == "alpha"
    assert display.ax_.get_ylabel() == "cross-validated cost"
    assert display.ax_.get_xscale() == "linear"
    assert display.legend_.get_title().get_text() == "depth"
    labels = [text.get_text() for text in display.legend_.get_texts()]
    assert labels == ["1 (no alpha)", "2", "3"]


def test_caption_names_the_best_of_all_parameters_and_what_bands_are(search):
    display = CostCurveDisplay.from_search(search)
    named = display.caption.split("\n")[0].removeprefix("best: ").split(", ")
    best = {k.rpartition("__")[-1]: v for k, v in search.best_params_.items()}
    assert sorted(named) == sorted(
        f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in best.items()
    )
    assert display.ax_.get_title().endswith("\n± standard error over 3 folds, paired")
    fixed = CostCurveDisplay.from_search(search, where={"loss": "squared", "depth": 3})
    assert "loss squared" in fixed.caption
    assert "depth 3" in fixed.caption
    _, ax = plt.subplots()
    ax.set_title("mine")
    assert display.plot(ax).ax_.get_title() == "mine"


def test_single_curve_has_no_legend(search):
    deep = {"depth": 3}
    display = CostCurveDisplay.from_search(search, hue=None, where=deep)
    assert display.hue_values == [None]
    assert display.legend_ is None
    assert len(display.lines_) == 1


def test_texts_are_set_side_by_side_in_the_order_of_the_grid(search):
    display = CostCurveDisplay.from_search(search, x="loss", hue="depth")
    assert display.x_values == ["squared", "one_sided"]
    labels = [label.get_text() for label in display.ax_.get_xticklabels()]
    assert labels == ["squared", "one_sided"]
    middle = np.mean([line.get_xdata() for line in display.lines_], axis=0)
    np.testing.assert_allclose(middle, [0, 1], atol=1e-12)
    best = min(np.mean(cost) for cost in candidates(search, depth=2, loss="one_sided"))
    assert display.mean[1, 1] == pytest.approx(best)


def test_hue_that_a_grid_leaves_out_has_the_value_of_the_estimator(data, network):
    grid = [{"alpha": [0.0, 0.5]}, {"alpha": [0.0], "depth": [3]}]
    search = GridSearchCV(
        network(depth=2), grid, scoring=make_cost_scorer(cost_matrix=COST_MATRIX), cv=2
    ).fit(*data)
    display = CostCurveDisplay.from_search(search)
    assert display.hue_values == [2, 3]
    np.testing.assert_allclose(display.mean[0], -search.cv_results_["mean_test_score"][:2])
    shallow = CostCurveDisplay.from_search(search, where={"depth": 2})
    np.testing.assert_array_equal(shallow.mean, display.mean[:1])


def test_none_is_a_value_where_it_was_searched(data, network):
    grid = {"aux_loss": [None, "squared"], "alpha": [0.5]}
    search = GridSearchCV(
        network(), grid, scoring=make_cost_scorer(cost_matrix=COST_MATRIX), cv=2
    ).fit(*data)
    by_x = CostCurveDisplay.from_search(search, x="aux_loss", hue=None)
    assert by_x.x_values == ["None", "squared"]
    by_hue = CostCurveDisplay.from_search(search, hue="aux_loss")
    labels = [text.get_text() for text in by_hue.legend_.get_texts()]
    assert sorted(labels) == ["None", "squared"]


def test_failed_candidates_are_left_out(data, network):
    search = GridSearchCV(
        network(),
        {"alpha": [-1, 0.0, 0.5]},
        scoring=make_cost_scorer(cost_matrix=COST_MATRIX),
        cv=2,
    )
    with pytest.warns((FitFailedWarning, UserWarning)):
        search.fit(*data)
    assert CostCurveDisplay.from_search(search, hue=None).x_values == [0.0, 0.5]
    with pytest.raises(ValueError, match="No candidate with a finite score"):
        CostCurveDisplay.from_search(search, hue=None, where={"alpha": -1})


def test_search_with_several_scorers(data):
    scorers = {
        "cost": make_cost_scorer(cost_matrix=COST_MATRIX),
        "accuracy": make_scorer(accuracy_score),
    }
    search = RandomizedSearchCV(
        LogisticRegression(), {"C": [0.01, 1.0]}, n_iter=2, scoring=scorers, refit="cost", cv=2
    ).fit(*data)
    cost = CostCurveDisplay.from_search(search, x="C", hue=None)
    assert cost.mean.min() == pytest.approx(-search.best_score_)
    accuracy = CostCurveDisplay.from_search(
        search, x="C", hue=None, metric="accuracy", negate=False
    )
    expected = np.sort(search.cv_results_["mean_test_accuracy"])
    np.testing.assert_allclose(np.sort(accuracy.mean[0]), expected)
    with pytest.raises(ValueError, match=r"metric='f1' .* \['cost', 'accuracy'\]"):
        CostCurveDisplay.from_search(search, x="C", hue=None, metric="f1")


def test_unknown_and_ambiguous_parameters_name_the_candidates(search, data):
    with pytest.raises(ValueError, match="x='width' is not there.*costsensitiveauxmlp__depth"):
        CostCurveDisplay.from_search(search, x="width")
    with pytest.raises(ValueError, match="hue='epochs' is not there"):
        CostCurveDisplay.from_search(search, hue="epochs")
    with pytest.raises(ValueError, match="where='tau' is not there"):
        CostCurveDisplay.from_search(search, where={"tau": 1})
    with pytest.raises(ValueError, match="matches where={'loss': 'softmin'}"):
        CostCurveDisplay.from_search(search, where={"loss": "softmin"})

    grid = {"nystroem__gamma": [0.1, 1.0], "svc__gamma": [0.1, 1.0]}
    kernels = make_pipeline(Nystroem(n_components=5, random_state=0), SVC())
    twice = GridSearchCV(
        kernels, grid, scoring=make_cost_scorer(cost_matrix=COST_MATRIX), cv=2
    ).fit(*data)
    with pytest.raises(ValueError, match="x='gamma' stands for each of .*nystroem__gamma"):
        CostCurveDisplay.from_search(twice, x="gamma", hue=None)
    display = CostCurveDisplay.from_search(twice, x="svc__gamma", hue="nystroem__gamma")
    assert display.mean.shape == (2, 2)
    assert display.ax_.get_xlabel() == "gamma"


def test_unfitted_search(network):
    with pytest.raises(NotFittedError):
        CostCurveDisplay.from_search(GridSearchCV(network(), {"alpha": ALPHAS}))


def curves(n_hue, x_values=(0.0, 0.1, 1.0)):
    mean = np.arange(n_hue)[:, np.newaxis] + np.ones(len(x_values))
    return CostCurveDisplay(
        list(x_values), list(range(n_hue)), mean, mean / 10, x_name="alpha", hue_name="depth"
    )


@pytest.mark.parametrize("n_hue", [1, 3, 7, 12])
def test_every_curve_has_a_colour_of_its_own(n_hue):
    display = curves(n_hue).plot()
    colors = {matplotlib.colors.to_hex(line.get_color()) for line in display.lines_}
    assert len(colors) == n_hue
    assert len(display.legend_.get_texts()) == n_hue


def test_a_curve_of_texts_has_bars():
    display = CostCurveDisplay(
        ["a", "b"], [None], np.ones((1, 2)), np.ones((1, 2)) / 10, x_name="kind"
    )
    _, ax = plt.subplots()
    (segments,) = display.plot(ax, y_label="bill").spread_[0].lines[2]
    np.testing.assert_allclose(segments.get_segments()[0][:, 1], [0.9, 1.1])
    assert display.ax_ is ax
    assert ax.get_ylabel() == "bill"
