"""The source of costs: per-sample costs, a cost matrix, or 1 for every mistake."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .._checks.labels import (
    frame_labels,
    if_encoded,
    own_order,
    same_label_kind,
    shorten,
    sorted_labels,
)
from .._checks.warn import warn
from ._decisions import labels_of_rows
from ._validation import check_cost, check_cost_matrices, check_cost_matrix, is_per_sample_matrix


def find_classes(
    y: np.ndarray, classes: Any, cost: Any, cost_matrix: Any, decisions: Any = None
) -> np.ndarray:
    """All labels, sorted: from the caller, from labelled costs, or from the data."""
    if classes is not None:
        found = np.array(classes)
        if found.ndim != 1 or not np.array_equal(np.unique(found), found):
            raise ValueError(
                f"classes={_plain(classes)} must list each label once, in sorted order, as "
                "classes_ does everywhere in scikit-learn. For costs in another order, use a "
                "DataFrame with the labels as columns."
            )
    else:
        found = np.unique(y)
        labels = labels_of_rows(cost_matrix, found) if cost is None else None
        if labels is None:
            labels = frame_labels(cost_matrix if cost is None else cost, like=found)
            if decisions is not None and labels is not None and not np.isin(found, labels).all():
                labels = None  # which are those of the decisions
        if labels is not None and same_label_kind(labels, y):
            name = "cost_matrix" if cost is None else "cost"
            found = _labels_of_costs(name, labels, found)
    if len(found) < 2:
        source = "y" if classes is None else f"classes={_plain(classes)}"
        raise ValueError(
            f"{source} holds 1 class only, {found.tolist()}; a classifier needs at least two. If "
            "the others have no sample here, name all classes in classes=."
        )
    return found


def _plain(classes: Any) -> Any:
    return np.asarray(classes).tolist()


def warn_if_order_is_lost(cost: Any, cost_matrix: Any, classes: Any = None, **labels: Any) -> None:
    """Warn of labels with an order other than sorted, if nothing names the columns of the costs.

    Labels have one if they say so, or if they are strings and their costs are those of an order.
    """
    costs = cost_matrix if cost is None else cost
    if costs is None or classes is not None or frame_labels(costs) is not None:
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
                f"{expected}. Pass costs as a DataFrame with these labels (ordinal_cost_matrix "
                "returns one for a list of labels), or name the columns of an array in classes=.",
            )
        if not categories and (cost is None or is_per_sample_matrix(cost)) and _of_order(costs):
            strings = {label for label in np.asarray(y).ravel().tolist() if isinstance(label, str)}
            if strings:
                warn(
                    "The costs without labels grow with the distance from the diagonal, as those "
                    f"of ordered classes, but the labels in {name} are strings, and the columns "
                    f"are in alphabetical order: {sorted(strings)}. Pass costs as a DataFrame with "
                    "labels, such as ordinal_cost_matrix(labels), or name the columns in classes=."
                )
                return


def _of_order(costs: Any) -> bool:
    """Whether costs grow with the distance from the diagonal, in each row and column."""
    try:
        if is_per_sample_matrix(costs):
            if any(frame_labels(matrix) is not None for matrix in costs[:1]):
                return False
            costs = np.mean(np.asarray(costs[:100], dtype=np.float64), axis=0)
        matrix = np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):  # an error elsewhere
        return False
    if matrix.ndim != 2 or not 3 <= len(matrix) == matrix.shape[1]:
        return False
    outward = np.where(np.triu(np.ones((len(matrix), len(matrix) - 1))), 1, -1)
    return all((outward * np.diff(part, axis=1) > 0).all() for part in (matrix, matrix.T))


def column_labels(
    cost: Any, cost_matrix: Any, classes: Any, given: dict[str, Any], *labels: np.ndarray
) -> np.ndarray:
    """Labels of the cost columns: as named, those of a DataFrame, or else all labels, sorted.

    `labels` are those in `given`, validated.
    """
    if classes is None:
        classes = frame_labels(cost_matrix if cost is None else cost, like=labels[0])
    if classes is None:
        warn_if_order_is_lost(cost, cost_matrix, **given)
        classes = sorted_labels(*labels, name=" or ".join(given))
    return np.asarray(classes)


def _labels_of_costs(name: str, labels: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Take the classes from the labels of the costs, in the type of those in y."""
    missing = np.setdiff1d(present, labels)
    if len(missing):
        raise ValueError(
            f"The columns of {name} are {labels.tolist()}, but y also holds "
            f"{missing.tolist()}; expected a column for every class. "
            + (
                if_encoded(present, labels)
                or "Add the missing columns, or rename those that stand for these classes. Columns "
                "that are decisions need an index that holds the classes, or decisions=."
            )
        )
    if name == "cost" and len(unseen := np.setdiff1d(labels, present)):
        warn(
            f"cost has columns for classes of which y holds no sample: {shorten(unseen)}. If they "
            "are classes, name all classes in classes=; if not, such as an identifier, leave them "
            "out of cost."
        )
    found = np.unique(labels)
    if present.dtype.kind in "biu" and np.array_equal(found, found.astype(present.dtype)):
        found = found.astype(present.dtype)
    return found


