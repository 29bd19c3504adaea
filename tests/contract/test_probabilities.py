"""Probabilities of the networks in the tools of scikit-learn."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from auxcst_sklearn import BayesMinimumRiskClassifier, CSAEPretrainedMLP
from auxcst_sklearn.losses import LOSSES, CrossEntropy, ProbabilisticLoss
from tests.factories import small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [9, 1, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(200, n_classes=3, n_informative=6, random_state=0)


@pytest.mark.parametrize("loss", [*LOSSES, CrossEntropy(0.1)], ids=str)
def test_only_losses_of_probabilities_have_them(data, loss):
    has = isinstance(LOSSES.get(loss, loss) if isinstance(loss, str) else loss, ProbabilisticLoss)
    model = small_mlp(loss=loss)

    assert hasattr(model, "predict_proba") == has
    assert hasattr(model.fit(*data), "predict_proba") == has
    assert hasattr(CSAEPretrainedMLP(loss=loss), "predict_proba") == has


def test_an_unknown_loss_is_an_error_of_fit_alone(data):
    assert not hasattr(small_mlp(loss="unheard"), "predict_proba")
    assert not hasattr(small_mlp(loss=["bayes_risk"]), "predict_proba")


@pytest.mark.parametrize("per_sample", [False, True])
def test_they_lead_to_the_estimated_costs(data, per_sample):
    X, y = data
    cost = MATRIX[y]
    model = small_mlp(cost_matrix=None if per_sample else MATRIX, max_epochs=20)
    model.fit(X, y, cost=cost if per_sample else None)

    p = model.predict_proba(X)

    assert p.dtype == np.float64
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(p @ MATRIX, model.predict_cost(X), rtol=1e-4, atol=1e-4)


def test_the_temperature_makes_them_less_certain(data):
    stopping = {"early_stopping": True, "validation_fraction": 0.3, "patience": 40}
    model = small_mlp(max_epochs=40, width=64, **stopping).fit(*data)
    certain = clone(model).set_params(temperature=1.0).fit(*data)

    assert model.temperature_ > 1
    assert model.predict_proba(data[0]).max() <= certain.predict_proba(data[0]).max()
    assert model.predict_proba(data[0]).max(1).mean() < certain.predict_proba(data[0]).max(1).mean()


def test_soft_voting(data):
    X, y = data
    parts = [("a", small_mlp()), ("b", GaussianNB())]

    voting = VotingClassifier(parts, voting="soft").fit(X, y)

    expected = np.mean([clone(model).fit(X, y).predict_proba(X) for _, model in parts], axis=0)
    np.testing.assert_allclose(voting.predict_proba(X), expected)


@pytest.mark.parametrize("scoring", ["neg_log_loss", "roc_auc_ovr", "neg_brier_score"])
def test_scores_of_probabilities(data, scoring):
    if scoring == "neg_brier_score" and sklearn.__version__ < "1.7":
        pytest.skip("the score of several classes is new in scikit-learn 1.7")
    scores = cross_val_score(
        make_pipeline(StandardScaler(), small_mlp(max_epochs=10)), *data, cv=3, scoring=scoring
    )

    assert np.isfinite(scores).all()


def test_self_training():
    X, y = load_iris(return_X_y=True)
    unlabelled = np.where(np.arange(150) % 5 == 0, y, -1)
    network = small_mlp(max_epochs=40, width=32, standardize=True)

    model = SelfTrainingClassifier(network, criterion="k_best", k_best=40).fit(X, unlabelled)

    assert (model.transduction_ >= 0).all()
    assert model.score(X, y) > 0.85


def test_the_bayes_decision_on_a_network_is_that_of_the_network(data):
    X, y = data
    bayes = BayesMinimumRiskClassifier(small_mlp(max_epochs=10), cost_matrix=MATRIX).fit(X, y)
    blind = small_mlp(max_epochs=10).fit(X, y)

    np.testing.assert_array_equal(
        bayes.predict(X), (blind.predict_proba(X) @ MATRIX).argmin(axis=1)
    )
