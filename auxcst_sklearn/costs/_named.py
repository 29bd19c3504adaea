"""Costs with names: an array that holds its classes and decisions, and how names are matched."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks.labels import check_spelling, if_encoded, shorten

Labels = NDArray[Any]
Names = tuple["Labels | None", "Labels | None"]


class CostArray(np.ndarray[Any, Any]):
    """Costs whose last two axes have names, or for cost vectors the last one.

    The functions of :mod:`auxcst_sklearn.costs` make it. Estimators, metrics and displays match
    rows and columns by the names. A selection keeps the names of what it selects, and elementwise
    arithmetic keeps them, unless two arrays have different ones. Everything else, such as a sum or
    a new shape, returns a plain array; so does ``np.asarray``.

    Parameters
    ----------
    values : array-like
        Costs.
    classes : array-like, default=None
        Labels of the true classes, for the last axis but one; None for cost vectors.
    decisions : array-like, default=None
        Labels of the decisions, for the last axis; None for a plain array.

    Attributes
    ----------
    classes : ndarray or None
        Labels of the true classes, in the order of the last axis but one.
    decisions : ndarray
        Labels of the decisions, in the order of the last axis.
    """

    # None for the views that numpy makes, until they get the names that they should have.
    classes: Labels | None = None
    decisions: Labels | None = None

    def __new__(
        cls, values: ArrayLike, classes: ArrayLike | None = None, decisions: ArrayLike | None = None
    ) -> Any:
        return named(np.asarray(values), classes, decisions)

    @property
    def _names(self) -> Names:
        return self.classes, self.decisions

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, CostArray):
            return found
        axes = _axes_of_selection(key, self.ndim)
        names: list[Any] = [None, None]
        for place, labels in ((-1, self.decisions), (-2, self.classes)):
            if labels is None or len(axes) < -place or axes[place][0] != self.ndim + place:
                break
            names[place] = labels[axes[place][1]]
        return named(found, *names)

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        if axis is None or out is not None or mode != "raise":
            return np.asarray(self).take(indices, axis, out, mode)
        return self[(slice(None),) * (axis % self.ndim) + (indices,)]

    def copy(self, order: Any = "C") -> Any:
        return named(super().copy(order), *self._names)

    def __copy__(self) -> Any:
        return self.copy("K")

    def __deepcopy__(self, memo: Any) -> Any:
        return self.copy("K")

    def astype(self, dtype: Any, *args: Any, **kwargs: Any) -> Any:
        found = super().astype(dtype, *args, **kwargs)
        return named(found, *self._names) if isinstance(found, CostArray) else found

    def __reduce__(self) -> Any:  # as a plain array, which joblib can map to memory
        return named, (np.asarray(self), *self._names)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.__reduce__()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))
        names: Names = (None, None)
        is_array = isinstance(result, np.ndarray)
        if method == "__call__" and ufunc.signature is None and is_array and result.dtype != bool:
            names = _common_names(inputs)
        out = kwargs.get("out", ())
        for target in out:
            if isinstance(target, CostArray) and not _equal(target._names, names):
                target.classes = target.decisions = None
        if out:
            return out[0] if len(out) == 1 else out
        return named(result, *names) if is_array else result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in (np.take, np.flip):  # which select
            return super().__array_function__(func, types, args, kwargs)
        return func(*_plain(args), **_plain(kwargs))

    def __repr__(self) -> str:
        text = np.array2string(np.asarray(self), separator=", ", prefix="CostArray(")
        names = zip(("classes", "decisions"), self._names)
        shown = [f"{name}={shorten(labels)}" for name, labels in names if labels is not None]
        return ",\n          ".join([f"CostArray({text}", *filter(None, [", ".join(shown)])]) + ")"


@dataclass
class NamedState:
    """Named costs as plain arrays, because skops stores a subclass of arrays without its names."""

    values: NDArray[Any]
    classes: Labels | None
    decisions: Labels | None

    @classmethod
    def of(cls, value: Any) -> Any:
        """The state of a named array; other values unchanged."""
        is_named = isinstance(value, CostArray)
        return cls(np.asarray(value), value.classes, value.decisions) if is_named else value

    @staticmethod
    def restored(value: Any) -> Any:
        """The array of a state; other values unchanged."""
        return named(**vars(value)) if isinstance(value, NamedState) else value


def _on_plain(name: str) -> Any:
    """A method whose result has no names."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(np.asarray(self), name)(*args, **kwargs)

    return method


def _transposed(name: str) -> Any:
    return lambda self: getattr(np.asarray(self), name)


def _in_place(name: str) -> Any:
    """A method that moves values in place, so that the names go."""

    def method(self: Any, *args: Any, **kwargs: Any) -> None:
        self.classes = self.decisions = None
        getattr(np.ndarray, name)(self, *args, **kwargs)

    return method


