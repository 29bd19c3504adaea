"""Decisions that are not classes, in every estimator and wherever costs are counted."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveEnsembleClassifier,
    CSAEPretrainedMLP,
)
from auxcst_sklearn.costs import LabelledCosts
from auxcst_sklearn.decisions import adjust_prior, assign, estimate_prior, shadow_prices
from auxcst_sklearn.metrics import cost_scorer, make_cost_scorer, mean_cost
from tests.factories import dense, small_cnn, small_mlp, small_net, small_stack

NAMES = np.array(["ant", "bee", "cat"])
OTHERS = ["refer", "hold"]
VALUES = np.array([[0.0, 2, 4, 0.9, 0.5], [3, 0, 1, 0.2, 0.9], [8, 1, 0, 0.6, 0.3]])
COSTS = pd.DataFrame(VALUES, NAMES, [*NAMES, *OTHERS])
REFERRALS = COSTS[OTHERS]


def ensemble(**parameters):
    members = [("logistic", LogisticRegression()), ("network", small_stack(n_networks=2))]
    return CostSensitiveEnsembleClassifier(members, cv=2, random_state=0, **parameters)


def pretrained(**parameters):
    return CSAEPretrainedMLP(2, 8, pretrain_epochs=1, max_epochs=2, random_state=0, **parameters)


PROBABLE = {
    "network": small_mlp,
    "cross-entropy": lambda **more: small_mlp(loss="cross_entropy", **more),
    "stack": small_stack,
    "pretrained": lambda **more: pretrained(loss="bayes_risk", **more),
    "module": lambda **more: small_net(dense(4, 8, 2), **more),
    "CNN": small_cnn,
    "rule": lambda **more: BayesMinimumRiskClassifier(LogisticRegression(), **more),
    "rule, calibrated": lambda **more: BayesMinimumRiskClassifier(
        LogisticRegression(), calibration="sigmoid", cv=2, **more
    ),
    "ensemble": ensemble,
}
REGRESSIONS = {
    **{
        loss: lambda loss=loss, **more: small_mlp(loss=loss, **more)
        for loss in ("one_sided", "smooth_one_sided", "softmin", "squared")
    },
    "CSDNN": pretrained,
}
ESTIMATORS = {**PROBABLE, **REGRESSIONS}
FOLDS = StratifiedKFold(3)
FEW = ["network", "one_sided", "rule", "ensemble"]


def shaped(kind, X):
    return X.reshape(len(X), 1, 2, 2).repeat(4, 2).repeat(4, 3) if kind == "CNN" else X


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    label = np.arange(90) % 3
    X = rng.normal(size=(90, 4)).astype(np.float32) + np.eye(4)[label].astype(np.float32)
    return X, NAMES[label]


def matrices(n, values=VALUES):
    """A matrix for each row: the same costs, times an amount."""
    return np.random.default_rng(1).uniform(0.2, 3, size=(n, 1, 1)) * values


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_the_decision_is_that_of_the_least_expected_cost(data, kind):
    X, y = shaped(kind, data[0]), data[1]

    model = ESTIMATORS[kind](cost_matrix=COSTS).fit(X, y)

    expected = model.predict_cost(X)
    assert expected.shape == (90, 5)
    np.testing.assert_array_equal(model.classes_, NAMES)
    np.testing.assert_array_equal(model.decisions_, COSTS.columns)
    np.testing.assert_allclose(model.class_prior_, 1 / 3, atol=1e-6)
    np.testing.assert_array_equal(model.decide(X), model.decisions_[expected.argmin(axis=1)])
    np.testing.assert_array_equal(model.predict(X), NAMES[expected[:, :3].argmin(axis=1)])
    paid = [COSTS.loc[true, chosen] for true, chosen in zip(y, model.decide(X))]
    assert model.score(X, y) == pytest.approx(-np.mean(paid))
    if kind in PROBABLE:
        p = model.predict_proba(X)
        np.testing.assert_allclose(expected, p @ VALUES, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_where_classes_are_missing_predict_names_decide(data, kind):
    X, y = shaped(kind, data[0]), data[1]
    model = ESTIMATORS[kind](cost_matrix=REFERRALS).fit(X, y)

    assert model.predict_cost(X).shape == (90, 2)
    assert set(model.decide(X)) <= set(OTHERS)
    assert model.score(X, y) == pytest.approx(-mean_cost(y, model.decide(X), cost_matrix=REFERRALS))
    with pytest.raises(ValueError, match=r"'ant', 'bee', 'cat'.*'refer', 'hold'.*decide\(X\)"):
        model.predict(X)


@pytest.mark.parametrize("kind", PROBABLE)
def test_each_row_is_decided_by_its_own_matrix(data, kind):
    X, y = shaped(kind, data[0]), data[1]
    C, decisions = matrices(90), COSTS.columns
    model = ESTIMATORS[kind](decisions=decisions).fit(X, y, cost=C)

    expected = np.einsum("nk,nkd->nd", model.predict_proba(X), C)

    np.testing.assert_allclose(model.predict_cost(X, C), expected)
    chosen = expected.argmin(axis=1)
    np.testing.assert_array_equal(model.decide(X, C), decisions[chosen])
    np.testing.assert_array_equal(model.predict(X, C), NAMES[expected[:, :3].argmin(axis=1)])
    paid = C[np.arange(90), np.searchsorted(NAMES, y), chosen].mean()
    assert model.score(X, y, cost=C) == pytest.approx(-paid)
    assert cost_scorer(model, X, y, cost=C) == pytest.approx(-paid)


@pytest.mark.parametrize("kind", REGRESSIONS)
def test_regressions_learn_the_costs_of_known_matrices(data, kind):
    model = ESTIMATORS[kind](decisions=OTHERS).fit(data[0], data[1], cost=matrices(90)[:, :, 3:])

    assert model.predict_cost(data[0]).shape == (90, 2)


def test_losses_of_the_heads_need_the_same_outputs(data):
    with pytest.raises(ValueError, match="Leave aux_loss out"):
        small_mlp(loss="one_sided", aux_loss="cross_entropy", cost_matrix=COSTS).fit(*data)
    small_mlp(loss="one_sided", aux_loss="squared", cost_matrix=COSTS).fit(*data)


def test_scores_of_regressions_have_a_column_for_each_class(data):
    X, y = data
    model = small_mlp(loss="one_sided", cost_matrix=COSTS).fit(X, y)

    np.testing.assert_array_equal(model.decision_function(X), -model.predict_cost(X)[:, :3])
    for costs in model.staged_predict_cost(X):
        assert costs.shape == (90, 5)
    with pytest.raises(ValueError, match="decide"):
        small_mlp(loss="one_sided", cost_matrix=REFERRALS).fit(X, y).decision_function(X)


@pytest.mark.parametrize("kind", FEW)
def test_limits_prices_and_priors(data, kind):
    X, y = data
    model = ESTIMATORS[kind](cost_matrix=COSTS).fit(X, y)
    expected, capacity = model.predict_cost(X), {"refer": 5, "hold": 0.02, "bee": 10}

    limited = model.decide(X, capacity=capacity)

    chosen = assign(expected, capacity, decisions=model.decisions_)
    np.testing.assert_array_equal(limited, model.decisions_[chosen])
    prices = shadow_prices(expected, capacity, decisions=model.decisions_)
    at = expected + [0, prices["bee"], 0, prices["refer"], prices["hold"]]
    one_by_one = [model.decide(X[i : i + 1], shadow_prices=prices)[0] for i in range(90)]
    taken = [model.decisions_.tolist().index(one) for one in one_by_one]
    np.testing.assert_allclose(at[np.arange(90), taken], at.min(axis=1))  # a price leaves a tie
    with pytest.raises(ValueError, match="both capacity and shadow_prices"):
        model.decide(X, capacity=capacity, shadow_prices=prices)
    for given in ({"capacity": {"reefr": 1}}, {"shadow_prices": {"reefr": 1}}):
        with pytest.raises(ValueError, match="'reefr'; expected some of the decisions .'ant'"):
            model.decide(X, **given)
    with pytest.raises(ValueError, match="expected a finite amount from 0 on"):
        model.decide(X, shadow_prices={"refer": -1})
    if kind == "one_sided":
        with pytest.raises(ValueError, match="prior= decides by class probabilities"):
            model.decide(X, prior=dict.fromkeys(NAMES, 1 / 3))
        return

    C, p, now = matrices(90), model.predict_proba(X), [0.8, 0.2, 0]
    adjusted = adjust_prior(p, model.class_prior_, now)
    prior, close = dict(zip(NAMES[::-1], now[::-1])), {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_allclose(model.predict_cost(X, prior=prior), adjusted @ VALUES, **close)
    by_row = np.einsum("nk,nkd->nd", adjusted, C)
    np.testing.assert_allclose(model.predict_cost(X, C, prior=prior), by_row)
    chosen = model.decisions_[by_row.argmin(axis=1)]
    np.testing.assert_array_equal(model.decide(X, C, prior=prior), chosen)
    found = adjust_prior(p, model.class_prior_, estimate_prior(p, model.class_prior_)) @ VALUES
    np.testing.assert_allclose(model.predict_cost(X, prior="estimate"), found, **close)
    for wrong in ({"ant": 1}, [0.1, 0.1, 0.8], "estimat"):
        with pytest.raises(ValueError, match="expected the frequency of each class"):
            model.decide(X, prior=wrong)


def test_weights_count_in_the_frequencies_of_the_training(data):
    X, y = data
    weight = np.where(y == "ant", 2.0, np.where(y == "bee", 1, 0.5))
    for kind in FEW:
        model = ESTIMATORS[kind](cost_matrix=COSTS).fit(X, y, sample_weight=weight)
        np.testing.assert_allclose(model.class_prior_, np.array([4, 2, 1]) / 7, rtol=1e-6)


def test_an_ensemble_with_weights_of_zero_keeps_its_decisions(data):
    model = ensemble(cost_matrix=COSTS).fit(*data, sample_weight=np.arange(90) % 4 > 0)

    np.testing.assert_array_equal(model.decisions_, COSTS.columns)


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.parametrize("costs", [COSTS, None])
def test_files_and_clones(data, kind, costs, tmp_path):
    X, y = data
    model = ESTIMATORS[kind](cost_matrix=costs).fit(X, y)
    joblib.dump(model, tmp_path / "model")

    for copy in (joblib.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(copy.decide(X), model.decide(X))
        np.testing.assert_array_equal(copy.predict(X), model.predict(X))
        assert np.array_equal(copy.decisions_, copy.classes_) == (costs is None)
    np.testing.assert_array_equal(clone(model).fit(X, y).predict_cost(X), model.predict_cost(X))


@pytest.mark.parametrize("kind", ["network", "one_sided", "rule"])
def test_searches_score_by_decide(data, kind):
    X, y = data
    model = ESTIMATORS[kind](cost_matrix=COSTS)
    scorer = make_cost_scorer(cost_matrix=COSTS)

    scores = cross_val_score(model, X, y, cv=FOLDS, scoring=scorer, error_score="raise")

    for score, (train, test) in zip(scores, FOLDS.split(X, y)):
        decided = clone(model).fit(X[train], y[train]).decide(X[test])
        assert score == pytest.approx(-mean_cost(y[test], decided, cost_matrix=COSTS))
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    chosen = pipeline[-1].decide(pipeline[:-1].transform(X))
    assert scorer(pipeline, X, y) == pytest.approx(-mean_cost(y, chosen, cost_matrix=COSTS))
    assert pipeline.score(X, y) == pytest.approx(scorer(pipeline, X, y))


@pytest.mark.parametrize("kind", ["network", "one_sided"])
def test_validation_sets_and_warm_starts(data, kind):
    X, y = data
    held_out = {"X_val": X[60:], "y_val": y[60:]}
    model = ESTIMATORS[kind](cost_matrix=COSTS, warm_start=True, early_stopping=True)

    model.fit(X[:60], y[:60], **held_out)

    before = model.predict_cost(X)
    model.fit(X[:60], y[:60], **held_out)
    assert not np.array_equal(model.predict_cost(X), before)

    after, model.cost_matrix = model.predict_cost(X), REFERRALS
    with pytest.raises(ValueError, match="decisions"):
        model.fit(X[:60], y[:60], **held_out)
    with pytest.raises(ValueError, match="decisions"):
        model.partial_fit(X[:60], y[:60])
    np.testing.assert_array_equal(model.decisions_, COSTS.columns)
    np.testing.assert_array_equal(model.predict_cost(X), after)


def test_known_matrices_of_the_validation_set(data):
    X, y = data
    C = matrices(90)
    model = small_mlp(decisions=COSTS.columns, early_stopping=True)

    model.fit(X[:60], y[:60], cost=C[:60], X_val=X[60:], y_val=y[60:], cost_val=C[60:])
    model.partial_fit(X[:60], y[:60], cost=C[:60])

    assert model.predict_cost(X, C).shape == (90, 5)
    with pytest.raises(ValueError, match="validation set.*the classes in decisions="):
        model.fit(X[:60], y[:60], cost=C[:60], X_val=X[60:], y_val=y[60:], cost_val=C[60:, :, :3])


@pytest.mark.parametrize("kind", FEW)
@pytest.mark.filterwarnings("error")
def test_square_costs_decide_as_predict(data, kind):
    """Without other columns than the classes nothing changes, and no warning appears."""
    model = ESTIMATORS[kind](cost_matrix=COSTS[NAMES]).fit(*data)
    assert model.decisions_ is model.classes_
    np.testing.assert_array_equal(model.decide(data[0]), model.predict(data[0]))
    named = ESTIMATORS[kind](cost_matrix=VALUES[:, :3], decisions=NAMES).fit(*data)
    np.testing.assert_array_equal(named.predict_cost(data[0]), model.predict_cost(data[0]))


@pytest.mark.filterwarnings("error")
def test_blocks_with_more_classes_than_decisions():
    """No warning compares the true class, which has no column, with the decisions."""
    y = np.arange(40) % 4
    X = np.random.RandomState(0).normal(size=(40, 3)) + y[:, None]
    costs = pd.DataFrame(np.arange(8.0).reshape(4, 2), columns=["home", "ward"])
    model = small_mlp(cost_matrix=costs).partial_fit(X, y, classes=[0, 1, 2, 3])
    assert set(model.decide(X)) <= {"home", "ward"}


NESTED = {
    "network": small_mlp,
    "ensemble": ensemble,
    "rule around a network": lambda **more: BayesMinimumRiskClassifier(small_mlp(), **more),
    "rule around a pipeline": lambda **more: BayesMinimumRiskClassifier(
        make_pipeline(StandardScaler(), small_mlp()), **more
    ),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("labels", [["bee", "refer"], ["ant", "bee", "refer"]])
def test_some_of_the_decisions_are_classes(data, kind, labels):
    """As they also reach the networks inside; decisions with other labels cost the same."""
    X, y = data
    costs = matrices(len(y), COSTS[labels].to_numpy())
    other = [f"decide {label}" for label in labels]
    for cost_matrix, cost in (costs[0], None), (None, costs):
        found, expected = (
            NESTED[kind](decisions=names, cost_matrix=cost_matrix).fit(X, y, cost=cost)
            for names in (labels, other)
        )
        np.testing.assert_array_equal(found.predict_cost(X, costs), expected.predict_cost(X, costs))
        assert set(found.decide(X, costs)) <= set(labels)
    named = LabelledCosts(costs[0], NAMES, labels)
    found = NESTED[kind](cost_matrix=named).fit(X, y)
    assert found.decisions_.tolist() == labels
    paid = mean_cost(y, found.decide(X), cost_matrix=named)
    assert make_cost_scorer(cost_matrix=named)(found, X, y) == pytest.approx(-paid)


def test_the_warning_of_costs_that_did_not_arrive_has_their_shape(data):
    X, y = data
    model = small_mlp(decisions=COSTS.columns).fit(X, y, cost=matrices(90))
    with pytest.warns(UserWarning, match=r"Pass cost= of shape \(n_samples, 3, 5\)"):
        model.decide(X)


def test_a_score_without_the_costs_of_decisions_asks_for_costs(data, recwarn):
    X, y = data
    model = small_mlp(decisions=OTHERS).fit(X, y, cost=matrices(90)[:, :, 3:])
    with pytest.raises(ValueError, match="none reached score. Pass cost=.*cross_validate"):
        model.score(X, y)
    assert not recwarn.list
