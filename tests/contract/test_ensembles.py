"""Ensembles, thresholds and importances: every cost must arrive with its row."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.metrics import cost_scorer
from tests.contract.cost_problem import FOLDS, MATRIX, NAMES, RowCheckingMLP


def test_bagging_trains_every_member_on_the_costs_of_its_draw(setting):
    member = setting.mlp(RowCheckingMLP, classes=[0, 1, 2])
    bagging = setting.fit(BaggingClassifier(member, 3, max_samples=0.7, random_state=0))
    for fitted, rows in zip(bagging.estimators_, bagging.estimators_samples_, strict=True):
        if setting.params:
            by_hand = setting.fit(clone(fitted), rows)
        else:  # without routing, a draw is made of weights
            count = np.bincount(rows, minlength=len(setting.y))
            by_hand = clone(fitted).fit(setting.X, setting.y, sample_weight=count)
        np.testing.assert_array_equal(
            fitted.predict_cost(setting.X), by_hand.predict_cost(setting.X)
        )


def test_voting_trains_every_member_on_the_costs(setting):
    members = [(f"net{seed}", setting.mlp(RowCheckingMLP, random_state=seed)) for seed in range(3)]
    voting = setting.fit(VotingClassifier(members))
    votes = [setting.fit(clone(member)).predict(setting.X) for _, member in members]
    majority = [np.bincount(column, minlength=3).argmax() for column in np.transpose(votes)]
    np.testing.assert_array_equal(voting.predict(setting.X), majority)


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibration_trains_on_the_costs_of_each_fold(setting, ensemble):
    member = setting.mlp(RowCheckingMLP)
    calibrated = setting.fit(CalibratedClassifierCV(member, cv=FOLDS, ensemble=ensemble))
    folds = [train for train, _ in FOLDS.split(setting.X, setting.y)] if ensemble else [slice(None)]
    for fitted, rows in zip(calibrated.calibrated_classifiers_, folds, strict=True):
        np.testing.assert_array_equal(
            fitted.estimator.predict_cost(setting.X),
            setting.fit(clone(member), rows).predict_cost(setting.X),
        )
    np.testing.assert_allclose(calibrated.predict_proba(setting.X).sum(axis=1), 1)


def test_calibration_of_a_fitted_network_needs_no_costs(setting):
    frozen = FrozenEstimator(setting.fit(setting.mlp()))
    calibrated = CalibratedClassifierCV(frozen).fit(setting.X, setting.y)
    np.testing.assert_allclose(calibrated.predict_proba(setting.X).sum(axis=1), 1)


def test_stacking_hands_the_costs_to_its_members_and_to_the_final_network(setting):
    member = setting.mlp(RowCheckingMLP)
    # With passthrough the last feature stays the last, so the final network checks its rows too.
    stacking = StackingClassifier([("net", member)], clone(member), cv=FOLDS, passthrough=True)
    setting.fit(stacking)
    by_hand = setting.fit(clone(member))
    np.testing.assert_array_equal(
        stacking.estimators_[0].predict_cost(setting.X), by_hand.predict_cost(setting.X)
    )


def test_stacking_onto_an_estimator_that_takes_no_costs_is_an_error(per_sample, routing):
    stacking = StackingClassifier([("net", per_sample.mlp())], LogisticRegression())
    with pytest.raises(TypeError, match="cost"):
        per_sample.fit(stacking)


@pytest.mark.parametrize("decompose", [OneVsRestClassifier, OneVsOneClassifier])
def test_binary_subproblems_refuse_the_costs_of_all_classes(setting, decompose):
    with pytest.raises(ValueError, match=r"cost.* 3\); expected .*2\)"):
        setting.fit(decompose(setting.mlp()))


def test_one_versus_rest_of_two_classes_is_the_network_itself(binary):
    wrapped = binary.fit(OneVsRestClassifier(binary.mlp())).predict(binary.X)
    np.testing.assert_array_equal(wrapped, binary.fit(binary.mlp()).predict(binary.X))


def test_ensembles_that_number_the_labels_need_numbered_classes():
    """Bagging, voting and stacking hand 0 .. K-1 to their members in place of the labels."""
    X, y = np.random.default_rng(0).normal(size=(30, 2)), NAMES[np.arange(30) % 3]
    network = CostSensitiveAuxMLP(depth=1, width=4, max_epochs=1, cost_matrix=MATRIX)
    named = clone(network).set_params(classes=NAMES)
    with pytest.raises(ValueError, match=r"not among the classes: \[0, 1, 2\]"):
        BaggingClassifier(named, 2).fit(X, y)
    labelled = clone(network).set_params(cost_matrix=pd.DataFrame(MATRIX, NAMES, NAMES))
    with pytest.raises(ValueError, match=r"\[0, 1, 2\]; expected labels among \['ant'"):
        VotingClassifier([("net", labelled)]).fit(X, y)
    bagging = BaggingClassifier(network.set_params(classes=[0, 1, 2]), 2).fit(X, y)
    assert set(bagging.predict(X)) <= set(NAMES)


def test_labelled_costs_never_go_to_other_classes(routing):
    labels = np.unique(np.arange(11).astype(str))
    y = np.repeat(labels, 10)
    X = (y[:, np.newaxis] == labels).astype(float)
    cost = pd.DataFrame(1 - X, columns=labels)
    network = CostSensitiveAuxMLP(1, 64, max_epochs=60, learning_rate=0.02, random_state=0)
    assert (clone(network).fit(X, y, cost=cost).predict(X) == y).all()
    voting = VotingClassifier([("net", network)])
    try:
        voting.fit(X, y, cost=cost)
    except ValueError:
        return  # a clear refusal is as good
    assert (voting.predict(X) == y).all()


# ---------------------------------------------------------------- thresholds, importances


def test_fixed_threshold_moves_the_decision(binary):
    network = binary.fit(binary.mlp())
    decision = network.decision_function(binary.X)
    threshold = np.median(decision)
    moved = binary.fit(FixedThresholdClassifier(binary.mlp(), threshold=threshold))
    np.testing.assert_array_equal(moved.predict(binary.X), decision >= threshold)
    at_zero = binary.fit(FixedThresholdClassifier(binary.mlp()))
    np.testing.assert_array_equal(at_zero.predict(binary.X), network.predict(binary.X))


def test_tuned_threshold_pays_what_the_rows_say(binary):
    network = binary.fit(binary.mlp())
    decision = network.decision_function(binary.X)
    how = {"cv": "prefit", "refit": False, "store_cv_results": True, "scoring": binary.scorer}
    tuned = binary.fit(TunedThresholdClassifierCV(network, **how))
    thresholds, scores = tuned.cv_results_["thresholds"], tuned.cv_results_["scores"]
    expected = [binary.score(decision >= threshold) for threshold in thresholds]
    np.testing.assert_allclose(scores, expected)
    assert tuned.best_score_ == max(scores) > min(scores)
    np.testing.assert_allclose(tuned.best_score_, binary.score(tuned.predict(binary.X)))


def test_tuned_threshold_by_cross_validation(binary):
    tuned = TunedThresholdClassifierCV(binary.mlp(), cv=FOLDS, scoring=binary.scorer)
    decision = binary.fit(binary.mlp()).decision_function(binary.X)
    expected = decision >= binary.fit(tuned).best_threshold_
    np.testing.assert_array_equal(tuned.predict(binary.X), expected)


def test_permutation_importance_of_the_feature_that_sets_the_costs(per_sample):
    X, y, cost = per_sample.X * [0, 1, 1, 1], per_sample.y, per_sample.cost
    network = per_sample.mlp(max_epochs=30).fit(X, y, cost=cost)
    scorer = partial(cost_scorer, cost=cost)  # permutation_importance routes nothing
    found = permutation_importance(network, X, y, scoring=scorer, random_state=0)
    assert found.importances_mean.argmax() == 3
    np.testing.assert_array_equal(found.importances[0], 0)
