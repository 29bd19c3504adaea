"""The costs of rows: their source, classes and decisions, validated once, and their statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from .._checks.calls import warn
from .._checks.data import check_labels, if_encoded, label_index, shorten, sorted_labels
from ._named import (
    LabelledCosts,
    column_names,
    row_names,
    same_label_kind,
    same_labels,
    stack_costs,
)
from ._statistics import CostStatistics
from ._validation import (
    check_cost,
    check_cost_matrices,
    check_cost_matrix,
    is_per_sample_matrix,
    warn_if_order_is_lost,
    warn_of_permutation,
)


@dataclass(frozen=True)
class Costs:
    """The costs of some rows, validated, with the labels of their axes.

    `values` are the cost vectors of the true classes (n, D), or with `per_class` of all classes
    (K, D). `label` (n,) are the places of the true classes. `matrices` (n, K, D) are costs that
    are known when deciding.
    """

    classes: NDArray[Any]
    decisions: NDArray[Any]
    values: NDArray[Any]
    per_class: bool
    label: NDArray[Any]
    matrices: NDArray[Any] | None = None

    @classmethod
    def of_fit(
        cls,
        y: NDArray[Any],
        cost: Any,
        cost_matrix: Any,
        classes: Any = None,
        decisions: Any = None,
        given: Any = None,
    ) -> Costs:
        """The costs of training rows, from their single source, and warnings of likely mistakes.

        `given` are the labels as the caller has passed them.
        """
        if isinstance(cost, Costs):  # An ensemble has validated them.
            return cost
        if cost is not None and cost_matrix is not None:
            raise ValueError(
                "Got both cost and cost_matrix; expected one source of costs. Set cost_matrix=None "
                "to use per-sample costs, or drop cost=."
            )
        cost, cost_matrix = stack_costs(cost), stack_costs(cost_matrix)
        warn_if_order_is_lost(cost, cost_matrix, decisions if classes is None else classes, y=given)
        check_classification_targets(y)
        found = find_classes(y, classes, cost, cost_matrix, decisions)
        label = label_index(y, found, name="y").astype(np.int64)
        columns = find_decisions(cost, cost_matrix, decisions, found)
        if columns is not None and cost_matrix is None and not is_per_sample_matrix(cost):
            raise ValueError(
                f"The decisions {shorten(columns)} have no costs for each class; expected "
                "cost_matrix, or cost as a matrix for each sample, (n_samples, n_classes, "
                "n_decisions). Cost vectors of samples are for classes."
            )
        if columns is not None and decisions is not None and same_labels(columns, found):
            warn_of_permutation(columns, found)
        costs = cls.of_labels(label, found, columns, cost, cost_matrix)
        costs.warn_if_truth_is_not_cheapest()
        return costs

    @classmethod
    def of_labels(
        cls,
        label: NDArray[Any],
        classes: NDArray[Any],
        decisions: NDArray[Any] | None,
        cost: Any,
        cost_matrix: Any,
    ) -> Costs:
        """Costs of rows with label indices; if `decisions` is None, columns are the classes."""
        columns = classes if decisions is None else decisions
        matrices = None
        if is_per_sample_matrix(cost):
            matrices = check_cost_matrices(
                cost, n_samples=len(label), classes=classes, decisions=decisions
            )
            rows = matrices[np.arange(len(label)), label]
        elif cost is not None:
            rows = check_cost(cost, n_samples=len(label), classes=columns)
        elif cost_matrix is not None:
            rows = check_cost_matrix(cost_matrix, classes=classes, decisions=decisions)
        else:
            rows = 1 - np.eye(len(classes))
        return cls(classes, columns, rows, cost is None, label, matrices)

    @classmethod
    def of_classes(
        cls, classes: NDArray[Any], decisions: NDArray[Any], rows: NDArray[Any]
    ) -> Costs:
        """Costs of classes (K, D), without rows of data."""
        return cls(classes, decisions, rows, True, np.empty(0, np.intp))

    def __len__(self) -> int:
        return len(self.label)

    @property
    def other_decisions(self) -> NDArray[Any] | None:
        """The decisions; None where they are the classes, in their order."""
        return None if np.array_equal(self.decisions, self.classes) else self.decisions

    @property
    def kind(self) -> tuple[bool, bool]:
        """Whether costs of samples were given, and whether as a matrix for each."""
        return not self.per_class, self.matrices is not None

    def part(self, index: NDArray[Any]) -> Costs:
        """The costs of some of the rows."""
        values = self.values if self.per_class else self.values[index]
        matrices = None if self.matrices is None else self.matrices[index]
        return replace(self, values=values, label=self.label[index], matrices=matrices)

    def in_units(self, statistics: CostStatistics) -> Costs:
        """The same costs in units of a network."""
        matrices = self.matrices
        if matrices is not None:
            matrices = statistics.to_units(matrices).astype(np.float32)
        return replace(self, values=statistics.to_units(self.values), matrices=matrices)

    def expected_cost(self, probability: NDArray[Any], cost: Any = None) -> NDArray[np.float64]:
        """Expected cost of each decision (n, D) under class probabilities.

        `cost` holds a matrix for each row; if None, these costs are used.
        """
        matrices = self.matrices
        if cost is not None:
            n, decisions = len(probability), self.other_decisions
            matrices = check_cost_matrices(
                stack_costs(cost), n_samples=n, classes=self.classes, decisions=decisions
            )
        if matrices is None:
            return probability @ self.matrix()
        return np.einsum("nk,nkj->nj", probability, matrices)

    def vectors(self) -> NDArray[Any]:
        """The cost of each decision for each row, given its true class (n, D)."""
        return self.values[self.label] if self.per_class else self.values

    def paid(self, chosen: NDArray[np.intp]) -> NDArray[Any]:
        """The cost of the chosen decision of each row."""
        return self.vectors()[np.arange(len(chosen)), chosen]

    def class_weight(self, weight: NDArray[Any] | None = None) -> NDArray[Any]:
        """Number of rows of each class, or the sum of their weights."""
        return np.bincount(self.label, weight, minlength=len(self.classes)).astype(float)

    def statistics(
        self, weight: NDArray[Any] | None = None, offset: float = 0.0, unit: float = 1.0
    ) -> CostStatistics:
        """Weight and mean cost vector of each class, in a unit."""
        values = self.values / unit - offset / unit
        if self.per_class:
            return CostStatistics(self.class_weight(weight), values, offset, unit)
        found = CostStatistics.of(values, self.label, weight, len(self.classes))
        return replace(found, offset=offset, unit=unit)

    def matrix(self, weight: NDArray[Any] | None = None) -> NDArray[Any]:
        """One matrix for all rows (K, D); costs that differ between rows are averaged by class."""
        return self.values if self.per_class else self.statistics(weight).class_mean

    def warn_if_truth_is_not_cheapest(self) -> None:
        """Warn if for most rows of a class another class costs less than the true one."""
        if not same_labels(self.decisions, self.classes):
            return
        of_label = {str(label): j for j, label in enumerate(self.decisions.tolist())}
        place = np.array([of_label[str(label)] for label in self.classes.tolist()])
        true = place if self.per_class else place[self.label]
        dear = self.values[np.arange(len(self.values)), true] > self.values.min(axis=1)
        if self.per_class:
            dear = dear[self.label]
        n_rows = np.bincount(self.label, minlength=len(self.classes))
        of_class = np.bincount(self.label, dear, minlength=len(n_rows)) / np.maximum(n_rows, 1)
        if not (of_class > 0.5).any():
            return
        labels = self.classes.tolist()
        found = [f"{k!r} ({share:.0%})" for k, share in zip(labels, of_class) if share > 0.5]
        warn(
            "The true class is not the cheapest prediction for most rows of class "
            f"{', '.join(found[:10])}. Perhaps the cost matrix is transposed (rows are true "
            "classes, columns predictions), a cost has the wrong sign (benefits are negative), or "
            f"the labels are in another order than {shorten(self.decisions)}. If the costs are "
            "correct, switch this warning off by warnings.filterwarnings('ignore', 'The true class "
            "is not the').",
        )


# ---------------------------------------------------------------- classes


def find_classes(
    y: NDArray[Any], classes: Any, cost: Any, cost_matrix: Any, decisions: Any = None
) -> NDArray[Any]:
    """All labels, sorted: from the caller, from labelled costs, or from the data."""
    if classes is not None:
        found = np.array(classes)
        if found.ndim != 1 or not np.array_equal(np.unique(found), found):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} must list each label once, in sorted "
                "order, as classes_ does everywhere in scikit-learn. For costs in another order, "
                "use a DataFrame with the labels as columns."
            )
    else:
        found = np.unique(y)
        labels = labels_of_rows(_named_rows(cost, cost_matrix), found)
        if labels is None:
            labels = column_names(cost_matrix if cost is None else cost, like=found)
            if decisions is not None and labels is not None and not np.isin(found, labels).all():
                labels = None  # They name decisions.
        if labels is not None and same_label_kind(labels, y):
            found = _labels_of_costs(cost, cost_matrix, labels, found)
    if len(found) < 2:
        source = "y" if classes is None else f"classes={np.asarray(classes).tolist()}"
        raise ValueError(
            f"{source} holds 1 class only, {found.tolist()}; a classifier needs at least two. If "
            "the others have no sample here, name all classes in classes=."
        )
    return found


def _labels_of_costs(
    cost: Any, cost_matrix: Any, labels: NDArray[Any], present: NDArray[Any]
) -> NDArray[Any]:
    """Take the classes from the labels of the costs, in the type of the labels in y."""
    name = "cost_matrix" if cost is None else "cost"
    is_named = isinstance(cost_matrix if cost is None else cost, LabelledCosts)
    named = f"The classes of {name}" if is_named else f"The columns of {name}"
    missing = np.setdiff1d(present, labels)
    if len(missing):
        raise ValueError(
            f"{named} are {labels.tolist()}, but y also holds {missing.tolist()}; expected a "
            "column for every class. "
            + (
                if_encoded(present, labels)
                or "Add the missing columns, or rename those that stand for these classes. Columns "
                "that are decisions need an index that holds the classes, or decisions=."
            )
        )
    if cost is not None and not is_named and len(unseen := np.setdiff1d(labels, present)):
        warn(
            f"cost has columns for classes of which y holds no sample: {shorten(unseen)}. If they "
            "are classes, name all classes in classes=; if not, such as an identifier, leave them "
            "out of cost."
        )
    found = np.unique(labels)
    if present.dtype.kind in "biu" and np.array_equal(found, found.astype(present.dtype)):
        found = found.astype(present.dtype)
    return found


def labels_of_evaluation(
    cost: Any, cost_matrix: Any, classes: Any, decisions: Any, given: Mapping[str, Any], *ys: Any
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """Labels of rows and columns where predictions are known; None for columns of the classes.

    `given` are the true labels and the predictions; `ys` are their validated arrays.
    """
    costs = cost_matrix if cost is None else cost
    of_rows = labels_of_rows(_named_rows(cost, cost_matrix), ys[0])
    if decisions is None and of_rows is None:
        if classes is None:
            classes = column_names(costs, like=ys[0])
        if classes is None:
            warn_if_order_is_lost(cost, cost_matrix, **given)
            classes = sorted_labels(*ys, name=" or ".join(given))
        return np.asarray(classes), None
    rows = of_rows if classes is None else np.asarray(classes)
    if rows is None and isinstance(costs, LabelledCosts):
        rows = row_names(_named_rows(cost, cost_matrix), like=ys[0])
    if rows is None:
        rows = np.unique(ys[0])
    return rows, find_decisions(cost, cost_matrix, decisions, rows)


# ---------------------------------------------------------------- decisions


def find_decisions(
    cost: Any, cost_matrix: Any, decisions: Any, classes: NDArray[Any]
) -> NDArray[Any] | None:
    """Labels of the cost columns; None where they are the classes, in their order."""
    if decisions is not None:
        labels = np.asarray(np.asarray(decisions).tolist())  # numbers among texts are texts
        check_labels(labels, "decisions")
        if labels.ndim != 1 or len(np.unique(labels)) < max(len(labels), 1):
            raise ValueError(
                f"decisions={labels.tolist()} must name each column of the costs once, in one "
                "dimension."
            )
        return None if np.array_equal(labels, classes) else labels
    costs = _named_rows(cost, cost_matrix)
    columns = column_names(costs, like=classes)
    if columns is None or labels_of_rows(costs, classes) is None:
        return None
    names = {str(label) for label in columns.tolist()}
    missing = [label for label in classes.tolist() if str(label) not in names]
    # A misspelt label, a transposed matrix, encoded labels, or decisions.
    may_be_classes = len(columns) == len(classes) and not isinstance(costs, LabelledCosts)
    if 0 < len(missing) < len(classes) or (missing and may_be_classes):
        name = "cost_matrix" if cost is None else "cost"
        raise ValueError(
            f"The columns of {name} are {shorten(columns)}, and there is none for "
            f"{shorten(np.asarray(missing))} of the classes {shorten(classes)}. Rename the labels; "
            "or, if they are decisions, name them in decisions=."
        )
    return column_names(costs)


def _named_rows(cost: Any, cost_matrix: Any) -> Any:
    """Costs whose rows may have names of classes: an index of costs per sample names samples."""
    if cost is None:
        return cost_matrix
    return cost if isinstance(cost, LabelledCosts) and cost.ndim == 3 else None


def labels_of_rows(costs: Any, present: NDArray[Any]) -> NDArray[Any] | None:
    """The labels of the rows of matrices, if they name the classes and the columns do not.

    They get the type of the labels in `present`, and must name all of these labels.
    """
    columns, rows = column_names(costs, like=present), row_names(costs, like=present)
    if columns is None or rows is None or set(rows.tolist()) == set(columns.tolist()):
        return None
    if isinstance(costs, LabelledCosts):
        return rows
    named = set(map(str, rows.tolist()))
    return rows if {str(label) for label in present.tolist()} <= named else None
