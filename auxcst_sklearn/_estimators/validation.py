"""Step 1 of a fit: the arguments of `fit` become validated rows, labels, costs and weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import check_classification_targets

from .._checks.frames import check_in_memory
from .._checks.labels import (
    as_labels,
    check_labels,
    frame_labels,
    label_index,
    shorten,
    sorted_labels,
)
from .._checks.rows import check_row_order
from .._checks.weights import check_weight
from .._inputs import Inputs
from .._training.rows import TrainingSet
from ..costs._decisions import find_decisions
from ..costs._source import find_classes, resolve_costs, warn_if_order_is_lost


@dataclass(frozen=True)
class Given:
    """Rows as the caller passes them; `suffix` ends the names of a validation set."""

    X: Any
    y: Any
    sample_weight: Any = None
    cost: Any = None
    groups: Any = None
    suffix: str = ""

    def check(self) -> None:
        """Raise an error for labels, costs or an order of rows that cannot be meant."""
        check_in_memory(self.cost, f"cost{self.suffix}")
        named = {"X": self.X, "y": self.y, "cost": self.cost, "sample_weight": self.sample_weight}
        check_labels(self.y, f"y{self.suffix}")
        check_row_order(
            **{f"{name}{self.suffix}": value for name, value in named.items()}, groups=self.groups
        )


@dataclass(frozen=True)
class Validated:
    """What `fit` received: rows and labels as arrays, with costs in currency.

    `inputs` are those of the estimator, which have seen the form of X; `has_cost` is whether `fit`
    received costs of samples.
    """

    inputs: Inputs
    classes: NDArray[Any]
    decisions: NDArray[Any]
    rows: TrainingSet
    validation: TrainingSet | None
    has_cost: bool

    @property
    def kind_of_costs(self) -> tuple[bool, bool]:
        """Whether costs of samples were given, and whether as a matrix for each."""
        return self.has_cost, self.rows.matrices is not None


def validate(
    estimator: Any,
    given: Given,
    validation: Given | None = None,
    *,
    classes: Any = None,
    resume: bool = False,
) -> Validated:
    """Validate the rows of a fit; with `resume` against those of the earlier training."""
    given.check()
    named = estimator.classes_ if resume else classes
    named = estimator.decisions if named is None else named
    warn_if_order_is_lost(given.cost, estimator.cost_matrix, named, y=given.y)
    inputs = estimator._inputs if resume else estimator._make_inputs()
    X, y = inputs.validate(estimator, given.X, given.y, reset=not resume)
    check_classification_targets(y)
    if not resume:
        classes = find_classes(y, classes, given.cost, estimator.cost_matrix, estimator.decisions)
    else:
        classes = _known_classes(classes, estimator.classes_)
    found = find_decisions(estimator.cost_matrix, estimator.decisions, classes)
    decisions = classes if found is None else found
    if resume and not np.array_equal(decisions, estimator.decisions_):
        raise ValueError(
            f"The costs have the columns {shorten(decisions)}, but training continues with the "
            f"decisions {shorten(estimator.decisions_)}; expected the same, in this order."
        )
    rows = _training_set(X, y, given, estimator.cost_matrix, classes, found)
    if found is None:
        rows.warn_if_truth_is_not_cheapest(classes)
    validated = Validated(inputs, classes, decisions, rows, None, given.cost is not None)
    if validation is None:
        return validated
    return replace(validated, validation=_validation_set(estimator, validation, validated, found))


def _known_classes(classes: Any, known: NDArray[Any]) -> NDArray[Any]:
    """The classes that training continues with."""
    if classes is not None and not np.array_equal(classes, known):
        raise ValueError(
            f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
            f"continues with, {known.tolist()}; expected the same, or None."
        )
    return known


def _training_set(
    X: Any,
    y: NDArray[Any],
    given: Given,
    cost_matrix: Any,
    classes: NDArray[Any],
    decisions: NDArray[Any] | None,
) -> TrainingSet:
    """Rows with what belongs to each; `decisions` are None where they are the classes."""
    label = label_index(y, classes, name="y").astype(np.int64)
    costs = resolve_costs(given.cost, cost_matrix, label, classes, decisions)
    groups = None if given.groups is None else _checked_groups(given.groups, X)
    weight = check_weight(given.sample_weight, X)
    return TrainingSet(X, label, costs.rows, costs.per_class, weight, costs.matrices, groups)


def _checked_groups(given: Any, X: Any) -> NDArray[Any]:
    groups: NDArray[Any] = np.asarray(given)
    if groups.ndim == 0 or groups.size != len(groups):
        raise ValueError(
            f"groups has shape {groups.shape}; expected (n_samples,), one for each row."
        )
    groups = groups.ravel()
    sorted_labels(groups, name="groups")
    check_consistent_length(X, groups)
    return groups


def given_validation_set(X: Any, y: Any, cost: Any, weight: Any, has_cost: bool) -> Given | None:
    """The validation set that `fit` received; None without one."""
    missing = [name for name, value in (("X_val", X), ("y_val", y)) if value is None]
    if len(missing) == 2 and cost is None and weight is None:
        return None
    if has_cost != (cost is not None):
        missing.append("cost_val" if cost is None else "cost")
    if missing:
        raise ValueError(
            f"{' and '.join(missing)} must be passed too: a validation set has X_val and "
            "y_val, and cost_val exactly where cost is passed."
        )
    return Given(X, y, weight, cost, suffix="_val")


def _validation_set(
    estimator: Any, given: Given, training: Validated, decisions: NDArray[Any] | None
) -> TrainingSet:
    try:
        given.check()
        X, y = training.inputs.validate(estimator, given.X, given.y, reset=False)
        rows = _training_set(
            X, as_labels(y, "y"), given, estimator.cost_matrix, training.classes, decisions
        )
    except (TypeError, ValueError) as error:
        raise type(error)(f"In the validation set (X_val, y_val, cost_val): {error}") from error
    known = training.rows.matrices is not None
    if known != (rows.matrices is not None):
        dimensions = 3 if known else 2
        raise ValueError(
            f"cost_val has {5 - dimensions} dimensions, but cost has {dimensions}; expected "
            "the same, because a matrix for each sample decides, and a cost vector does not. "
            "Pass the row of the true class, or the matrix, of each sample in both."
        )
    return rows


def check_kind_of_costs(found: tuple[bool, bool], of_first: tuple[bool, bool]) -> None:
    """Raise an error for a block whose costs are of another kind than those of the first."""
    if of_first != found:
        kinds = {(False, False): "no cost", (True, False): "a cost vector for each sample"}
        known = "a cost matrix for each sample"
        raise ValueError(
            f"cost: the first block had {kinds.get(of_first, known)}, and this one has "
            f"{kinds.get(found, known)}; expected the same for all blocks."
        )


def check_classes_are_named(classes: Any, cost: Any, cost_matrix: Any) -> None:
    """Raise an error for a first block of a stream that names not all labels."""
    if classes is None and all(frame_labels(c) is None for c in (cost, cost_matrix)):
        raise ValueError(
            "classes must be passed at the first call to partial_fit: all labels that "
            "can ever occur, in classes= here or in the constructor."
        )
