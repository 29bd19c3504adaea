"""Labels of classes and decisions, and groups: in one type, without gaps, and their positions."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _num_samples

from .calls import error_context
from .data import check_no_mask, decode, numpy_arrays, on_host

LABEL_REMEDY = (
    "Labels match if they are equal, and a text never equals a number. Other labels for costs of "
    "any type: LabelledCosts(np.asarray(costs), classes, decisions). If y was encoded, by a "
    "LabelEncoder or by a meta-estimator, encode the labels of the costs with its transform, or "
    "pass an array in the order of classes_. Name classes without samples in classes=, and "
    "decisions that are not the classes in decisions=."
)


def plain_labels(labels: Any) -> NDArray[Any]:
    """Labels of one type as an array of this type; labels of several types as objects."""
    if isinstance(labels, np.ndarray) and labels.dtype.kind != "O":
        return labels
    values = [
        label.item() if isinstance(label, np.generic) and label.dtype.kind not in "mM" else label
        for label in labels
    ]
    plain = np.asarray(values)
    if plain.ndim == 1 and plain.dtype.kind in "US" and {*map(type, values)} - {str, bytes}:
        plain = np.empty(len(values), dtype=object)  # not texts of numbers
        plain[:] = values
    return plain


def same_labels(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays have equal labels, in any order."""
    return set(a.tolist()) == set(b.tolist())


def check_labels(
    y: Any, name: str, remedy: str = "Drop them, also from X and the costs.", *, mixed: bool = False
) -> None:
    """Raise an error for labels that are missing (None, NaN, NA or NaT).

    Unless `mixed`, labels of types without a common order are also an error.
    """
    check_no_mask(y, name)
    try:
        labels = np.asarray(decode(on_host(y)))
    except (TypeError, ValueError):  # ragged lists, which raise an error elsewhere
        return
    if isinstance(y, list | tuple) and labels.dtype.kind == "U":  # a gap is the text "nan"
        labels = np.asarray(y, dtype=object)
    if labels.dtype.kind not in "OfMm" or labels.ndim == 0:
        return
    gaps = ("None", "nan", "<NA>", "NaT")
    missing = (
        np.isnan(labels).ravel().tolist()
        if labels.dtype.kind != "O"
        else [not isinstance(label, str) and str(label) in gaps for label in labels.flat]
    )
    if any(missing):
        raise ValueError(
            f"Input {name} contains NaN or None for {sum(missing)} of {len(missing)} rows, first "
            f"in row {missing.index(True)}; expected a label for each row. {remedy}"
        )
    if labels.dtype.kind == "O" and not mixed:
        sorted_labels(labels.ravel(), name=name)


def check_groups(groups: Any, X: Any) -> NDArray[Any]:
    """A group for each row of X; gaps are an error, as numpy makes one large group of them."""
    remedy = "Give each row whose group is not known a group of its own."
    check_labels(groups, "groups", remedy, mixed=isinstance(groups, list | tuple))
    labels: NDArray[Any] = np.asarray(on_host(groups))
    if labels.ndim == 0 or labels.size != len(labels):
        raise ValueError(f"groups has shape {labels.shape}; expected (n_samples,).")
    if len(labels) != (n := _num_samples(X)):
        raise ValueError(f"groups has {len(labels)} values; expected {n}, one for each row.")
    return labels.ravel()


def as_labels(y: Any, name: str, *, mixed: bool = False) -> NDArray[Any]:
    """Labels in one dimension, checked, as `plain_labels`."""
    check_labels(y, name, mixed=mixed)
    with numpy_arrays():
        y = plain_labels(y) if isinstance(y, list | tuple) else on_host(y)
        with error_context(name):
            labels: NDArray[Any] = column_or_1d(y)
    return plain_labels(labels)


def sorted_labels(*ys: NDArray[Any], name: str) -> NDArray[Any]:
    """All labels of one or several arrays, sorted."""
    is_of_one_kind = len({y.dtype.kind for y in ys}) == 1
    labels = np.concatenate(ys) if is_of_one_kind else plain_labels([*chain(*(map(list, ys)))])
    try:
        return np.unique(labels)
    except TypeError as error:
        types = sorted({type(label).__name__ for label in labels.flat})
        raise ValueError(
            f"{name} contains labels of types {', '.join(types)}, which have no common order; "
            "expected one type, and none missing. Convert them, such as with astype(str)."
        ) from error


def label_index(
    y: NDArray[Any], classes: NDArray[Any], *, name: str, source: str = ""
) -> NDArray[np.intp]:
    """Column of each label; `classes` may be in any order, and `source` says whose they are."""
    column = {label: j for j, label in enumerate(classes.tolist())} if classes.ndim == 1 else {}
    if len(column) < len(classes):
        raise ValueError(f"classes={classes.tolist()} must name each label once, in one dimension.")
    kinds = {y.dtype.kind, classes.dtype.kind}
    if kinds <= {*"biuf"} or (len(kinds) == 1 and "O" not in kinds):  # of a common order
        sorter = np.argsort(classes)
        index = np.searchsorted(classes, y, sorter=sorter)
        index = sorter[np.minimum(index, len(classes) - 1)]
        known = classes[index] == y
    else:
        index = np.array([column.get(label, -1) for label in y.tolist()], dtype=np.intp)
        known = index >= 0
    if not known.all():
        raise ValueError(
            f"{name} contains labels that are not among the classes: "
            f"{shorten(plain_labels([*dict.fromkeys(y[~known].tolist())]))}; expected labels among "
            f"{shorten(classes)}{source}. {LABEL_REMEDY}"
        )
    return index


def shorten(labels: NDArray[Any], most: int = 10) -> str:
    shown = ", ".join(repr(label) for label in labels[:most].tolist())
    return f"[{shown}{', ...' if len(labels) > most else ''}]"
