"""Labels of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import column_or_1d
from sklearn.utils.validation import _num_samples

from .data import check_no_mask, decoded, is_frame, numpy_arrays, select


def check_labels(y: Any, name: str, remedy: str = "Drop them, also from X and the costs.") -> None:
    """Raise an error for labels that are missing (None, NaN, NA or NaT) or of two types."""
    check_no_mask(y, name)
    try:
        labels = np.asarray(decoded(y))
    except (TypeError, ValueError):  # ragged lists, which raise an error elsewhere
        return
    are_listed = isinstance(y, list | tuple) and labels.dtype.kind == "U"
    if are_listed:  # a gap is the text "nan"
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
    if labels.dtype.kind == "O" and not are_listed:
        sorted_labels(labels.ravel(), name=name)


def check_groups(groups: Any, X: Any) -> NDArray[Any]:
    """A group for each row of X; gaps are an error, as numpy makes one large group of them."""
    check_labels(groups, "groups", "Give each row whose group is not known a group of its own.")
    found: NDArray[Any] = np.asarray(groups)
    if found.ndim == 0 or found.size != len(found):
        raise ValueError(f"groups has shape {found.shape}; expected (n_samples,).")
    if len(found) != (n := _num_samples(X)):
        raise ValueError(f"groups has {len(found)} values; expected {n}, one for each row.")
    return found.ravel()


def as_labels(y: Any, name: str) -> NDArray[Any]:
    """Labels in one dimension, checked; objects that are all numbers become numbers."""
    check_labels(y, name)
    with numpy_arrays():
        labels: NDArray[Any] = column_or_1d(y)
    if labels.dtype == object:
        plain = np.asarray(labels.tolist())
        return plain if plain.dtype.kind in "biuf" else labels
    return labels


def sorted_labels(*ys: NDArray[Any], name: str) -> NDArray[Any]:
    """All labels of one or several arrays, sorted."""
    labels = np.concatenate(ys)
    is_object = labels.dtype.kind == "O"
    types = sorted({type(label).__name__ for label in labels.flat}) if is_object else []
    try:
        if "NoneType" not in types:
            return np.unique(labels)
    except TypeError:
        pass
    raise ValueError(
        f"{name} holds labels of types {', '.join(types)}, which have no common order; expected "
        "one type, and none missing. Convert them, such as with astype(str)."
    )


def own_order(y: Any) -> list[Any] | None:
    """All categories of labels that have an order of their own, in this order."""
    if is_frame(y) and y.shape[1] == 1:
        y = select(y, 0)
    dtype: Any = getattr(y, "dtype", None)
    if getattr(dtype, "ordered", False) or type(dtype).__name__ == "Enum":  # pandas, polars
        return dtype.categories.to_list()
    return None


def label_index(y: NDArray[Any], classes: NDArray[Any], *, name: str) -> NDArray[np.intp]:
    """Column of each label; `classes` may be in any order."""
    if classes.ndim != 1 or len(np.unique(classes)) < len(classes):
        raise ValueError(f"classes={classes.tolist()} must name each label once, in one dimension.")
    sorter = np.argsort(classes)
    is_text = [array.dtype.kind in "OUST" for array in (y, classes)]
    if is_text[0] == is_text[1]:
        place = np.searchsorted(classes, y, sorter=sorter)
        index = sorter[np.minimum(place, len(classes) - 1)]
        unknown = np.unique(y[classes[index] != y])
    else:
        unknown = np.unique(y)
    if len(unknown):
        raise ValueError(
            f"{name} holds labels that are not among the classes: {shorten(unknown)}; expected "
            f"labels among {shorten(classes)}. "
            + (if_encoded(y, classes) or "Name every class that can occur in classes=.")
        )
    return index


def if_encoded(y: NDArray[Any], named: NDArray[Any]) -> str:
    """What to do if labels may have been encoded as 0 .. K-1; empty if they are no such numbers."""
    codes = np.arange(len(named))
    if y.dtype.kind not in "iu" or not np.isin(y, codes).all() or np.isin(y, named).all():
        return ""
    return (
        "Rename the labels; or, if y arrived encoded as 0 .. K-1, as from a VotingClassifier or "
        "from cross_val_predict with method='predict_proba', pass costs without labels in the "
        "order of the sorted labels, such as cost_matrix.loc[labels, labels].to_numpy() or "
        "np.asarray(cost), and no classes=."
    )


def shorten(labels: NDArray[Any], most: int = 10) -> str:
    shown = ", ".join(repr(label) for label in labels[:most].tolist())
    return f"[{shown}{', ...' if len(labels) > most else ''}]"
