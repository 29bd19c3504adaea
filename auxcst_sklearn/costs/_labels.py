"""Which labels are the classes, and which are the decisions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks.calls import warn
from .._checks.data import is_frame, select
from .._checks.labels import (
    LABEL_REMEDY,
    check_labels,
    plain_labels,
    same_labels,
    shorten,
    sorted_labels,
)
from ._reading import CostArray


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
    if costs.names_decisions:
        return columns
    # A misspelt label, a transposed matrix, texts instead of numbers, or decisions.
    texts = {str(label) for label in classes.tolist()}
    has_same_size, has_texts = len(columns) == len(classes), not texts.isdisjoint(columns.tolist())
    if n_missing < len(classes) or has_same_size or has_texts:
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
        categories = _own_order(y) or []
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


def _own_order(y: Any) -> list[Any] | None:
    """All categories of labels that have an order of their own, in this order."""
    if is_frame(y) and y.shape[1] == 1:
        y = select(y, 0)
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":  # pandas, polars
        return dtype.categories.to_list()
    return None
