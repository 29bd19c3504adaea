"""Costs with the labels of their axes, and how these match the labels of samples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks.data import if_encoded, shorten

Labels = NDArray[Any]


class LabelledCosts:
    """Costs with the labels of their true classes and decisions, which nothing changes.

    The functions of :mod:`auxcst_sklearn.costs` return it. Estimators, metrics and displays match
    rows and columns by the labels. Rows are selected as from an array, by an integer, a slice, a
    mask or an array of positions, so that ``train_test_split`` and cross-validation keep the
    labels. For all else, such as arithmetic or a selection of columns, use `values`, an array, and
    make a new value: ``LabelledCosts(1.1 * costs.values, costs.classes, costs.decisions)``.
    ``np.asarray(costs)`` is the same array as `values`.

    Parameters
    ----------
    values : array-like of shape (n_samples, n_classes, n_decisions), (n_classes, n_decisions), \
            (n_samples, n_decisions) or (n_decisions,)
        Cost matrices of samples, a cost matrix, cost vectors of samples, or one of them.
    classes : array-like of shape (n_classes,) or None
        Labels of the true classes, for matrices. None for cost vectors.
    decisions : array-like of shape (n_decisions,)
        Labels of the decisions.

    Attributes
    ----------
    values : ndarray
        The costs, a read-only array.
    classes, decisions : ndarray
        The labels, read-only arrays. `classes` is None for cost vectors.

    Raises
    ------
    ValueError
        If the labels do not fit the shape of the values, or one occurs twice.

    Examples
    --------
    >>> from auxcst_sklearn.costs import LabelledCosts
    >>> costs = LabelledCosts([[0.0, 5.0], [20.0, 0.0]], ["good", "bad"], ["pay", "refuse"])
    >>> LabelledCosts(1.1 * costs.values, costs.classes, costs.decisions)
    LabelledCosts([[ 0. ,  5.5],
                   [22. ,  0. ]],
                  classes=['good', 'bad'], decisions=['pay', 'refuse'])
    """

    __array_ufunc__ = None

    values: NDArray[Any]
    classes: Labels | None
    decisions: Labels

    def __init__(self, values: ArrayLike, classes: ArrayLike | None, decisions: ArrayLike) -> None:
        costs, labels = frozen(np.asarray(values)), {"decisions": _labels(decisions)}
        if classes is not None:
            labels["classes"] = _labels(classes)
        expected = 1 if classes is None else 2
        if costs.ndim not in (expected, expected + 1):
            raise ValueError(
                f"values has shape {costs.shape}; expected a row for each class and a column for "
                "each decision, perhaps for each sample; without classes, cost vectors."
            )
        for axis, (name, found) in enumerate(labels.items(), 1):
            size = costs.shape[-axis]
            if found.shape != (size,) or len(set(found.tolist())) < size:
                raise ValueError(
                    f"{name} are {shorten(found)}; expected {size} labels, each once, because "
                    f"values has shape {costs.shape}. The cost vector of each sample is "
                    "cost_vectors(y, cost_matrix)."
                )
        self.__setstate__({"values": costs, "classes": None} | labels)

    def __setstate__(self, state: dict[str, Any]) -> None:
        for array in state.values():
            if array is not None:
                array.flags.writeable = False
        vars(self).update(state)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{name} cannot be set; expected a new LabelledCosts.")

    def __getitem__(self, rows: Any) -> Any:
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # as scikit-learn selects rows
        if rows is None or isinstance(rows, bool | tuple) or np.ndim(rows) > 1:
            raise TypeError(
                "Only rows can be selected, by positions or a mask. For all else use the array of "
                "values."
            )
        found, classes = self.values[rows], self.classes
        if found.ndim == 0:
            return found
        found.flags.writeable = False  # so that it need not be copied again
        if self.ndim == 2 and classes is not None:
            classes = classes[rows] if found.ndim == 2 else None
        return LabelledCosts(found, classes, self.decisions)

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:  # pandas looks for it
        return map(self.__getitem__, range(len(self)))

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def ndim(self) -> int:
        return self.values.ndim

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.values.dtype

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelledCosts):
            return False
        pairs = ((vars(self)[name], vars(other)[name]) for name in vars(self))
        return all(np.array_equal(a, b) for a, b in pairs)

    def __repr__(self) -> str:
        text = np.array2string(self.values, separator=", ", prefix="LabelledCosts(")
        names = "" if self.classes is None else f"classes={shorten(self.classes)}, "
        names += f"decisions={shorten(self.decisions)}"
        return f"LabelledCosts({text},\n              {names})"


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """An array that the caller cannot change, because it is read-only or a copy."""
    return array.copy() if array.flags.writeable else array


def _labels(labels: Any) -> Labels:
    return frozen(labels if isinstance(labels, np.ndarray) else np.array(list(labels)))


# ------------------------------------------------- names of costs, and other labels


def stack_costs(costs: Any) -> Any:
    """Costs with labels in a list as one value; a ValueError if labels differ; others unchanged."""
    if not isinstance(costs, list | tuple) or not any(isinstance(c, LabelledCosts) for c in costs):
        return costs
    first = next(c for c in costs if isinstance(c, LabelledCosts))
    for other in costs:
        for name in ("classes", "decisions") if isinstance(other, LabelledCosts) else ():
            a, b = getattr(first, name), getattr(other, name)
            if not np.array_equal(a, b):
                raise ValueError(
                    f"The {name} of costs in a list are {a} and {b}; expected the same in the same "
                    "order."
                )
    return LabelledCosts(np.stack(costs), first.classes, first.decisions)


def column_names(cost: Any, like: Labels | None = None) -> Labels | None:
    """Labels of the columns of costs that have some, None for others.

    Strings are converted to the numbers in the labels `like` that they represent.
    """
    cost = stack_costs(cost)
    if isinstance(cost, LabelledCosts):
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
    if isinstance(cost, LabelledCosts):
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
        missing = [label for label in wanted if label not in place]
        remedy = encoded or "Rename the labels, or name all classes in classes=."
        raise ValueError(
            f"{name} are {shorten(labels)}; expected each class once: {shorten(wanted_labels)}. "
            f"{f'Missing: {missing[:10]}. ' if missing else ''}{remedy}"
        )
    return [place[label] for label in wanted]
