"""Cost-sensitive methods that the paper names: a cost-blind network that they teach or correct.

All predict the most probable class, MetaCost with ten bagged networks instead of fifty.

References
----------
P. Domingos, "MetaCost: a general method for making classifiers cost-sensitive", KDD 1999.

Z.-H. Zhou, X.-Y. Liu, "Training cost-sensitive neural networks with methods addressing the class
imbalance problem", IEEE TKDE 18(1), 2006: threshold-moving.

M. Kukar, I. Kononenko, "Cost-sensitive learning with neural networks", ECAI 1998: the learning rate
of each sample, here its weight.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import BaggingClassifier


class Related(ClassifierMixin, BaseEstimator, ABC):
    """A method around a network that knows no costs."""

    def __init__(self, network: Any, cost_matrix: NDArray) -> None:
        self.network = network
        self.cost_matrix = cost_matrix

    def fit(self, X: NDArray, y: NDArray) -> Related:
        self.classes_ = np.unique(y)
        self.network_ = self._fit(clone(self.network), X, y)
        return self

    @abstractmethod
    def _fit(self, network: Any, X: NDArray, y: NDArray) -> Any:
        """Fit the network."""

    def predict(self, X: NDArray) -> NDArray:
        return self.network_.predict(X)


class MetaCost(Related):
    """The labels become the classes of least expected cost, as bagged networks see it."""

    def _fit(self, network: Any, X: NDArray, y: NDArray) -> Any:
        bags = BaggingClassifier(network, random_state=network.random_state).fit(X, y)
        cheapest = (bags.predict_proba(X) @ self.cost_matrix).argmin(axis=1)
        return network.fit(X, self.classes_[cheapest])


class ThresholdMoving(Related):
    """Probabilities are multiplied by the sum of what mistakes on their class cost."""

    def _fit(self, network: Any, X: NDArray, y: NDArray) -> Any:
        return network.fit(X, y)

    def predict(self, X: NDArray) -> NDArray:
        moved = self.network_.predict_proba(X) * self.cost_matrix.sum(axis=1)
        return self.classes_[moved.argmax(axis=1)]


class ExpectedCostWeights(Related):
    """A sample weighs what a mistake on its class costs, if classes are predicted as they occur."""

    def _fit(self, network: Any, X: NDArray, y: NDArray) -> Any:
        label = np.searchsorted(self.classes_, y)
        share = np.bincount(label) / len(y)
        weight = ((self.cost_matrix @ share) / (1 - share))[label]
        return network.fit(X, y, sample_weight=weight / weight.mean())


RELATED = {"MetaCost": MetaCost, "Zhou-Liu": ThresholdMoving, "Kukar": ExpectedCostWeights}
