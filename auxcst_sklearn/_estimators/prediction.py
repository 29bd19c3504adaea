"""Predictions of a cost-sensitive network: costs, classes, decisions, scores."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from ..metrics import mean_cost


def decision_values(cost: np.ndarray) -> np.ndarray:
    """Decision values of scikit-learn: minus the costs, for two classes their difference."""
    return cost[:, 0] - cost[:, 1] if cost.shape[1] == 2 else -cost


class CostPredictionMixin(ClassifierMixin):
    """Predictions from the cost estimates of the heads; the training is elsewhere."""

    @abstractmethod
    def _predict_heads(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        """Estimated costs of the output, or of every head, first hidden layer to output."""

    def predict_cost(self, X: ArrayLike) -> np.ndarray:
        """Estimate what each prediction would cost.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Estimated costs, in the currency of the training costs, columns as in `classes_`.
        """
        return self._predict_heads(X, every_head=False)[0]

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the class with the smallest estimated cost.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        choice = self.predict_cost(X).argmin(axis=1)
        return self.classes_[choice]

    def staged_predict_cost(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Estimate the costs from each head in turn, first hidden layer to output.

        Layers with ``alpha = 0`` have no head, and yield nothing.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Yields
        ------
        ndarray of shape (n_samples, n_classes)
            Estimated costs of one head; the last are those of `predict_cost`.
        """
        yield from self._predict_heads(X, every_head=True)

    def staged_predict(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Predict from each head in turn, first hidden layer to output.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Yields
        ------
        ndarray of shape (n_samples,)
            Predicted labels of one head; the last are those of `predict`.
        """
        for cost in self.staged_predict_cost(X):
            yield self.classes_[cost.argmin(axis=1)]

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Minus the estimated costs: the larger, the better the class.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            For two classes one column: the estimated cost of ``classes_[0]`` minus that of
            ``classes_[1]``, positive where the second is predicted.
        """
        return decision_values(self.predict_cost(X))

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        cost: ArrayLike | None = None,
    ) -> float:
        """Minus the mean cost of the predictions; without any costs the accuracy.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Test examples.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.
        cost : array-like or DataFrame of shape (n_samples, n_classes), default=None
            Cost of each prediction for each sample. Without it the `cost_matrix` of the
            constructor counts.

        Returns
        -------
        float
            Minus the mean cost, so that greater is better; or the accuracy, with a warning if
            the estimator was fitted with per-sample costs that are missing here.
        """
        y_pred = self.predict(X)
        if cost is None and self.cost_matrix is None:
            if self._sample_costs:
                warnings.warn(
                    "The estimator was fitted with per-sample costs, but none reached score, "
                    "which returns the accuracy. Pass cost= (through a search: "
                    "scoring=cost_scorer, with metadata routing enabled).",
                    UserWarning,
                    stacklevel=2,
                )
            return float(accuracy_score(y, y_pred, sample_weight=sample_weight))
        return -mean_cost(
            y,
            y_pred,
            cost=cost,
            cost_matrix=self.cost_matrix,
            classes=self.classes_,
            sample_weight=sample_weight,
        )
