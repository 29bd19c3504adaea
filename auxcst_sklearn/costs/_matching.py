"""What costs name: the labels of their rows and columns, and how these match others."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._checks.labels import check_spelling, if_encoded, shorten
from ._named import CostArray, Labels, common_names, named


def joined(costs: Any) -> Any:
    """Costs in a list of arrays with names as one array with names; other values unchanged."""
    if not isinstance(costs, list | tuple) or not any(isinstance(c, CostArray) for c in costs):
        return costs
    return named(np.stack([np.asarray(part) for part in costs]), *common_names(*costs))


def column_names(cost: Any, like: Labels | None = None) -> Labels | None:
    """Labels of the columns of costs that have some, None for others.

    Strings are converted to the numbers in the labels `like` that they represent.
    """
    cost = joined(cost)
    if isinstance(cost, CostArray):
        return _in_type(cost.decisions, like)
    columns = getattr(cost, "columns", None)
    if columns is None:
        return None
    labels = np.asarray(list(columns))
    if labels.ndim != 1:
        raise ValueError(
            f"The columns of the costs have several levels, {labels[:2].tolist()} ...; expected "
            "one label for each class. Use columns.get_level_values(...)."
        )
    return _in_type(labels, like)


def row_names(cost: Any, like: Labels | None = None) -> Labels | None:
    """Labels of the rows of a cost matrix, or of matrices of samples, that has some."""
    if isinstance(cost, CostArray):
        return _in_type(cost.classes, like)
    if column_names(cost) is None or not hasattr(cost, "index"):
        return None
    return _in_type(np.asarray(list(cost.index)), like)


def _in_type(labels: Labels | None, like: Labels | None) -> Labels | None:
    """Labels, as numbers where they are the text of those in `like`."""
    if labels is None or like is None or labels.dtype.kind not in "USO":
        return labels
    if like.dtype.kind in "biuf" and set(labels.tolist()) <= {"False", "True"}:
        return np.asarray(labels == "True", like.dtype)  # nullable booleans are read as numbers
    if like.dtype.kind in "iuf":
        try:
            numbers = labels.astype(like.dtype)
        except (TypeError, ValueError):
            return labels
        if all(_spelling(n, labels) == str(s) for n, s in zip(numbers.tolist(), labels)):
            return numbers
    return labels


def _spelling(number: Any, labels: Labels) -> str:
    """A number as a string, "1" for 1.0 if this is one of the labels."""
    short = f"{number:.0f}" if isinstance(number, float) else str(number)
    return short if short in labels else str(number)


def same_labels(a: Labels | None, b: Labels | None) -> bool:
    """Whether two sets of labels are the same, numbers or their texts."""
    return (
        a is not None and b is not None and set(map(str, a.tolist())) == set(map(str, b.tolist()))
    )


def same_label_kind(labels: Labels, y: Labels) -> bool:
    """Whether the labels of costs and the labels of samples are both strings, or both not."""
    return (labels.dtype.kind in "US") == (y.dtype.kind in "OUS")


def column_positions(labels: Labels, wanted_labels: Labels, name: str) -> list[int]:
    """Position of each wanted label among the labels; texts match numbers by their string."""
    wanted, encoded = wanted_labels.tolist(), if_encoded(wanted_labels, labels)
    if labels.dtype.kind in "US" and wanted_labels.dtype.kind in "biuf":
        labels = labels == "True" if set(labels.tolist()) <= {"False", "True"} else labels
    if labels.dtype.kind in "US" and wanted_labels.dtype.kind not in "USO":
        # If a meta-estimator has encoded labels, "10" may be at position 2, and still match 10.
        if len(wanted) > 10 and wanted == list(range(len(wanted))):
            raise ValueError(
                f"{name} are texts, {shorten(labels)}, but the classes are the numbers "
                f"{shorten(wanted_labels)}, perhaps encoded by a meta-estimator; texts sort in "
                "another order. Use numbers as column labels, or an array in the order of the "
                "classes."
            )
        wanted = [_spelling(label, labels) for label in wanted]
    place = {label: i for i, label in enumerate(labels.tolist())}
    if set(place) != set(wanted) or len(place) != len(labels):
        check_spelling(labels, wanted_labels, name)
        missing = [label for label in wanted if label not in place]
        remedy = encoded or "Rename the labels, or name all classes in classes=."
        raise ValueError(
            f"{name} are {shorten(labels)}; expected each class once: {shorten(wanted_labels)}. "
            f"{f'Missing: {missing[:10]}. ' if missing else ''}{remedy}"
        )
    return [place[label] for label in wanted]
