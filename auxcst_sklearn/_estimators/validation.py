"""Step 1 of a fit: the arguments of `fit` become validated rows, labels, costs and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks.data import check_in_memory, check_row_order, check_weight
from .._checks.labels import as_labels, check_groups, check_labels, label_index, shorten
from .._inputs import Inputs
from .._training.rows import TrainingSet
from ..costs._account import Costs
from ..costs._matching import column_names, same_labels


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

    `inputs` are those of the estimator, which have seen the form of X.
    """

    inputs: Inputs
    rows: TrainingSet
    validation: TrainingSet | None

    @property
    def kind_of_costs(self) -> tuple[bool, bool]:
        """Whether costs of samples were given, and whether as a matrix for each."""
        return not self.rows.costs.per_class, self.rows.costs.matrices is not None


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
    inputs = estimator._inputs if resume else estimator._make_inputs()
    X, y = inputs.validate(estimator, given.X, given.y, reset=not resume)
    decisions, cost, matrix = estimator.decisions, given.cost, estimator.cost_matrix
    if resume:
        _check_same_classes(classes, estimator.classes_)
        classes = estimator.classes_
        named = column_names(matrix if cost is None else cost)
        if decisions is None and (named is None or same_labels(named, estimator.decisions_)):
            decisions = estimator._decision_labels
    costs = Costs.of_fit(y, cost, matrix, classes, decisions, given.y)
    if resume and not np.array_equal(costs.decisions, estimator.decisions_):
        raise ValueError(
            f"The costs have the columns {shorten(costs.decisions)}, but training continues "
            f"with the decisions {shorten(estimator.decisions_)}; expected the same, in this order."
        )
    groups = None if given.groups is None else check_groups(given.groups, X)
    rows = TrainingSet(X, costs, check_weight(given.sample_weight, X), groups)
    if validation is None:
        return Validated(inputs, rows, None)
    return Validated(inputs, rows, _validation_set(estimator, validation, inputs, costs))


def _check_same_classes(classes: Any, known: NDArray[Any]) -> None:
    if classes is not None and not np.array_equal(classes, known):
        raise ValueError(
            f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
            f"continues with, {known.tolist()}; expected the same, or None."
        )


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


def _validation_set(estimator: Any, given: Given, inputs: Inputs, training: Costs) -> TrainingSet:
    try:
        given.check()
        X, y = inputs.validate(estimator, given.X, given.y, reset=False)
        label = label_index(as_labels(y, "y"), training.classes, name="y").astype(np.int64)
        source = given.cost, estimator.cost_matrix
        costs = Costs.of_labels(label, training.classes, training.other_decisions, *source)
        weight = check_weight(given.sample_weight, X)
    except (TypeError, ValueError) as error:
        raise type(error)(f"In the validation set (X_val, y_val, cost_val): {error}") from error
    known = training.matrices is not None
    if known != (costs.matrices is not None):
        dimensions = 3 if known else 2
        raise ValueError(
            f"cost_val has {5 - dimensions} dimensions, but cost has {dimensions}; expected "
            "the same, because a matrix for each sample decides, and a cost vector does not. "
            "Pass the row of the true class, or the matrix, of each sample in both."
        )
    return TrainingSet(X, costs, weight)


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
    if classes is None and all(column_names(c) is None for c in (cost, cost_matrix)):
        raise ValueError(
            "classes must be passed at the first call to partial_fit: all labels that "
            "can ever occur, in classes= here or in the constructor."
        )
