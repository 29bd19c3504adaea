"""The methods, runs and statistics of the cost benchmark, at sizes of no interest."""

import json
import re
import sys
from functools import partial

import numpy as np
import pytest
from scipy.special import log_softmax, softmax
from sklearn.linear_model import LogisticRegression

from auxcst_sklearn import CostSensitiveAuxMLP
from benchmarks.common.recipes import ONE_NETWORK
from benchmarks.cost import bench_cost
from benchmarks.cost.costs import COSTS
from benchmarks.cost.data import DATA
from benchmarks.cost.fit_methods import (
    Classifier,
    CostSensitive,
    Network,
    best_temperature,
    decision_costs,
)
from benchmarks.cost.methods import METHODS, Method, blind
from benchmarks.cost.ranks import cost_ratio, geometric_mean, jackknife_error, rank_test
from benchmarks.cost.results import DEFAULT, SAME, Results
from benchmarks.cost.runs import run_all
from benchmarks.cost.settings import SETTINGS, Draw, Setting
from benchmarks.cost.tables import render, table

SMALL = {"width": 16, "max_epochs": 8}


# --- methods ----------------------------------------------------------------------------------


def easy_draw(n_classes, *, seed=0):
    """Clear classes, of which each should be taken for the next one: only that costs nothing."""
    rng = np.random.RandomState(seed)
    y = np.arange(60 * n_classes) % n_classes
    X = rng.normal(scale=0.2, size=(len(y), 4)) + 3 * np.eye(4)[y]
    matrix = 1 - np.roll(np.eye(n_classes), 1, axis=1)
    train, test = np.arange(len(y)) < 40 * n_classes, np.arange(len(y)) >= 40 * n_classes
    parts = [part for rows in (train, test) for part in (X[rows], y[rows], matrix[y[rows]])]
    matrices = np.broadcast_to(matrix, (test.sum(), n_classes, n_classes))
    return Draw(*parts, matrix, matrices, random_state=0)


def shrink(fit_method):
    """The same fit method with a smaller network, trained for longer than it needs."""

    def estimator(draw):
        model = fit_method.estimator(draw)
        if hasattr(model, "get_params"):
            known = model.get_params()
            for name, value in {"width": 16, "max_epochs": 15}.items():
                for key in (name, f"estimator__{name}"):
                    if key in known:
                        model.set_params(**{key: value})
        return model

    return type(fit_method)(estimator)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_what_costs_least(name):
    fit_method, decision = METHODS[name]
    draw = easy_draw(3)
    decisions = {d.name: d for d in shrink(fit_method).run(draw)}
    y_pred = decisions[decision].y_pred
    cost = draw.cost_test[np.arange(len(y_pred)), y_pred].mean()
    if decision == "blind":
        assert cost > 0.9
    else:
        assert cost < 0.1
    assert decisions[decision].seconds > 0


def test_ours_is_fitted_with_the_costs_of_each_example():
    draw = Setting("rare2", "individual").draw(0)[0]
    draw = draw._replace(
        **{key: getattr(draw, key)[:200] for key in ("X_train", "y_train", "cost_train")}
    )
    make = partial(CostSensitiveAuxMLP, loss="squared", random_state=1, **SMALL)
    (decision,) = CostSensitive(lambda draw: make()).run(draw)
    expected = make().fit(draw.X_train, draw.y_train, cost=draw.cost_train).predict(draw.X_test)
    np.testing.assert_array_equal(decision.y_pred, expected)


def test_network_decides_as_cross_entropy_of_ours():
    draw = Setting("overlap2", "individual").draw(0)[0]
    decisions = {d.name: d.y_pred for d in Network(partial(blind, **SMALL)).run(draw)}
    ours = METHODS["loss: cross-entropy, alpha 0"].fit_method.estimator(draw)
    ours.set_params(**{**ONE_NETWORK, **SMALL})
    bayes = ours.fit(draw.X_train, draw.y_train, cost=draw.cost_train).predict(draw.X_test)
    np.testing.assert_array_equal(decisions["Bayes"], bayes)
    plain = ours.fit(draw.X_train, draw.y_train)
    np.testing.assert_array_equal(decisions["blind"], plain.predict(draw.X_test))


def test_nothing_of_the_test_part_is_used_but_its_features():
    draw = Setting("wine", "squared").draw(0)[0]
    other = draw._replace(y_test=draw.y_test[::-1], cost_test=draw.cost_test[::-1])
    for fit_method in (Network(partial(blind, **SMALL)), METHODS["Bayes: logistic"].fit_method):
        for one, two in zip(fit_method.run(draw), fit_method.run(other)):
            np.testing.assert_array_equal(one.y_pred, two.y_pred)


def test_bayes_costs_are_class_means_unless_a_matrix_holds():
    scaled = Setting("overlap5", "scaled").draw(0)[0]
    np.testing.assert_array_equal(decision_costs(scaled), scaled.cost_matrix)
    individual = Setting("overlap2", "individual").draw(0)[0]
    for k, row in enumerate(decision_costs(individual)):
        np.testing.assert_allclose(row, individual.cost_train[individual.y_train == k].mean(axis=0))