class Costs(NamedTuple):
    """Cost rows per sample, or with `per_class` per class; `matrices` (n, K, D) if known."""

    rows: np.ndarray
    per_class: bool
    matrices: np.ndarray | None = None


def resolve_costs(
    cost: Any,
    cost_matrix: Any,
    label: np.ndarray,
    classes: np.ndarray,
    decisions: np.ndarray | None = None,
) -> Costs:
    """Costs of samples with label indices, from their single source.

    Columns are the classes, or the `decisions` if there are any.
    """
    if cost is not None and cost_matrix is not None:
        raise ValueError(
            "Got both cost and cost_matrix; expected one source of costs. Set cost_matrix=None "
            "to use per-sample costs, or drop cost=."
        )
    if is_per_sample_matrix(cost):
        matrices = check_cost_matrices(
            cost, n_samples=len(label), classes=classes, decisions=decisions
        )
        return Costs(matrices[np.arange(len(label)), label], False, matrices)
    if decisions is not None and (cost is not None or cost_matrix is None):
        raise ValueError(
            f"The decisions {shorten(decisions)} have no costs for each class; expected "
            "cost_matrix, or cost as a matrix for each sample, (n_samples, n_classes, "
            "n_decisions). Cost vectors of samples are for classes."
        )
    if cost is not None:
        return Costs(check_cost(cost, n_samples=len(label), classes=classes), False)
    if cost_matrix is not None:
        return Costs(check_cost_matrix(cost_matrix, classes=classes, decisions=decisions), True)
    return Costs(1 - np.eye(len(classes)), True)


def warn_if_truth_is_not_cheapest(costs: Costs, label: np.ndarray, classes: np.ndarray) -> None:
    """Warn if for most rows of a class another class costs less than the true one."""
    rows, true = (costs.rows, np.arange(len(classes))) if costs.per_class else (costs.rows, label)
    dear = rows[np.arange(len(rows)), true] > rows.min(axis=1)
    if costs.per_class:
        dear = dear[label]
    n_rows = np.bincount(label, minlength=len(classes))
    of_class = np.bincount(label, dear, minlength=len(classes)) / np.maximum(n_rows, 1)
    if (of_class > 0.5).any():
        found = [
            f"{k!r} ({share:.0%})" for k, share in zip(classes.tolist(), of_class) if share > 0.5
        ]
        shown = classes.tolist() if len(classes) <= 10 else [*classes[:9].tolist(), "..."]
        warn(
            "The true class is not the cheapest prediction for most rows of class "
            f"{', '.join(found[:10])}. Perhaps the cost matrix is transposed (rows are true "
            "classes, columns predictions), a cost has the wrong sign (benefits are negative), or "
            f"the labels are in another order than {shown}. If the costs are correct, switch this "
            "warning off by warnings.filterwarnings('ignore', 'The true class is not the').",
        )
