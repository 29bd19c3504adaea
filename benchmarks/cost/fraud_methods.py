"""What `bench_fraud` compares: the default network and classifiers with a Bayes decision.

All methods see the same features and labels. All but "class means" decide by the cost matrix of
each payment. Parameters are the libraries' defaults, but for more iterations of the logistic
regression.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.metrics import mean_cost
from benchmarks.cost.fit_methods import timed
from benchmarks.cost.fraud_data import FraudDraw

DEFAULT = "ours: default"
REVISION = 2  # to be raised where a change of code, here or in our package, changes results


class FraudMethod(NamedTuple):
    """How an estimator is made from a random state, and whether it decides by known costs."""

    make: Callable[[int], Any]
    known_costs: bool = True

    def identity(self, random_state: int) -> dict[str, Any]:
        """All that determines the result beside the draw."""
        parameters = self.make(random_state).get_params()
        packages = ("auxcst_sklearn", "torch", "skorch", "scikit-learn")
        return {
            "revision": REVISION,
            "known costs": self.known_costs,
            **{package: version(package) for package in packages},
            **{name: repr(value) for name, value in parameters.items()},
        }

    def run(self, draw: FraudDraw) -> dict[str, float]:
        """Mean test cost, share of alerts, share of the frauds found, CPU seconds of the fit."""
        y_pred, seconds = self.decide(draw)
        return {
            "test_cost": mean_cost(draw.y_test, y_pred, cost=draw.cost_test, classes=[0, 1]),
            "constant_cost": constant_cost(draw),
            "alert_rate": float(y_pred.mean()),
            "recall": float(y_pred[draw.y_test == 1].mean()),
            "cpu_seconds": round(seconds, 3),
        }

    def decide(self, draw: FraudDraw) -> tuple[NDArray, float]:
        """Predictions for the test rows, and the CPU seconds of the fit."""
        model, cost = self.make(draw.random_state), draw.cost_train
        if self.known_costs:
            fitted, seconds = timed(lambda: model.fit(draw.X_train, draw.y_train, cost=cost))
            return fitted.predict(draw.X_test, cost=draw.cost_test), seconds
        rows = cost[np.arange(len(cost)), draw.y_train]  # of the true class, known of past rows
        fitted, seconds = timed(lambda: model.fit(draw.X_train, draw.y_train, cost=rows))
        return fitted.predict(draw.X_test), seconds


def constant_cost(draw: FraudDraw) -> float:
    """Mean test cost of the one decision that is cheaper on the training rows."""
    rows = draw.cost_train[np.arange(len(draw.y_train)), draw.y_train]
    constant = np.full(len(draw.y_test), rows.mean(axis=0).argmin())
    return mean_cost(draw.y_test, constant, cost=draw.cost_test, classes=[0, 1])


def bayes(classifier: Any, calibration: str | None = None) -> BayesMinimumRiskClassifier:
    return BayesMinimumRiskClassifier(classifier, calibration=calibration)


def boosting(random_state: int, **changed: Any) -> HistGradientBoostingClassifier:
    return HistGradientBoostingClassifier(random_state=random_state, **changed)


METHODS: dict[str, FraudMethod] = {
    DEFAULT: FraudMethod(lambda seed: CostSensitiveAuxMLP(random_state=seed)),
    "logistic": FraudMethod(lambda seed: bayes(LogisticRegression(max_iter=1000))),
    "logistic, isotonic": FraudMethod(
        lambda seed: bayes(LogisticRegression(max_iter=1000), "isotonic")
    ),
    "boosting": FraudMethod(lambda seed: bayes(boosting(seed))),
    "boosting, isotonic": FraudMethod(lambda seed: bayes(boosting(seed), "isotonic")),
    "boosting, early stop": FraudMethod(lambda seed: bayes(boosting(seed, early_stopping=True))),
    "boosting, class means": FraudMethod(lambda seed: bayes(boosting(seed)), known_costs=False),
}
