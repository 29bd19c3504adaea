"""No cost is lost on its way to a scorer without a word."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, clone
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import cost_scorer, mean_cost
from tests.contract.cost_problem import FOLDS, MATRIX, RAISE, RowCheckingMLP, by_matrix


@pytest.mark.parametrize("on", [False, True])
def test_cost_scorer_raises_where_no_costs_reach_it(per_sample, on):
    X, y = per_sample.X, per_sample.y
    network = CostSensitiveAuxMLP(depth=1, width=4, max_epochs=1).fit(X, y)
    search = GridSearchCV(network, {"alpha": [0.1]}, scoring=cost_scorer, **RAISE)
    uses = [
        lambda: cost_scorer(network, X, y),
        lambda: search.fit(X, y),
        lambda: cross_validate(network, X, y, scoring={"cost": cost_scorer}, **RAISE),
        lambda: permutation_importance(network, X, y, scoring=cost_scorer),
    ]
    lost = "No costs reached cost_scorer; it never.*enable_metadata_routing.*leave out scoring="
    for use in uses:
        with (
            sklearn.config_context(enable_metadata_routing=on),
            pytest.raises(ValueError, match=lost),
        ):
            use()


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_search_that_swallows_errors_warns_and_scores_nan(per_sample):
    search = GridSearchCV(per_sample.mlp(), {"alpha": [0.0, 0.5]}, scoring=cost_scorer)
    with pytest.warns(UserWarning, match="Scoring failed"):
        per_sample.fit(search)
    assert np.isnan(search.cv_results_["mean_test_score"]).all()


def test_tuned_threshold_without_costs_is_an_error(per_sample):
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=cost_scorer)
    with pytest.raises(ValueError, match="neither cost nor cost_matrix"):
        tuned.fit(per_sample.X, per_sample.y > 0)


def test_search_without_routing_warns_that_it_scores_the_accuracy(per_sample):
    search = GridSearchCV(per_sample.mlp(RowCheckingMLP), {"alpha": [0.5]}, cv=FOLDS, **RAISE)
    with pytest.warns(UserWarning, match="none reached score, which returns the accuracy"):
        per_sample.fit(search)
    assert search.best_score_ >= 0


@pytest.mark.parametrize("matrix", [None, MATRIX])
def test_scorers_weigh_the_rows_of_each_fold(per_sample, routing, matrix):
    setting = per_sample if matrix is None else by_matrix(per_sample, matrix)
    weight = np.random.default_rng(1).uniform(0, 5, size=len(setting.y))
    model = setting.mlp().set_fit_request(sample_weight=True)
    setting.params["sample_weight"] = weight
    found = cross_val_score(model, setting.X, setting.y, params=setting.params, **setting.how)
    for score, (train, test) in zip(found, FOLDS.split(setting.X, setting.y), strict=True):
        chosen = setting.fit(clone(model), train).predict(setting.X[test])
        expected = -np.average(setting.cost[test, chosen], weights=weight[test])
        np.testing.assert_allclose(score, expected)


class HalfOfTheRows(BaseEstimator):
    """A sampler in the manner of imbalanced-learn, which has no `transform`."""

    def fit_resample(self, X, y):
        return X[::2], y[::2]


STEPS = {
    "sampler": [HalfOfTheRows()],
    "scaler and sampler": [StandardScaler(), HalfOfTheRows()],
    "sampler and scaler": [HalfOfTheRows(), StandardScaler()],
    "nothing": ["passthrough", None],
    "scaler": [StandardScaler()],
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_steps_before_the_last_are_those_of_predict(steps):
    """Matrices of each row reach the last step, whatever comes before it."""
    rng = np.random.default_rng(0)
    X, C = 3 * rng.normal(size=(200, 3)) + 1, rng.uniform(size=(200, 2, 2))
    C[:, [0, 1], [0, 1]] = 0
    y = (X[:, 0] > 1).astype(int)
    rows, labels, fitted = X, y, []
    for step in steps:
        if hasattr(step, "fit_resample"):
            rows, labels = step.fit_resample(rows, labels)
        elif hasattr(step, "transform"):
            rows = step.fit(rows).transform(rows)
        fitted.append((f"step{len(fitted)}", step))
    rule = BayesMinimumRiskClassifier().fit(rows, labels)
    scalers = [step for step in steps if isinstance(step, StandardScaler)]
    scaled = scalers[0].transform(X) if scalers else X
    pipeline = Pipeline([*fitted, ("rule", rule)])
    expected = -mean_cost(y, rule.predict(scaled, cost=C), cost=C)
    assert cost_scorer(pipeline, X, y, cost=C) == expected
    assert cost_scorer(Pipeline([("inner", pipeline)]), X, y, cost=C) == expected
