"""Searches, cross-validation and pipelines: every cost must arrive with its row.

Most tests run twice: with per-sample costs, which metadata routing carries, and with the
constructor's cost matrix, without routing. What a tool finds is compared with fits by hand.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    PredefinedSplit,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn.metrics import make_cost_scorer
from tests.contract.cost_problem import FOLDS, GRID, MATRIX, NAMES, RAISE, RowCheckingMLP

SKLEARN = tuple(int(part) for part in sklearn.__version__.split(".")[:2])


def test_the_row_checking_network_sees_a_shifted_row(per_sample):
    network = per_sample.fit(per_sample.mlp(RowCheckingMLP))
    with pytest.raises(AssertionError):
        network.fit(per_sample.X, per_sample.y, cost=np.roll(per_sample.cost, 1, axis=0))


# ----------------------------------------------------------- searches and cross-validation


SEARCHES = {
    "grid": partial(GridSearchCV, param_grid=GRID),
    "randomized": partial(RandomizedSearchCV, param_distributions=GRID, n_iter=3, random_state=0),
    "halving": partial(
        HalvingGridSearchCV,
        param_grid=GRID,
        resource="max_epochs",
        min_resources=2,
        max_resources=6,
    ),
}


@pytest.mark.parametrize("kind", SEARCHES)
def test_searches_score_every_fold_by_the_costs_of_its_rows(setting, kind):
    model = setting.mlp(RowCheckingMLP)
    search = setting.fit(SEARCHES[kind](model, **setting.how))
    results = search.cv_results_
    found = np.transpose([results[f"split{k}_test_score"] for k in range(3)])
    for i, params in enumerate(results["params"]):
        if kind == "halving":
            params = {**params, "max_epochs": results["n_resources"][i]}
        expected = setting.fold_scores(clone(model).set_params(**params))
        np.testing.assert_allclose(found[i], expected)
    assert len(np.unique(results["mean_test_score"])) > 1
    refitted = setting.fit(clone(search.best_estimator_)).predict(setting.X)
    np.testing.assert_array_equal(search.predict(setting.X), refitted)
    score = search.score(setting.X, setting.y, **setting.params)
    np.testing.assert_allclose(score, setting.score(refitted))


def test_halving_draws_costs_with_their_rows(setting):
    model = setting.mlp(RowCheckingMLP)
    search = HalvingGridSearchCV(model, GRID, min_resources=24, random_state=0, **setting.how)
    setting.fit(search)
    assert search.n_resources_ == [24, 72]
    refitted = setting.fit(clone(search.best_estimator_))
    np.testing.assert_array_equal(search.predict(setting.X), refitted.predict(setting.X))


def test_searches_score_by_cost_without_being_told(setting):
    search = setting.fit(GridSearchCV(setting.mlp(), {"alpha": [0.5]}, cv=FOLDS, **RAISE))
    expected = np.mean(setting.fold_scores(setting.mlp(alpha=0.5)))
    np.testing.assert_allclose(search.best_score_, expected)


def test_cost_stands_beside_other_metrics(setting):
    how = {**setting.how, "scoring": {"cost": setting.scorer, "accuracy": "accuracy"}}
    found = cross_validate(
        setting.mlp(), setting.X, setting.y, params=setting.params, return_train_score=True, **how
    )
    np.testing.assert_allclose(found["test_cost"], setting.fold_scores(setting.mlp()))
    train = [(train, train) for train, _ in FOLDS.split(setting.X, setting.y)]
    np.testing.assert_allclose(found["train_cost"], setting.fold_scores(setting.mlp(), train))
    accuracy = [
        np.mean(setting.fit(setting.mlp(), train).predict(setting.X[test]) == setting.y[test])
        for train, test in FOLDS.split(setting.X, setting.y)
    ]
    np.testing.assert_allclose(found["test_accuracy"], accuracy)


def test_learning_curve_by_partial_fit(setting):
    model = setting.mlp(classes=[0, 1, 2])
    curve = partial(learning_curve, model, setting.X, setting.y, train_sizes=[24, 48])
    curve = partial(curve, exploit_incremental_learning=True, params=setting.params)
    if setting.params and SKLEARN < (1, 9):
        # Older releases cut no parameter of partial_fit to its rows.
        with pytest.raises(ValueError, match="cost has 72 rows, but there are 24 samples"):
            curve(**setting.how)
        return
    _, _, found = curve(**setting.how)
    for k, (train, test) in enumerate(FOLDS.split(setting.X, setting.y)):
        network = clone(model)
        for i, rows in enumerate([train[:24], train[24:48]]):
            setting.fit(network, rows, method="partial_fit")
            score = setting.score(network.predict(setting.X[test]), test)
            np.testing.assert_allclose(found[i, k], score)


def test_sequential_feature_selection_takes_the_feature_that_saves_most(setting):
    selector = SequentialFeatureSelector(
        setting.mlp(), n_features_to_select=1, cv=FOLDS, scoring=setting.scorer
    )
    setting.fit(selector)
    alone = [replace(setting, X=setting.X[:, [feature]]) for feature in range(4)]
    savings = [np.mean(one.fold_scores(one.mlp())) for one in alone]
    assert selector.get_support(indices=True).tolist() == [np.argmax(savings)]


@pytest.mark.slow
def test_two_workers_find_what_one_finds(setting):
    searches = [
        setting.fit(GridSearchCV(setting.mlp(), GRID, n_jobs=n_jobs, **setting.how))
        for n_jobs in (1, 2)
    ]
    scores = [search.cv_results_["mean_test_score"] for search in searches]
    np.testing.assert_array_equal(*scores)


# ------------------------------------------------------------------------------ pipelines


def test_pipeline_carries_costs_to_fit_and_score(setting):
    fitted = setting.fit(make_pipeline(StandardScaler(), setting.mlp()))
    scaled = replace(setting, X=StandardScaler().fit_transform(setting.X))
    by_hand = scaled.fit(scaled.mlp()).predict(scaled.X)
    np.testing.assert_array_equal(fitted.predict(setting.X), by_hand)
    score = fitted.score(setting.X, setting.y, **setting.params)
    np.testing.assert_allclose(score, setting.score(by_hand))


def test_pipeline_without_routing_warns_that_score_loses_the_costs(per_sample):
    model = make_pipeline(StandardScaler(), per_sample.mlp())
    X, y, cost = per_sample.X, per_sample.y, per_sample.cost
    predicted = model.fit(X, y, costsensitiveauxmlp__cost=cost).predict(X)
    with sklearn.config_context(enable_metadata_routing=True):
        np.testing.assert_array_equal(per_sample.fit(clone(model)).predict(X), predicted)
    with pytest.warns(UserWarning, match="none reached score, which returns the accuracy"):
        assert model.score(X, y, cost=cost) == np.mean(predicted == y)


# ----------------------------------------------------------------- the order of the columns


def test_folds_that_lack_a_class_keep_the_columns_apart(setting):
    model = setting.mlp(classes=[0, 1, 2])
    how = {**setting.how, "cv": PredefinedSplit(setting.y)}
    found = cross_val_score(model, setting.X, setting.y, params=setting.params, **how)
    np.testing.assert_allclose(found, setting.fold_scores(model, how["cv"].split()))
    with pytest.raises(ValueError, match=r"3\); expected .*2\).*\[1, 2\].*classes="):
        cross_val_score(setting.mlp(), setting.X, setting.y, params=setting.params, **how)


def test_columns_follow_the_estimator_and_not_the_labels_of_the_fold(setting):
    network = setting.fit(setting.mlp(max_epochs=30))
    rows = np.flatnonzero((setting.y > 0) & (network.predict(setting.X) > 0))
    X, y = setting.X[rows], setting.y[rows]
    chosen = network.predict(X)
    assert set(y) == set(chosen) == {1, 2}
    params = {name: value[rows] for name, value in setting.params.items()}
    found = setting.scorer(network, X, y, **params)
    np.testing.assert_allclose(found, setting.score(chosen, rows))


def test_make_cost_scorer_of_an_estimator_that_lacks_a_class(per_sample):
    X, y, folds = per_sample.X, per_sample.y, PredefinedSplit(per_sample.y)
    score = partial(cross_val_score, LogisticRegression(), X, y, cv=folds, **RAISE)
    with pytest.raises(
        ValueError, match=r"y_true .*\[0\]; expected labels among \[1, 2\].*classes="
    ):
        score(scoring=make_cost_scorer(cost_matrix=MATRIX))
    expected = [
        -MATRIX[y[test], LogisticRegression().fit(X[train], y[train]).predict(X[test])].mean()
        for train, test in folds.split()
    ]
    for named in (
        make_cost_scorer(cost_matrix=MATRIX, classes=range(3)),
        make_cost_scorer(cost_matrix=pd.DataFrame(MATRIX)),
    ):
        np.testing.assert_allclose(score(scoring=named), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_labelled_costs_pass_through_folds_that_lack_a_class(per_sample, routing, frame):
    X, y, cost = per_sample.X, NAMES[per_sample.y], per_sample.cost
    labelled = frame({NAMES[k]: cost[:, k] for k in (2, 0, 1)})
    how = {**per_sample.how, "cv": PredefinedSplit(per_sample.y)}
    found = cross_val_score(per_sample.mlp(), X, y, params={"cost": labelled}, **how)
    model = per_sample.mlp(classes=NAMES)
    expected = cross_val_score(model, X, y, params={"cost": cost}, **how)
    np.testing.assert_array_equal(found, expected)