def test_temperature_undoes_overconfidence():
    rng = np.random.RandomState(0)
    logits = rng.normal(scale=2, size=(5000, 4))
    y = (softmax(logits, axis=1).cumsum(axis=1) < rng.uniform(size=(5000, 1))).sum(axis=1)
    assert best_temperature(log_softmax(3 * logits, axis=1), y) == pytest.approx(3, rel=0.1)
    assert best_temperature(log_softmax(logits / 2, axis=1), y) == pytest.approx(0.5, rel=0.1)


# --- runs -------------------------------------------------------------------------------------

WINE = Setting("wine", "squared")
FAST = ["Bayes: logistic", "logistic again", "logistic, other"]


@pytest.fixture
def fast_methods(monkeypatch):
    """Two names for one fit method, and another one."""
    monkeypatch.setitem(METHODS, "logistic again", METHODS["Bayes: logistic"])
    other = Classifier(lambda draw: LogisticRegression(C=1e-3))
    monkeypatch.setitem(METHODS, "logistic, other", Method(other, "Bayes"))


def state(folder):
    return {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}


def test_runs_are_kept_and_shared(fast_methods, tmp_path):
    run = partial(run_all, [WINE], [0, 1], FAST, folder=tmp_path)
    rows = run()
    assert [(row["method"], row["seed"]) for row in rows] == [
        (method, seed) for seed in (0, 1) for method in FAST
    ]
    before = state(tmp_path)
    assert len(before) == 2 * 2  # seeds, fit methods
    assert run() == rows
    assert state(tmp_path) == before

    lost = sorted(before)[0]
    (tmp_path / lost).unlink()
    again = run()
    assert [row["test_cost"] for row in again] == [row["test_cost"] for row in rows]
    after = state(tmp_path)
    assert {name for name in before if before[name] != after[name]} == {lost}


def test_run_bills_the_test_part(fast_methods, tmp_path):
    (row,) = run_all([WINE], [5], ["Bayes: logistic"], folder=tmp_path)
    costs, constants, right = [], [], []
    for draw in WINE.draw(5):
        model = LogisticRegression(max_iter=1000).fit(draw.X_train, draw.y_train)
        y_pred = (model.predict_proba(draw.X_test) @ draw.cost_matrix).argmin(axis=1)
        costs.append(draw.cost_matrix[draw.y_test, y_pred].mean())
        best = draw.cost_matrix[draw.y_train].mean(axis=0).argmin()
        constants.append(draw.cost_matrix[draw.y_test, best].mean())
        right.append(np.mean(y_pred == draw.y_test))
    assert len(costs) == DATA["wine"].n_draws
    assert row["test_cost"] == pytest.approx(np.mean(costs))
    assert row["constant_cost"] == pytest.approx(np.mean(constants))
    assert row["accuracy"] == pytest.approx(np.mean(right))
    assert 0 < row["cpu_seconds"] < 60


def test_changed_draws_and_parameters_are_run_anew(fast_methods, tmp_path, monkeypatch):
    names = set()

    def run_once(setting=WINE, seed=0):
        run_all([setting], [seed], ["logistic, other"], folder=tmp_path)
        return {path.name for path in tmp_path.iterdir()} - names

    for change in range(5):
        if change == 1:
            changed = Classifier(lambda draw: LogisticRegression(C=1e-2))
            monkeypatch.setitem(METHODS, "logistic, other", Method(changed, "Bayes"))
        if change == 2:
            monkeypatch.setitem(COSTS, "squared", COSTS["absolute"])
        if change == 3:
            monkeypatch.setitem(DATA, "wine", DATA["wine"]._replace(n_draws=2))
        new = run_once(seed=int(change == 4))
        assert len(new) == 1
        names |= new


# --- statistics -------------------------------------------------------------------------------


def test_ratios():
    assert cost_ratio(0.0, 0.0, 1.0) == 1
    assert cost_ratio(2.0, 4.0, 0.0) == 0.5
    assert cost_ratio(0.0, 0.003, 1.0) == 0.25
    assert geometric_mean(np.array([0.5, 2.0])) == pytest.approx(1)
    assert np.isnan(geometric_mean(np.array([0.5, np.nan, 2.0])))  # one that did not run
    cost = np.array([1.0, 2.0, 6.0])
    ones, zeros = np.ones(3), np.zeros(3)
    assert jackknife_error(cost, ones, zeros) == pytest.approx(cost.std(ddof=1) / np.sqrt(3))
    assert jackknife_error(cost, 2 * cost, zeros) == pytest.approx(0)


