"""What reads scores as logits reads probabilities here: calibration, stacking, voting."""

import numpy as np
import pytest
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import (
    BayesMinimumRiskClassifier,
    CostSensitiveEnsembleClassifier,
    CSAEPretrainedMLP,
)
from auxcst_sklearn.losses import LOSSES, CrossEntropy, ProbabilisticLoss
from auxcst_sklearn.metrics import make_cost_scorer, mean_cost
from tests.factories import small_mlp

HAS_TEMPERATURE = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
METHODS = ["sigmoid", "isotonic", *(["temperature"] if HAS_TEMPERATURE else [])]
# A common currency, and mistakes of unequal costs, by number of classes.
MATRICES = {
    2: 1e3 * np.array([[0, 1], [40, 0]]),
    3: np.array([[0.0, 1, 3], [5, 0, 2], [40, 20, 0]]),
}


def rows(n_classes):
    """Rows of which a linear model is calibrated, for training and for tests."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2400, 2))
    y = np.digitize(X[:, 0] + 0.7 * rng.normal(size=2400), [1] if n_classes == 2 else [-0.5, 1])
    return X[:1200], y[:1200], X[1200:], y[1200:]


INNER = {
    "network": lambda M: small_mlp(cost_matrix=M, max_epochs=6, batch_size=64, learning_rate=1e-2),
    "rule": lambda M: BayesMinimumRiskClassifier(LogisticRegression(), cost_matrix=M),
    "pipeline": lambda M: make_pipeline(
        StandardScaler(), BayesMinimumRiskClassifier(LogisticRegression(), cost_matrix=M)
    ),
    "search": lambda M: GridSearchCV(
        BayesMinimumRiskClassifier(LogisticRegression(), cost_matrix=M),
        {"estimator__C": [1.0]},
        scoring=make_cost_scorer(cost_matrix=M),
        cv=2,
    ),
    "ensemble": lambda M: CostSensitiveEnsembleClassifier(
        [("logistic", LogisticRegression())], cost_matrix=M, cv=3, random_state=0
    ),
}
OUTER = {
    **{
        f"{method}": lambda e, m=method: CalibratedClassifierCV(e, method=m, cv=3)
        for method in METHODS
    },
    **{
        f"rule, {method}": lambda e, m=method: BayesMinimumRiskClassifier(e, calibration=m, cv=3)
        for method in METHODS
    },
    "stacking": lambda e: StackingClassifier([("a", e)], LogisticRegression(), cv=3),
    "voting": lambda e: VotingClassifier([("a", e)], voting="soft"),
    "bagging": lambda e: BaggingClassifier(e, n_estimators=2, random_state=0),
}


@pytest.mark.parametrize("n_classes", MATRICES)
@pytest.mark.parametrize("inner", INNER)
def test_probabilities_stay_as_good(n_classes, inner):
    """Also isotonic calibration, whose zeros are of scikit-learn: they are clipped here."""
    X, y, X_test, y_test = rows(n_classes)
    make = INNER[inner]
    before = make(MATRICES[n_classes]).fit(X, y).predict_proba(X_test)
    least = log_loss(y_test, before)
    # A network takes longer to fit.
    names = OUTER if inner != "network" else ["sigmoid", f"rule, {METHODS[-1]}", "stacking"]
    for name in names:
        found = OUTER[name](make(MATRICES[n_classes])).fit(X, y).predict_proba(X_test)
        found = np.clip(found, 1e-3, None)
        loss = log_loss(y_test, found / found.sum(axis=1, keepdims=True))
        assert loss < 1.08 * least, name


@pytest.mark.skipif(not HAS_TEMPERATURE, reason="needs scikit-learn 1.8")
@pytest.mark.parametrize("inner", ["network", "rule", "ensemble"])
def test_a_temperature_leaves_the_decisions_of_calibrated_probabilities(inner):
    X, y, X_test, y_test = rows(2)
    M = MATRICES[2]
    model = INNER[inner](M)
    calibrated = BayesMinimumRiskClassifier(
        INNER[inner](M), cost_matrix=M, calibration="temperature", cv=3
    )
    cost, found = (
        mean_cost(y_test, m.fit(X, y).predict(X_test), cost_matrix=M) for m in (model, calibrated)
    )
    assert found < 1.2 * cost


@pytest.mark.parametrize("loss", [*LOSSES, CrossEntropy(0.1)], ids=str)
def test_only_losses_of_probabilities_have_them(loss):
    X, y, *_ = rows(3)
    has = isinstance(LOSSES.get(loss, loss) if isinstance(loss, str) else loss, ProbabilisticLoss)
    model = small_mlp(loss=loss)

    assert hasattr(model, "predict_proba") == has
    assert hasattr(model.fit(X[:200], y[:200]), "predict_proba") == has
    assert hasattr(CSAEPretrainedMLP(loss=loss), "predict_proba") == has


@pytest.mark.parametrize("loss", ["unheard", ["bayes_risk"]])
def test_an_unknown_loss_has_no_probabilities_before_fit_refuses_it(loss):
    assert not hasattr(small_mlp(loss=loss), "predict_proba")


def test_scores_are_costs_only_without_probabilities():
    X, y, X_test, _ = rows(2)
    for model in (small_mlp(), *(make(MATRICES[2]) for make in INNER.values())):
        assert hasattr(model, "predict_proba")
        assert not hasattr(model, "decision_function")
    model = small_mlp(loss="one_sided", cost_matrix=MATRICES[2]).fit(X, y)
    cost = model.predict_cost(X_test)
    np.testing.assert_array_equal(model.decision_function(X_test), cost[:, 0] - cost[:, 1])
    np.testing.assert_array_equal(model.decision_function(X_test) > 0, model.predict(X_test))
    assert not hasattr(model, "predict_proba")
    assert CalibratedClassifierCV(model, cv=2).fit(X, y).predict_proba(X_test).shape == (1200, 2)
