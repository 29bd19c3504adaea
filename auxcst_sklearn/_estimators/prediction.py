"""Predictions of a cost-sensitive network: costs, classes, decisions, scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from .._checks.array_api import numpy_arrays
from .._checks.decorators import available_if
from .._checks.warn import warn
from ..costs._validation import expected_cost, is_per_sample_matrix
from ..metrics import check_evaluated, mean_cost


def warn_of_missing_costs() -> None:
    """Warn, at the caller of the package, that a model of known costs decides without them."""
    warn(
        "The estimator was fitted with a cost matrix for each sample, but decides by the mean "
        "costs of the classes, because none reached it. Pass cost= of shape (n_samples, n_classes, "
        "n_classes), also to the predict of a Pipeline; that of a search takes no costs: call "
        "search.best_estimator_.predict(X, cost=C).",
    )


class DecisionMixin(ClassifierMixin):
    """Decisions and scores of a classifier that estimates the cost of each prediction."""

    classes_: NDArray[Any]
    cost_matrix: Any
    _sample_costs: bool

    @abstractmethod
    def predict_cost(self, X: ArrayLike, cost: ArrayLike | None = None) -> np.ndarray:
        """Estimated costs, (n_samples, n_classes)."""

    def _has_probabilities(self) -> bool:
        """Whether decisions can use the costs of each row, by class probabilities."""
        return True

    def predict(self, X: ArrayLike, cost: ArrayLike | None = None) -> np.ndarray:
        """Predict the class with the smallest estimated cost.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.
        cost : array-like of shape (n_samples, n_classes, n_classes), default=None
            A cost matrix for each sample, as in `predict_cost`.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        return self._cheapest(self.predict_cost(X, cost))

    def _cheapest(self, cost: np.ndarray) -> np.ndarray:
        """Labels with the smallest estimated cost."""
        if np.isnan(cost).any():  # as of NaN in X with assume_finite
            unknown = np.isnan(cost).any(axis=1)
            raise ValueError(
                f"The estimated costs are NaN for {np.count_nonzero(unknown)} of {len(cost)} rows, "
                f"first for row {unknown.argmax()}, which allow no decision. Check these rows of X."
            )
        labels: NDArray[Any] = self.classes_[cost.argmin(axis=1)]
        return labels

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
        cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
                (n_samples, n_classes, n_classes), default=None
            With two dimensions, the cost of each prediction for each sample, used only to score the
            predictions. With three, a cost matrix for each sample, used to decide, as in `predict`,
            and to score. Without it, `cost_matrix` of the constructor is used.

        Returns
        -------
        float
            Minus the mean cost, so that greater is better; or the accuracy, with a warning if
            the estimator was fitted with per-sample costs that are missing here.
        """
        check_evaluated(X, y, cost, self.cost_matrix, sample_weight)
        known = is_per_sample_matrix(cost) and self._has_probabilities()
        y_pred = self.predict(X, cost if known else None)
        if cost is None and self.cost_matrix is None:
            if self._sample_costs:
                warn(
                    "The estimator was fitted with per-sample costs, but none reached score, which "
                    "returns the accuracy. Pass cost=. A Pipeline or a search passes it on only "
                    "with sklearn.set_config(enable_metadata_routing=True), a search also needs "
                    "scoring=cost_scorer.",
                )
            with numpy_arrays():
                return float(accuracy_score(y, y_pred, sample_weight=sample_weight))
        return -mean_cost(
            y,
            y_pred,
            cost=cost,
            cost_matrix=self.cost_matrix if cost is None else None,
            classes=self.classes_,
            sample_weight=sample_weight,
        )


class CostPredictionMixin(DecisionMixin):
    """Predictions from the cost estimates of the heads."""

    loss: Any
    _known_costs: bool

    @abstractmethod
    def _predict_heads(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        """Estimated costs of the output, or of every head, first hidden layer to output."""

    @abstractmethod
    def _predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Class probabilities, for losses that have them."""

    @abstractmethod
    def _has_probabilities(self) -> bool:
        """Whether the loss has class probabilities."""

    @available_if(lambda self: self._has_probabilities())
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Class probabilities, after the temperature.

        Only for losses with class probabilities: "bayes_risk", "cross_entropy", and subclasses of
        :class:`~auxcst_sklearn.losses.ProbabilisticLoss`.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns as in `classes_`.
        """
        return self._predict_proba(X)

    @available_if(lambda self: not self._has_probabilities())
    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Minus the estimated costs: larger values mean better classes.

        Only for losses without class probabilities. Where there are probabilities, the order of
        rows by costs adds nothing to theirs, and calibration, which reads a decision function as a
        logit, would be wrong by the threshold of the decision; scikit-learn then uses
        `predict_proba`.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes) or (n_samples,)
            For two classes one column: the estimated cost of ``classes_[0]`` minus that of
            ``classes_[1]``, positive if the second is predicted.
        """
        values = self._learnt_cost(X)
        return values[:, 0] - values[:, 1] if values.shape[1] == 2 else -values

    def predict_cost(self, X: ArrayLike, cost: ArrayLike | None = None) -> np.ndarray:
        """Estimate the cost of each prediction.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Examples.
        cost : array-like of shape (n_samples, n_classes, n_classes), default=None
            A cost matrix for each sample, row = true class, column = prediction, both in the order
            of `classes_`, if costs are known when deciding; the loss must have class probabilities.
            None for the learnt costs.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Estimated costs, in the currency of the costs, columns as in `classes_`.

        Raises
        ------
        ValueError
            If `cost` is not as described, or the loss has no class probabilities.
        """
        if cost is None:
            estimate = self._learnt_cost(X)
            if self._known_costs and self._has_probabilities():
                warn_of_missing_costs()
            return estimate
        check_is_fitted(self)
        if not self._has_probabilities():
            raise ValueError(
                f"cost= decides by class probabilities, but loss={self.loss!r} has none; use "
                "loss='bayes_risk' or 'cross_entropy', or leave cost out."
            )
        return expected_cost(self._predict_proba(X), cost, self.classes_)

    def _learnt_cost(self, X: ArrayLike) -> np.ndarray:
        return self._predict_heads(X, every_head=False)[0]

    def staged_predict_cost(self, X: ArrayLike) -> Iterator[np.ndarray]:
        """Estimate the costs from each head in turn, first hidden layer to output.

        Layers with ``alpha = 0`` have no head, and are skipped.

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
            yield self._cheapest(cost)
