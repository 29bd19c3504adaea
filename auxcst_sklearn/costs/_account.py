"""The costs of samples: their classes and decisions, and their statistics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from .._checks.calls import warn
from .._checks.data import (
    LABEL_REMEDY,
    check_labels,
    label_index,
    own_order,
    plain_labels,
    same_labels,
    shorten,
    sorted_labels,
)
from ._labelled import LabelledCosts
from ._reading import AROUND, CostArray, Kind
from ._statistics import CostStatistics


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
        costs: Costs | CostArray | None,
        classes: Any = None,
        decisions: Any = None,
        categories: Any = None,
    ) -> Costs:
        """The costs of training samples, and warnings of likely mistakes.

        `categories` are the labels as the caller has passed them, perhaps with an order.
        """
        if isinstance(costs, Costs):  # An ensemble has validated them.
            return costs
        warn_of_lost_order(costs, decisions if classes is None else classes, y=categories)
        check_classification_targets(y)
        if classes is not None and not np.array_equal(np.unique(classes), np.array(classes)):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} must list each label once, in sorted "
                "order, as classes_. For costs in another order, use a DataFrame with labels."
            )
        labels, columns = find_labels(costs, np.unique(y), classes, decisions)
        if len(labels) < 2:
            source = "y" if classes is None else f"classes={np.asarray(classes).tolist()}"
            raise ValueError(
                f"{source} contains 1 class only, {labels.tolist()}; a classifier needs at least "
                "two. If the others have no sample here, name all classes in classes=."
            )
        if columns is not labels and (costs is None or costs.kind == "vectors"):
            raise ValueError(
                f"The decisions {shorten(columns)} have no costs for each class; expected "
                "cost_matrix, or a cost matrix for each sample. Cost vectors are for classes."
            )
        of_costs = costs is not None and classes is None and costs.decisions is not None
        source = f", the labels of {getattr(costs, 'name', None)}" if of_costs else ""
        label = label_index(y, labels, name="y", source=source)
        account = cls.of_labels(label, labels, columns, costs)
        account.warn_if_truth_is_not_cheapest(of_function=costs is not None and costs.of_function)
        return account

    @classmethod
    def of_labels(
        cls,
        label: NDArray[np.intp],
        classes: NDArray[Any],
        decisions: NDArray[Any],
        costs: CostArray | None,
    ) -> Costs:
        """Costs of samples with label indices; without any costs every mistake costs 1."""
        label, matrices = label.astype(np.int64, copy=False), None
        values = 1 - np.eye(len(classes)) if costs is None else costs.aligned(classes, decisions)
        if costs is not None and costs.is_known:
            matrices, values = values, values[np.arange(len(label)), label]
        per_class = costs is None or costs.kind == "matrix"
        return cls(classes, decisions, values, per_class, label, matrices)

    def __len__(self) -> int:
        return len(self.label)

    @property
    def other_decisions(self) -> NDArray[Any] | None:
        """The decisions; None where they are the classes, in their order."""
        return None if np.array_equal(self.decisions, self.classes) else self.decisions

    @property
    def kind(self) -> Kind:
        """The kind of the costs; 0/1 costs are a matrix."""
        if self.matrices is not None:
            return "matrices"
        return "matrix" if self.per_class else "vectors"

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

    def expected_cost(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """Expected cost of each decision (n, D) under class probabilities."""
        return expected_cost(probability, self.matrix() if self.matrices is None else self.matrices)

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
        statistics = CostStatistics.of(values, self.label, weight, len(self.classes))
        return replace(statistics, offset=offset, unit=unit)

    def matrix(self, weight: NDArray[Any] | None = None) -> NDArray[Any]:
        """One matrix for all rows (K, D); costs that differ between rows are averaged by class."""
        return self.values if self.per_class else self.statistics(weight).class_mean

    def labelled(self) -> LabelledCosts:
        """The costs of samples with their labels, as a user would pass them as `cost`."""
        if self.matrices is None:
            return LabelledCosts.of_own(self.values.view(), None, self.decisions)
        return LabelledCosts.of_own(self.matrices.view(), self.classes, self.decisions)

    def warn_if_truth_is_not_cheapest(self, *, of_function: bool = False) -> None:
        """Warn if for most samples of a class another class costs less than the true one."""
        place = columns_of(self.classes, self.decisions)
        if place is None or len(self.decisions) > len(self.classes):
            return
        true = place if self.per_class else place[self.label]
        dear = self.values[np.arange(len(self.values)), true] > self.values.min(axis=1)
        if self.per_class:
            dear = dear[self.label]
        n_rows = np.bincount(self.label, minlength=len(self.classes))
        of_class = np.bincount(self.label, dear, minlength=len(n_rows)) / np.maximum(n_rows, 1)
        if not (of_class > 0.5).any():
            return
        labels = self.classes.tolist()
        named = [f"{k!r} ({share:.0%})" for k, share in zip(labels, of_class) if share > 0.5]
        warn(
            "The true class is not the cheapest prediction for most rows of class "
            f"{', '.join(named[:10])}. Perhaps {_CHANGED_X if of_function else ''}the cost matrix "
            "is transposed (rows are true "
            "classes, columns predictions), a cost has the wrong sign (benefits are negative), or "
            f"the labels are in another order than {shorten(self.decisions)}. If the costs are "
            "correct, use warnings.filterwarnings('ignore', 'The true class is not the')."
        )


# The first thing to look at where costs are computed from X.
_CHANGED_X = (
    "the function of X got columns that a step before has changed, such as a scaled amount "
    f"({AROUND.removesuffix('.')}), "
)


def expected_cost(probability: NDArray[Any], matrices: NDArray[Any]) -> NDArray[np.float64]:
    """Expected cost of each decision (n, D), by one matrix or a matrix for each sample."""
    if matrices.ndim == 2:
        return probability @ matrices
    return np.einsum("nk,nkj->nj", probability, matrices)


# ----------------------------------------------------------------------------------- labels


def find_labels(
    costs: CostArray | None,
    present: NDArray[Any],
    classes: Any = None,
    decisions: Any = None,
    *,
    of_model: bool = False,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The classes, and the decisions, which are the same array if these are the classes.

    `present` are the sorted labels of the samples. Classes that the caller does not name are the
    labels of the costs, or else the labels of the samples. With `of_model`, the decisions are those
    of a fitted model.
    """
    if classes is None:
        labels = _class_labels(costs, present, named=decisions is not None)
    else:
        labels = plain_labels(classes).copy()
    if decisions is None:
        return labels, _decision_labels(costs, labels)
    columns = plain_labels(decisions).copy()
    check_labels(columns, "decisions", mixed=True)
    if columns.ndim != 1 or len(set(columns.tolist())) < max(len(columns), 1):
        raise ValueError(
            f"decisions={columns.tolist()} must name each column once, in one dimension."
        )
    if np.array_equal(columns, labels):
        return labels, labels
    if same_labels(columns, labels) and not of_model:
        warn(
            f"decisions={shorten(columns)} names the classes in another order than classes_, "
            f"{shorten(labels)}. Columns of costs without labels are taken in this order. Leave "
            "decisions= out if they are in the order of classes_."
        )
    return labels, columns