def test_ranks_against_a_published_example():
    # Demsar (2006): the AUC of four classifiers on 14 data sets.
    auc = """
        .763 .599 .954 .628 .882 .936 .661 .583 .775 1 .940 .619 .972 .957
        .768 .591 .971 .661 .888 .931 .668 .583 .838 1 .962 .666 .981 .978
        .771 .590 .968 .654 .886 .916 .609 .563 .866 1 .965 .614 .9751 .946
        .798 .569 .967 .657 .898 .931 .685 .625 .875 1 .962 .669 .975 .970
    """
    auc = np.array([line.split() for line in auc.strip().splitlines()], dtype=float)
    test = rank_test(1 - auc.T)
    np.testing.assert_allclose(test.mean_rank, [3.143, 2.0, 2.893, 1.964], atol=1e-3)
    assert 9.28 < test.statistic < 10.5  # 9.28 without the correction for ties
    assert 0.01 < test.p_value < 0.05
    assert test.critical_difference == pytest.approx(1.25, abs=5e-3)


def made_up_runs():
    """Costs (seed 0, seed 1) of each method in two settings."""
    costs = {
        DEFAULT: [(1, 3), (2, 2)],
        "loss: softmin, alpha 0": [(2, 2), (2, 2)],
        "loss: softmin, alpha 0.2": [(1, 3), (1, 1)],
        SAME[0]: [(4, 4), (1, 3)],
        SAME[1]: [(3, 6), (1, 1)],
        "Bayes: logistic": [(8, 8), (4, 4)],
        "Bayes: boosting, early stop": [(8, 8)],
    }
    return [
        {
            **{"setting": setting, "seed": seed, "method": method, "test_cost": float(cost)},
            **{"constant_cost": 0.0, "cpu_seconds": 1.5, "accuracy": 0.5},
        }
        for method, of_settings in costs.items()
        for setting, of_seeds in zip(["a", "b"], of_settings)
        for seed, cost in enumerate(of_seeds)
    ]


def test_results_compare_with_the_better_rival_of_each_setting():
    runs = made_up_runs()
    results = Results(runs, ["a", "b"], [*METHODS])
    by_method = {row["method"]: row for row in results.by_method()}
    ours = by_method[DEFAULT]
    assert ours["geometric_mean"] == pytest.approx(np.sqrt((2 / 4) * (2 / 1)))
    assert (ours["worst"], ours["worst_setting"], ours["n_lower"]) == (2, "b", 1)
    pairs = by_method["Bayes: boosting, early stop"]
    assert (pairs["n_settings"], pairs["geometric_mean"], pairs["default_there"]) == (1, 2, 0.5)
    assert pairs["mean_rank"] is None
    ranked, test = results.ranks()
    assert ranked == [DEFAULT, *SAME, "Bayes: logistic"]
    np.testing.assert_array_equal(test.mean_rank, [1.75, 2.25, 2, 4])
    (heads,) = results.heads()
    assert heads["ratio"] == pytest.approx(np.sqrt(0.5))
    cell = next(r for r in results.by_setting() if (r["setting"], r["method"]) == ("a", DEFAULT))
    assert (cell["mean_cost"], cell["standard_error"], cell["cpu_seconds"]) == (2, 1, 1.5)
    assert cell["ratio_error"] == pytest.approx(0.25)


def test_runs_without_the_default_are_rendered():
    runs = [run for run in made_up_runs() if run["method"] != DEFAULT]
    text = render(Results(runs, ["a", "b"], [*METHODS]))
    assert re.search(rf"\n{SAME[0]} +2 +[\d.]+ +[\d.]+ +- ", text)


def test_table_is_aligned():
    assert table(["x", "long"], [["abc", "1"], ["d", "2.5"]]).splitlines() == [
        "===  ====",
        "x    long",
        "===  ====",
        "abc     1",
        "d     2.5",
        "===  ====",
    ]


def test_tables_are_rendered_from_saved_runs(tmp_path, monkeypatch, capsys):
    saved = {"settings": ["a", "b"], "methods": [*METHODS], "runs": made_up_runs()}
    (tmp_path / "cost.json").write_text(json.dumps(saved))
    monkeypatch.setattr(sys, "argv", ["bench_cost", "--tables-only", "--out", str(tmp_path)])
    bench_cost.main()
    text = (tmp_path / "cost.rst").read_text()
    assert text in capsys.readouterr().out
    assert "critical difference" in text
    assert re.search(rf"\n{DEFAULT} +2 .* 2.000  +b ", text)  # the worst of two settings
    assert json.loads((tmp_path / "cost.json").read_text()) == saved


def test_patterns_choose_settings_and_methods(monkeypatch):
    arguments = ["--settings", "rare2/ind*", "wine/*", "--methods", "Bayes: l*"]
    monkeypatch.setattr(sys, "argv", ["bench_cost", *arguments])
    settings, methods = bench_cost.choose(bench_cost.parse_options())
    names = {"wine/proportional", "wine/squared", "rare2/individual"}
    assert {s.name for s in settings} == names
    assert methods == [DEFAULT, *SAME, "Bayes: logistic"]
    monkeypatch.setattr(sys, "argv", ["bench_cost", "--settings", "iris/*"])
    with pytest.raises(SystemExit, match="No setting matches"):
        bench_cost.choose(bench_cost.parse_options())
    monkeypatch.setattr(sys, "argv", ["bench_cost"])
    settings, methods = bench_cost.choose(bench_cost.parse_options())
    assert settings == SETTINGS
    assert methods == list(METHODS)