for _name in (
    *("argmax", "argmin", "argpartition", "argsort", "choose", "compress", "cumprod", "cumsum"),
    *("diagonal", "dot", "flatten", "ravel", "repeat", "reshape", "round", "squeeze", "swapaxes"),
    "transpose",
):
    setattr(CostArray, _name, _on_plain(_name))
for _name in ("partition", "resize", "sort"):
    setattr(CostArray, _name, _in_place(_name))
for _name in ("T", "mT"):
    setattr(CostArray, _name, property(_transposed(_name)))


def named(values: NDArray[Any], classes: Any = None, decisions: Any = None) -> NDArray[Any]:
    """The array with names; a plain one if those of the decisions do not fit or occur twice.

    Where those of the classes do, as in one row for each sample, it has names of decisions only.
    """
    rows, columns = (-1, -1, *values.shape)[-2:]
    labels = _fixed(classes, rows), _fixed(decisions, columns)
    if labels[1] is None:
        return values.view(np.ndarray)
    found = values.view(CostArray)
    found.classes, found.decisions = labels
    return found


def _fixed(labels: Any, size: int) -> Labels | None:
    """Labels of an axis, which nobody changes; None if they do not name it."""
    if labels is None:
        return None
    array = labels if isinstance(labels, np.ndarray) else np.array(list(labels))
    if array.shape != (size,) or len(set(array.tolist())) < size:
        return None
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def _plain(value: Any) -> Any:
    """The value with plain arrays in place of named ones."""
    if isinstance(value, CostArray):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)
    return {key: _plain(item) for key, item in value.items()} if type(value) is dict else value


def _axes_of_selection(key: Any, ndim: int) -> list[tuple[int | None, Any]]:
    """The last axes of a selection: the axis of the array that each one is, and what it selects.

    Axes that may be anywhere in the selection are left out, with those before them.
    """
    parts: list[Any] = [
        part if part is None or isinstance(part, slice) else _index_array(part)
        for part in (key if isinstance(key, tuple) else (key,))
        if part is not Ellipsis
    ]
    widths = [_n_axes(part) for part in parts]
    place = len(parts)
    if isinstance(key, tuple) and any(part is Ellipsis for part in key):
        place = next(i for i, part in enumerate(key) if part is Ellipsis)
    rest = ndim - sum(widths)
    parts[place:place], widths[place:place] = [slice(None)] * rest, [1] * rest
    parts = _open_mesh(parts)
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    scalars = sum(not part.ndim for part in arrays)
    moves = scalars < len(arrays) and (len(arrays) > 1 or arrays[0].ndim > 1)
    axes: list[tuple[int | None, Any]] = []
    for part, axis in zip(parts, np.cumsum([0, *widths]).tolist()):
        if isinstance(part, np.ndarray) and moves:
            axes = []
        elif part is None or not isinstance(part, np.ndarray) or part.ndim:
            axes.append((None if part is None else axis, part))
    return axes


def _index_array(part: Any) -> NDArray[Any]:
    found = np.asarray(part)
    return found if found.size else found.astype(found.dtype if found.dtype == bool else np.intp)


def _n_axes(part: Any) -> int:
    """Number of axes that a part of an index selects from."""
    if isinstance(part, np.ndarray) and part.dtype == bool:
        return part.ndim
    return int(part is not None)


def _open_mesh(parts: list[Any]) -> list[Any]:
    """The index arrays of `np.ix_` as arrays of one dimension in slices; others unchanged."""
    places = [i for i, part in enumerate(parts) if isinstance(part, np.ndarray)]
    n = len(places)
    is_mesh = n > 1 and places[-1] - places[0] == n - 1
    for i, place in enumerate(places):
        is_mesh = is_mesh and parts[place].ndim == n and parts[place].size == parts[place].shape[i]
    if not is_mesh:
        return parts
    return [part.ravel().tolist() if isinstance(part, np.ndarray) else part for part in parts]


def _common_names(inputs: Sequence[Any]) -> Names:
    """The names that arrays have in common; those of a single row are decisions only."""
    arrays = [part for part in inputs if isinstance(part, CostArray) and part.decisions is not None]
    arrays.sort(key=lambda part: part.ndim == 1)
    if not arrays:
        return None, None
    first = arrays[0]._names
    for other in arrays[1:]:
        if not _equal(first, (first[0], other.decisions) if other.ndim == 1 else other._names):
            return None, None
    return first


def _equal(a: Names, b: Names) -> bool:
    return all(np.array_equal(own, other) for own, other in zip(a, b))  # type: ignore[arg-type]


# ---------------------------------------------------------------- what costs name


def column_names(cost: Any, like: Labels | None = None) -> Labels | None:
    """Labels of the columns of costs that have some, None for others.

    Strings are converted to the numbers in the labels `like` that they represent.
    """
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
    """Whether the labels of costs and those of samples are both strings, or both not."""
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
