"""How the methods of `bench_cost` learn what a seed draws, and decide.

The Bayes decision multiplies class probabilities by costs: by the cost matrix, where one holds
for all examples up to a positive factor, otherwise by the mean cost vector of each class in the
training set, because what a mistake will cost is not known at prediction. The decision "told"
breaks this rule and is given the costs of each test example: what that knowledge is worth.
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
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.model_selection import train_test_split
from sklearn.multioutput import MultiOutputRegressor
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
        X_train, X_test = self.inputs(draw)
        model = self.estimator(draw)
        with sklearn.config_context(enable_metadata_routing=True):
            model, seconds = timed(lambda: model.fit(X_train, draw.y_train, cost=draw.cost_train))
        yield Decision("", model.predict(X_test), seconds)

    def inputs(self, draw: Draw) -> tuple[NDArray, NDArray]:
        return draw.X_train, draw.X_test


class Pretrained(CostSensitive):
    """An estimator for inputs in [0, 1]; it maps features itself, but each pixel on its own."""

    def inputs(self, draw: Draw) -> tuple[NDArray, NDArray]:
        if not draw.pixels:
            return super().inputs(draw)
        low, high = draw.X_train.min(), draw.X_train.max()
        return (draw.X_train - low) / (high - low), (draw.X_test - low) / (high - low)


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
        if draw.test_matrices is not None:
            told = np.einsum("nj,njk->nk", softmax(log_p, axis=1), draw.test_matrices)
            yield Decision("told", told.argmin(axis=1), seconds)
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


class Reduction(FitMethod):
    """A reduction to binary classification or regression, fitted to costs alone.

    costsensitive refuses two classes. All pairs and one-vs-rest are then the same single
    classifier, weighted by the difference of the costs, and it is fitted here.
    """

    packages = ("scikit-learn", "costsensitive")

    def run(self, draw: Draw) -> Iterator[Decision]:
        model = self.estimator(draw)
        if draw.cost_train.shape[1] == 2:
            model = TwoClasses(getattr(model, "base_classifier", None) or model.base_regressor)
        _, seconds = timed(lambda: model.fit(draw.X_train, draw.cost_train))
        yield Decision("", model.predict(draw.X_test), seconds)


class TwoClasses:
    """What the reductions come to for two classes."""

    def __init__(self, base: BaseEstimator) -> None:
        self.base = base

    def fit(self, X: NDArray, cost: NDArray) -> TwoClasses:
        if is_regressor(self.base):
            self.model_ = MultiOutputRegressor(self.base).fit(X, cost)
        else:
            self.model_ = clone(self.base).fit(
                X, cost.argmin(axis=1), sample_weight=np.abs(cost[:, 0] - cost[:, 1])
            )
        return self

    def predict(self, X: NDArray) -> NDArray:
        y_pred = self.model_.predict(X)
        return y_pred if y_pred.ndim == 1 else y_pred.argmin(axis=1)
