"""What the rule and the ensemble share: expected costs under probabilities of classifiers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from .._checks.data import numpy_arrays, on_host
from ..costs._problem import Problem, read_problem
from ..costs._reading import CostFunction
from .decision import DecisionMixin, frequencies_of


@dataclass(eq=False, repr=False, kw_only=True)
class BayesDecisionMixin(DecisionMixin):
    """A classifier with probabilities that decides by expected costs.

    Costs are used in the decision only: the costs of `fit`, or a matrix for each row.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "cost_matrix": ["array-like", callable, None],
        "classes": ["array-like", None],
        "decisions": ["array-like", None],
        "train_prior": [Mapping, None],
    }

    __metadata_request__fit: ClassVar[dict[str, Any]] = {"cost": True}
    __metadata_request__predict = {"cost": True}
    __metadata_request__score = {"cost": True}

    cost_matrix: ArrayLike | CostFunction | None = None
    classes: ArrayLike | None = None
    decisions: ArrayLike | None = None
    train_prior: Mapping[Any, float] | None = None

    @abstractmethod
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Compute class probabilities.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities, columns as in `classes_`; 0 for a class that had no training sample.
        """

    @numpy_arrays()
    def _read_problem(
        self, X: Any, y: Any, cost: Any, **of_samples: Any
    ) -> tuple[Problem, NDArray[np.float64] | None]:
        """The samples of `fit`, whose X its classifiers validate; and the frequencies given."""
        data = read_problem(
            X,
            y,
            lambda X, y: (X, column_or_1d(on_host(y), warn=True)),
            cost=cost,
            cost_matrix=self.cost_matrix,
            classes=self.classes,
            decisions=self.decisions,
            owner=type(self).__name__,
            **of_samples,
        )
        if self.train_prior is None:
            return data, None
        return data, frequencies_of(self.train_prior, data.classes, "train_prior")

    def _set_costs(
        self, data: Problem, prior: NDArray[np.float64] | None, unknown: str | None
    ) -> None:
        """Attributes; class frequencies are the `prior`, or unless `unknown` those of rows."""
        count = data.class_weight(data.weight)
        self._prior_unknown = unknown
        self.class_prior_ = count / (np.nan if unknown else count.sum()) if prior is None else prior
        self.classes_, self.decisions_ = data.classes, data.decisions
        self.cost_matrix_ = data.matrix()
        self._keep_costs(data.kind)

    def _class_cost_matrix(self) -> NDArray[np.float64]:
        return self.cost_matrix_
