"""From the arguments of `fit` to a training set and a validation set."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from .._checks.frames import check_in_memory
from .._checks.labels import as_labels, check_labels, label_index, shorten, sorted_labels
from .._checks.rows import check_row_order
from .._checks.weights import check_weight
from .._training.training_set import TrainingSet
from ..costs._decisions import find_decisions
from ..costs._source import find_classes, resolve_costs, warn_if_order_is_lost


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
        named = self.classes_ if resume else classes
        named = self.decisions if named is None else named
        warn_if_order_is_lost(cost, self.cost_matrix, named, y=y)
        X, y = self._validate(X, y, reset=not resume)
        check_classification_targets(y)
        if not resume:
            self.classes_ = find_classes(y, classes, cost, self.cost_matrix, self.decisions)
        elif classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
                f"continues with, {self.classes_.tolist()}; expected the same, or None."
            )
        label = label_index(y, self.classes_, name="y").astype(np.int64)
        found = find_decisions(self.cost_matrix, self.decisions, self.classes_)
        decisions = self.classes_ if found is None else found
        if resume and not np.array_equal(decisions, self.decisions_):
            raise ValueError(
                f"The costs have the columns {shorten(decisions)}, but training continues with the "
                f"decisions {shorten(self.decisions_)}; expected the same, in this order."
            )
        self.decisions_ = decisions
        costs = resolve_costs(cost, self.cost_matrix, label, self.classes_, found)
        if groups is not None:
            groups = np.asarray(groups)
            if groups.ndim == 0 or groups.size != len(groups):
                raise ValueError(
                    f"groups has shape {groups.shape}; expected (n_samples,), one for each row."
                )
            groups = groups.ravel()
            sorted_labels(groups, name="groups")
            check_consistent_length(X, groups)
        self._sample_costs, self._known_costs = cost is not None, costs.matrices is not None
        weight = check_weight(sample_weight, X)
        data = TrainingSet(X, label, costs.rows, costs.per_class, weight, costs.matrices, groups)
        if self._decision_labels is None:
            data.warn_if_truth_is_not_cheapest(self.classes_)
        return data

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
            costs = resolve_costs(
                cost_val, self.cost_matrix, label, self.classes_, self._decision_labels
            )
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
        return TrainingSet(X, label, costs.rows, costs.per_class, weight, costs.matrices)

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Rows, and labels if given, as arrays."""
        if reset:
            self._inputs = self._make_inputs()
        return self._inputs.validate(self, X, y, reset=reset)
