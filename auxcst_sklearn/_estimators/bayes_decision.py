"""The Bayes decision: costs that are resolved when fitting, and expected costs by probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from .._checks.calls import numpy_arrays
from .._checks.data import check_row_order, check_some_weight, check_weight
from .._checks.labels import check_labels
from ..costs._account import Costs
from .prediction import DecisionMixin, warn_of_missing_costs


class Labelled(NamedTuple):
    """Validated labels with their costs and weights."""

    labels: NDArray[Any]
    costs: Costs
    weight: NDArray[np.float64] | None


class BayesDecisionMixin(DecisionMixin):
    """A classifier with probabilities that decides by expected costs.

    Costs are used in the decision only: those of `fit`, or a matrix for each row.
    """

    __metadata_request__fit: dict[str, Any] = {"cost": True}
    __metadata_request__predict = {"cost": True}
    __metadata_request__score = {"cost": True}

    classes: ArrayLike | None
    decisions: ArrayLike | None
    cost_matrix_: NDArray[Any]

    # Whether `fit` received costs, and whether as a matrix for each sample.
    _sample_costs = False
    _known_costs = False

    @abstractmethod
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Compute class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns as in `classes_`; 0 for a class that had no training sample.
        """

    @numpy_arrays()
    def _validate_labels(self, X: Any, y: Any, cost: Any, **more: Any) -> Labelled:
        """Labels with their costs; X is validated by the classifiers that learn from it.

        `more` are weights, and other arguments of `fit` for each row.
        """
        check_labels(y, "y")
        check_row_order(X=X, y=y, cost=cost, **more)
        labels = column_or_1d(y, warn=True)
        costs = Costs.of_fit(labels, cost, self.cost_matrix, self.classes, self.decisions, y)
        weight = check_weight(more.get("sample_weight"), labels)
        if weight is not None:
            check_some_weight(weight)
        return Labelled(labels, costs, weight)

    def _set_costs(self, data: Labelled) -> None:
        costs = data.costs
        self.classes_, self.decisions_ = costs.classes, costs.decisions
        count = costs.class_weight(data.weight)
        self.class_prior_ = count / count.sum()
        self.cost_matrix_ = costs.matrix(data.weight)
        self._sample_costs, self._known_costs = not costs.per_class, costs.matrices is not None

    def _class_costs(self) -> Costs:
        return Costs.of_classes(self.classes_, self.decisions_, self.cost_matrix_)

    def predict_cost(
        self, X: ArrayLike, cost: ArrayLike | None = None, *, prior: Any = None
    ) -> np.ndarray:
        probability = self.predict_proba(X)
        if prior is not None:
            probability = self._with_prior(probability, prior)
        if cost is not None:
            return self._class_costs().expected_cost(probability, cost)
        if self._known_costs:
            warn_of_missing_costs()
        return self._expected_cost(X, probability)

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        """Costs of each decision under given class probabilities, (n, n_decisions), in currency."""
        return self._class_costs().expected_cost(probability)