def own_classes(costs: CostArray | None, *, named: bool) -> NDArray[Any] | None:
    """The labels of the classes of costs; the columns, unless these are `named` decisions."""
    if costs is None:
        return None
    return costs.decisions if costs.classes is None and not named else costs.classes


def _class_labels(costs: CostArray | None, present: NDArray[Any], *, named: bool) -> NDArray[Any]:
    """The classes by the labels of the costs, in the type of the labels of the samples."""
    labels = own_classes(costs, named=named)
    if costs is None or labels is None or same_labels(labels, present):
        return present
    labels = sorted_labels(labels, name=f"The labels of the classes of {costs.name}")
    if {labels.dtype.kind, present.dtype.kind} <= {*"biuf"}:
        same = labels.astype(present.dtype)
        return same if np.array_equal(same, labels) else labels
    return labels


def _decision_labels(costs: CostArray | None, classes: NDArray[Any]) -> NDArray[Any]:
    """The labels of the columns, or the classes, unless the columns are other decisions."""
    if costs is None or costs.classes is None or costs.decisions is None:
        return classes
    columns = costs.decisions
    n_missing = len(set(classes.tolist()) - set(columns.tolist()))
    if not n_missing:
        return classes if len(columns) == len(classes) else columns
    # A misspelt label, a transposed matrix, texts instead of numbers, or decisions.
    may_be_classes = len(columns) == len(classes) and not costs.names_decisions
    if n_missing < len(classes) or may_be_classes:
        raise ValueError(
            f"The columns of {costs.name} are {shorten(columns)}, but the classes are "
            f"{shorten(classes)}. If the columns are decisions, name them in decisions=. "
            f"{LABEL_REMEDY}"
        )
    return columns


def columns_of(classes: NDArray[Any], decisions: NDArray[Any]) -> NDArray[np.intp] | None:
    """The column of each class among the decisions; None if a class is not a decision."""
    column = {label: j for j, label in enumerate(decisions.tolist())}
    columns = [column.get(label, -1) for label in classes.tolist()]
    return None if min(columns) < 0 else np.array(columns)


def warn_of_lost_order(costs: CostArray | None, classes: Any = None, **labels: Any) -> None:
    """Warn of ordered categories in another order than sorted, if nothing names the columns."""
    if costs is None or costs.decisions is not None or classes is not None:
        return
    for name, y in labels.items():
        categories = own_order(y) or []
        try:
            expected = sorted(categories)
        except TypeError:  # which have no sorted order, an error elsewhere
            continue
        if categories != expected:
            warn(
                f"{name} has ordered categories, {categories}, but classes_, and so the columns of "
                "costs without labels, are sorted, as everywhere in scikit-learn: "
                f"{expected}. Pass costs with these labels, as a DataFrame or from "
                "ordinal_cost_matrix(labels), or name the columns of an array in classes=."
            )
