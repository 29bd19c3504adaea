"""The Bayes decision: costs that are resolved when fitting, and expected costs by probabilities."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from .._checks.array_api import numpy_arrays
from .._checks.labels import check_labels, label_index
from .._checks.rows import check_row_order
from .._checks.weights import check_some_weight, check_weight
from ..costs._decisions import find_decisions
from ..costs._source import (
    Costs,
    find_classes,
    resolve_costs,
    warn_if_order_is_lost,
    warn_if_truth_is_not_cheapest,
)
from ..costs._statistics import CostStatistics
from ..costs._validation import expected_cost
from .prediction import DecisionMixin, warn_of_missing_costs


class Labelled(NamedTuple):
    """Validated labels, their columns in `classes`, and their costs and weights."""

    labels: NDArray[Any]
    label: NDArray[np.intp]
    classes: NDArray[Any]
    costs: Costs
    weight: NDArray[np.float64] | None
    decisions: NDArray[Any] | None = None

    def cost_matrix(self) -> NDArray[Any]:
        """The cost matrix; of other costs the mean of each class."""
        if self.costs.per_class:
            return self.costs.rows
        return CostStatistics.of(
            self.costs.rows, self.label, self.weight, len(self.classes)
        ).class_mean


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
        named = self.decisions if self.classes is None else self.classes
        warn_if_order_is_lost(cost, self.cost_matrix, named, y=y)
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        classes = find_classes(labels, self.classes, cost, self.cost_matrix, self.decisions)
        label = label_index(labels, classes, name="y")  # a label without costs is an error
        decisions = find_decisions(self.cost_matrix, self.decisions, classes)
        costs = resolve_costs(cost, self.cost_matrix, label, classes, decisions)
        if decisions is None:
            warn_if_truth_is_not_cheapest(costs, label, classes)
        weight = check_weight(more.get("sample_weight"), labels)
        if weight is not None:
            check_some_weight(weight)
        return Labelled(labels, label, classes, costs, weight, decisions)

    def _set_costs(self, data: Labelled, cost: Any) -> None:
        self.classes_ = data.classes
        self.decisions_ = data.classes if data.decisions is None else data.decisions
        count = np.bincount(data.label, data.weight, minlength=len(data.classes))
        self.class_prior_ = count / count.sum()
        self.cost_matrix_ = data.cost_matrix()
        self._sample_costs = cost is not None
        self._known_costs = data.costs.matrices is not None

    def predict_cost(
        self, X: ArrayLike, cost: ArrayLike | None = None, *, prior: Any = None
    ) -> np.ndarray:
        probability = self.predict_proba(X)
        if prior is not None:
            probability = self._with_prior(probability, prior)
        if cost is not None:
            return expected_cost(probability, cost, self.classes_, self._decision_labels)
        if self._known_costs:
            warn_of_missing_costs()
        return self._expected_cost(X, probability)

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        """Costs of each decision under given class probabilities, (n, n_decisions), in currency."""
        expected: NDArray[Any] = probability @ self.cost_matrix_
        return expected
