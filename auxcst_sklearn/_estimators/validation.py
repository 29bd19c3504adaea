"""From the arguments of `fit` to a training set and a validation set."""

from __future__ import annotations

from abc import abstractmethod
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length

from .._checks.frames import check_in_memory
from .._checks.labels import as_labels, check_labels, label_index, shorten, sorted_labels
from .._checks.rows import check_row_order
from .._checks.weights import check_weight
from .._training.training_set import TrainingSet
from ..costs._account import Costs
from ..costs._named import column_names, same_labels

if TYPE_CHECKING:
    from typing_extensions import Self

# What validation sets.
VALIDATED = {"_inputs", "_known_costs", "_sample_costs", "classes_", "decisions_"}
VALIDATED |= {"n_features_in_", "feature_names_in_"}


class ValidationMixin:
    """Validation of the rows, labels, costs and weights of a network."""

    classes: ArrayLike | None
    classes_: np.ndarray
    cost_matrix: Any
    decisions: ArrayLike | None
    decisions_: np.ndarray
    _decision_labels: Any
    _inputs: Any

    @abstractmethod
    def _make_inputs(self) -> Any:
        """What X becomes, before any X is known."""

    def _validate_sets(
        self,
        X: Any,
        y: Any,
        cost: Any,
        sample_weight: Any,
        groups: Any,
        held_out: tuple[Any, Any, Any, Any] = (None, None, None, None),
        resume: bool = False,
    ) -> tuple[TrainingSet, TrainingSet | None]:
        """The training set, and the validation set if there is one."""
        data = self._validate_training_set(X, y, cost, sample_weight, self.classes, resume, groups)
        return data, self._validate_validation_set(*held_out)

    def _validate_training_set(
        self,
        X: Any,
        y: Any,
        cost: Any,
        sample_weight: Any,
        classes: Any,
        resume: bool,
        groups: Any = None,
    ) -> TrainingSet:
        check_in_memory(cost, "cost")
        check_labels(y, "y")
        check_row_order(X=X, y=y, cost=cost, sample_weight=sample_weight, groups=groups)
        given = y
        X, y = self._validate(X, y, reset=not resume)
        if resume and classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
                f"continues with, {self.classes_.tolist()}; expected the same, or None."
            )
        named = column_names(self.cost_matrix if cost is None else cost)
        goes_on = resume and self.decisions is None
        goes_on = goes_on and (named is None or same_labels(named, self.decisions_))
        decisions = self._decision_labels if goes_on else self.decisions
        known = self.classes_ if resume else classes
        costs = Costs.of_fit(y, cost, self.cost_matrix, known, decisions, given)
        if resume and not np.array_equal(costs.decisions, self.decisions_):
            raise ValueError(
                f"The costs have the columns {shorten(costs.decisions)}, but training continues "
                f"with the decisions {shorten(self.decisions_)}; expected the same, in this order."
            )
        self.classes_, self.decisions_ = costs.classes, costs.decisions
        if groups is not None:
            groups = np.asarray(groups)
            if groups.ndim == 0 or groups.size != len(groups):
                raise ValueError(
                    f"groups has shape {groups.shape}; expected (n_samples,), one for each row."
                )
            groups = groups.ravel()
            sorted_labels(groups, name="groups")
            check_consistent_length(X, groups)
        self._sample_costs, self._known_costs = not costs.per_class, costs.matrices is not None
        return TrainingSet(X, costs, check_weight(sample_weight, X), groups)

    def _validate_validation_set(
        self, X_val: Any, y_val: Any, cost_val: Any, sample_weight_val: Any
    ) -> TrainingSet | None:
        given = {"X_val": X_val, "y_val": y_val, "cost_val": cost_val}
        missing = [name for name in ("X_val", "y_val") if given[name] is None]
        if len(missing) == 2 and cost_val is None and sample_weight_val is None:
            return None
        if self._sample_costs != (cost_val is not None):
            missing.append("cost_val" if cost_val is None else "cost")
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} must be passed too: a validation set has X_val and "
                "y_val, and cost_val exactly where cost is passed."
            )
        check_labels(y_val, "y_val")
        try:
            check_row_order(
                X_val=X_val, y_val=y_val, cost_val=cost_val, sample_weight_val=sample_weight_val
            )
            X, y = self._validate(X_val, y_val, reset=False)
            label = label_index(as_labels(y, "y"), self.classes_, name="y").astype(np.int64)
            decisions, matrix = self._decision_labels, self.cost_matrix
            costs = Costs.of_labels(label, self.classes_, decisions, cost_val, matrix)
            weight = check_weight(sample_weight_val, X)
        except (TypeError, ValueError) as error:
            raise type(error)(f"In the validation set (X_val, y_val, cost_val): {error}") from error
        if self._known_costs != (costs.matrices is not None):
            dimensions = 3 if self._known_costs else 2
            raise ValueError(
                f"cost_val has {5 - dimensions} dimensions, but cost has {dimensions}; expected "
                "the same, because a matrix for each sample decides, and a cost vector does not. "
                "Pass the row of the true class, or the matrix, of each sample in both."
            )
        return TrainingSet(X, costs, weight)

    def _like(self, other: Any) -> Self:
        """Take over what the validation of another estimator has set."""
        for name in VALIDATED & vars(other).keys():
            setattr(self, name, copy(getattr(other, name)))
        return self

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Rows, and labels if given, as arrays."""
        if reset:
            self._inputs = self._make_inputs()
        return self._inputs.validate(self, X, y, reset=reset)
