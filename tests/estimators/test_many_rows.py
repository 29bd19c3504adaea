"""With many rows, defaults have fewer networks and folds, and wait for fewer epochs."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveEnsembleClassifier

MANY = 50_001
SMALL = {"depth": 1, "width": 4, "batch_size": 10_000, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    X = np.random.RandomState(0).standard_normal((MANY, 2)).astype(np.float32)
    return X, (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(("n", "expected"), [(MANY - 1, 5), (MANY, 3)])
def test_numbers_of_networks_and_of_folds(rows, n, expected):
    X, y = (part[:n] for part in rows)
    model = CostSensitiveAuxMLP(max_epochs=1, **SMALL).fit(X, y)
    assert model.training_.n_networks == expected
    ensemble = CostSensitiveEnsembleClassifier([("bayes", GaussianNB())], random_state=0).fit(X, y)
    assert len(ensemble.estimators_[0].estimators) == expected


def test_given_numbers_hold_for_many_rows(rows):
    model = CostSensitiveAuxMLP(n_networks=4, max_epochs=1, **SMALL).fit(*rows)
    assert model.training_.n_networks == 4
    ensemble = CostSensitiveEnsembleClassifier([("bayes", GaussianNB())], cv=5, random_state=0).fit(
        *rows
    )
    assert len(ensemble.estimators_[0].estimators) == 5


def test_an_ensemble_has_a_network_for_each_fold_and_a_second_one_for_the_first(rows):
    members = [("network", CostSensitiveAuxMLP(max_epochs=1, **SMALL))]
    ensemble = CostSensitiveEnsembleClassifier(members, random_state=0).fit(*rows)
    assert ensemble.named_estimators_["network"].training_.n_networks == 4


@pytest.mark.slow
def test_training_ends_after_two_plateaus(rows):
    """Labels at random, and of 500,001 rows an epoch, so that the patience is one."""
    X, y = np.tile(rows[0], (10, 1)), np.random.RandomState(1).randint(2, size=10 * MANY)
    given = {**SMALL, "n_networks": 1, "batch_size": 100_000}
    history = CostSensitiveAuxMLP(**given).fit(X, y).history_
    least = np.minimum.accumulate([record["valid_refinement"] for record in history])
    is_plateau = np.diff(least) > -2e-3 * least[:-1]
    assert is_plateau.sum() == 2
    assert is_plateau[-1]
    assert len(CostSensitiveAuxMLP(patience=3, **given).fit(X, y).history_) > len(history)
