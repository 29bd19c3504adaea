"""Decisions: the labels of the cost columns, where they are not the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks.labels import check_labels, frame_labels, shorten


def find_decisions(
    cost_matrix: Any, decisions: ArrayLike | None, classes: NDArray[Any]
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
    columns = frame_labels(cost_matrix)
    if columns is None or labels_of_rows(cost_matrix, classes) is None:
        return None
    names = {str(label) for label in columns.tolist()}
    missing = [label for label in classes.tolist() if str(label) not in names]
    if 0 < len(missing) < len(classes):  # a label is misspelt, or the matrix is transposed
        raise ValueError(
            f"The columns of cost_matrix, {shorten(columns)}, name some of the classes "
            f"{shorten(classes)}, but not {missing}; expected all of them, or none. Rename the "
            "columns; or, if they are decisions, name them in decisions=."
        )
    return columns


def labels_of_rows(cost_matrix: Any, present: NDArray[Any]) -> NDArray[Any] | None:
    """The index of a DataFrame of costs, if it names the classes and the columns do not.

    Its labels are in the type of those that are `present`, all of which it must name.
    """
    if frame_labels(cost_matrix) is None or not hasattr(cost_matrix, "index"):
        return None
    columns = frame_labels(cost_matrix, like=present)
    rows = frame_labels(cost_matrix.T, like=present)
    if columns is None or rows is None or set(rows.tolist()) == set(columns.tolist()):
        return None
    named = set(map(str, rows.tolist()))
    return rows if {str(label) for label in present.tolist()} <= named else None
