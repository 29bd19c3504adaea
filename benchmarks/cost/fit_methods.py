"""How the methods of `bench_cost` learn what a seed draws, and decide.

The Bayes decision multiplies class probabilities by costs: by the cost matrix, where one holds
for all examples up to a positive factor, otherwise by the mean cost vector of each class in the
training set, because what a mistake will cost is not known at prediction.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import sklearn
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.model_selection import train_test_split
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP
from auxcst_sklearn.losses import CrossEntropy
from benchmarks.cost.settings import Draw

EstimatorFactory = Callable[[Draw], Any]  # unfitted, with its random state


class Decision(NamedTuple):
    """What was predicted, by which decision, after how much CPU time of fitting."""

    name: str
    y_pred: NDArray
    seconds: float


def decision_costs(draw: Draw) -> NDArray:
    """The matrix of the Bayes decision."""
    if draw.cost_matrix is not None:
        return draw.cost_matrix
    classes = range(draw.cost_train.shape[1])
    return np.array([draw.cost_train[draw.y_train == k].mean(axis=0) for k in classes])


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """A fitted estimator and the CPU seconds that it took."""
    start = time.process_time()
    return fit(), time.process_time() - start


class FitMethod(ABC):
    """How an estimator is fitted to a draw, and decides."""

    packages: tuple[str, ...] = ("scikit-learn",)
    revision = 1  # to be raised where a change of code, here or in our package, changes results

    def __init__(self, estimator: EstimatorFactory) -> None:
        self.estimator = estimator

    def identity(self, draw: Draw) -> dict[str, Any]:
        """All that determines the result beside the draw."""
        estimator = self.estimator(draw)
        parameters = estimator.get_params() if hasattr(estimator, "get_params") else vars(estimator)
        return {
            "fit method": f"{type(self).__name__}, {type(estimator).__name__}",
            "revision": self.revision,
            **{package: version(package) for package in self.packages},
            **{name: repr(value) for name, value in parameters.items()},
        }

    @abstractmethod
    def run(self, draw: Draw) -> Iterator[Decision]:
        """Fit to the training part, and predict the test part by each decision."""


class CostSensitive(FitMethod):
    """An estimator that is fitted with a cost vector for each example."""

    packages = ("auxcst_sklearn", "torch", "skorch")

    def run(self, draw: Draw) -> Iterator[Decision]:
        model = self.estimator(draw)
        with sklearn.config_context(enable_metadata_routing=True):
            model, seconds = timed(
                lambda: model.fit(draw.X_train, draw.y_train, cost=draw.cost_train)
            )
        yield Decision("", model.predict(draw.X_test), seconds)


class Classifier(FitMethod):
    """A cost-blind classifier and the Bayes decision."""

    def run(self, draw: Draw) -> Iterator[Decision]:
        model = BayesMinimumRiskClassifier(self.estimator(draw), cost_matrix=decision_costs(draw))
        model, seconds = timed(lambda: model.fit(draw.X_train, draw.y_train))
        yield Decision("Bayes", model.predict(draw.X_test), seconds)


class LogProbability(CrossEntropy):
    """Cross-entropy whose estimates are minus the log-probabilities, in place of costs."""

    def to_cost(self, outputs: Tensor, statistics: Any) -> Tensor:
        """Exact where probabilities would be rounded to 0."""
        return -F.log_softmax(outputs, dim=-1)


class Network(FitMethod):
    """The cost-blind network, fitted once for all its decisions.

    The temperature is the one of least cross-entropy on a fifth of the training set, for a
    network fitted to the rest; it serves the network that is fitted to all.
    """

    packages = CostSensitive.packages

    def run(self, draw: Draw) -> Iterator[Decision]:
        costs = decision_costs(draw)
        model, seconds = timed(lambda: self.estimator(draw).fit(draw.X_train, draw.y_train))
        log_p = self.log_probability(model, draw.X_test)
        yield Decision("blind", log_p.argmax(axis=1), seconds)
        yield Decision("Bayes", (softmax(log_p, axis=1) @ costs).argmin(axis=1), seconds)
        temperature, more = timed(lambda: self.temperature(draw))
        p = softmax(log_p / temperature, axis=1)
        yield Decision("temperature", (p @ costs).argmin(axis=1), seconds + more)

    @staticmethod
    def log_probability(model: CostSensitiveAuxMLP, X: NDArray) -> NDArray:
        return -model.predict_cost(X)

    def temperature(self, draw: Draw) -> float:
        X, X_held_out, y, y_held_out = train_test_split(
            draw.X_train,
            draw.y_train,
            test_size=0.2,
            stratify=draw.y_train,
            random_state=draw.random_state,
        )
        log_p = self.log_probability(self.estimator(draw).fit(X, y), X_held_out)
        return best_temperature(log_p, y_held_out)


def best_temperature(log_p: NDArray, y: NDArray) -> float:
    """The temperature of least cross-entropy, between 1/20 and 20."""

    def cross_entropy(log_temperature: float) -> float:
        scaled = log_softmax(log_p / np.exp(log_temperature), axis=1)
        return -scaled[np.arange(len(y)), y].mean()

    return float(np.exp(minimize_scalar(cross_entropy, bounds=(-3, 3), method="bounded").x))
