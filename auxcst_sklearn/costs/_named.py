"""Costs with names: an array that holds the labels of its axes, and how they match others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks.labels import check_spelling, if_encoded, shorten

Labels = NDArray[Any]
Names = tuple["Labels | None", "Labels | None"]  # of the classes and of the decisions

KEEP_NAMES = (np.take, np.flip, np.clip)
# Functions that write to an array, or choose from several, by position.
BY_POSITION = (
    *(np.copyto, np.place, np.put, np.putmask, np.put_along_axis),
    *(np.choose, np.select, np.where),
)


class CostArray(np.ndarray[Any, Any]):
    """Costs whose last two axes have names, or for cost vectors the last one.

    The functions of :mod:`auxcst_sklearn.costs` make it. Estimators, metrics and displays match
    rows and columns by the names. A selection keeps the names of what it selects, and elementwise
    arithmetic keeps them. Arithmetic and assignments are by position, so that two arrays with other
    names, or another order of names, raise a ValueError. Everything else, such as a sum or a new
    shape, returns a plain array; so does ``np.asarray``.

    Parameters
    ----------
    values : array-like
        Costs.
    classes, decisions : array-like, default=None
        Labels of the last axis but one, None for cost vectors, and of the last axis. The array has
        them as attributes.
    """

    classes: Labels | None = None
    decisions: Labels | None = None

    def __new__(
        cls, values: ArrayLike, classes: ArrayLike | None = None, decisions: ArrayLike | None = None
    ) -> Any:
        return named(np.asarray(values), classes, decisions)

    def __array_finalize__(self, source: Any) -> None:
        if isinstance(source, CostArray) and source.shape == self.shape:  # a copy, or a view
            self.classes, self.decisions = source._names

    @property
    def _names(self) -> Names:
        return self.classes, self.decisions

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, CostArray):
            return found
        axes = zip((-2, -1), self._names)
        return named(found, *(selected(labels, axis, self.shape, key) for axis, labels in axes))

    def __setitem__(self, key: Any, value: Any) -> None:
        if [*_arrays(value)]:
            common_names(self[key], value)
        np.asarray(self)[key] = _plain(value)

    def __iter__(self) -> Iterator[Any]:  # numpy's __iter__ does not call __getitem__
        return (self[i] for i in range(len(self)))

    def take(self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise") -> Any:
        if axis is None or out is not None or mode != "raise":
            return _on_plain("take")(self, indices, axis, out, mode)
        return self[(slice(None),) * (axis % self.ndim) + (indices,)]

    def put(self, *args: Any, **kwargs: Any) -> None:
        np.put(self, *args, **kwargs)

    def sort(self, *args: Any, **kwargs: Any) -> None:
        raise ValueError(
            "Costs with names cannot be sorted, partitioned or resized in place: they would lie "
            "below other names. Use np.sort(costs), or another function that returns a new array."
        )

    partition = resize = sort

    def __reduce_ex__(self, protocol: Any) -> Any:  # as a plain array, which joblib can map
        return named, (np.asarray(self), *self._names)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out: Any = kwargs.get("out", ())
        names: Names = (None, None)
        if method == "__call__" and ufunc.signature is None:
            names = common_names(*inputs, *out)
        elif method == "at":
            common_names(inputs[0][inputs[1]], *inputs[2:])
        else:
            _check_target(inputs, out)
        result = getattr(ufunc, method)(*_plain(inputs), **_plain(kwargs))
        if out:
            return out[0] if len(out) == 1 else out
        has_costs = isinstance(result, np.ndarray) and result.dtype != bool
        return named(result, *names) if has_costs else result

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if func in KEEP_NAMES:
            return super().__array_function__(func, types, args, kwargs)
        if func in BY_POSITION:
            common_names(*args, *kwargs.values())
        else:
            _check_target(args, kwargs.get("out"))
        return func(*_plain(args), **_plain(kwargs))

    def __repr__(self) -> str:
        text = np.array2string(np.asarray(self), separator=", ", prefix="CostArray(")
        names = zip(("classes", "decisions"), self._names)
        shown = [f"{name}={shorten(labels)}" for name, labels in names if labels is not None]
        return ",\n          ".join([f"CostArray({text}", *filter(None, [", ".join(shown)])]) + ")"


def _on_plain(name: str) -> Any:
    """A method whose result has no names."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        _check_target(self, [*args[1:], kwargs.get("out")])
        return getattr(np.asarray(self), name)(*_plain(args), **_plain(kwargs))

    return method


for _name in (
    *("argmax", "argmin", "argpartition", "argsort", "choose", "compress", "diagonal", "dot"),
    *("flatten", "ravel", "repeat", "reshape", "squeeze", "swapaxes", "transpose"),
):
    setattr(CostArray, _name, _on_plain(_name))
for _name in ("T", "mT", "flat", "real"):
    _get = property(lambda self, name=_name: getattr(np.asarray(self), name))  # type: ignore[misc]
    setattr(CostArray, _name, _get)


def named(values: NDArray[Any], classes: Any = None, decisions: Any = None) -> NDArray[Any]:
    """The array with names; a plain one if the names of decisions do not fit or occur twice.

    If only the names of classes do not fit, as in one row for each sample, they are left out.
    """
    rows, columns = (-1, -1, *values.shape)[-2:]
    labels = fixed(classes, rows), fixed(decisions, columns)
    if labels[1] is None:
        return values.view(np.ndarray)
    found = values.view(CostArray)
    found.classes, found.decisions = labels
    return found


def common_names(*values: Any) -> Names:
    """The names of arrays and of the arrays in lists; a ValueError if they differ."""
    found: Names = (None, None)
    for array in _arrays(values):
        for axis, a, b in zip(("classes", "decisions"), found, array._names):
            if a is not None and b is not None and a.tolist() != b.tolist():
                raise _different(axis, a.tolist(), b.tolist())
        found = tuple(b if a is None else a for a, b in zip(found, array._names))  # type: ignore[assignment]
    return found


def _check_target(given: Any, out: Any) -> None:
    if [*_arrays(out)] and [*_arrays(given)]:
        raise ValueError("out= has names, but the result has none. Pass out=np.asarray(...).")


def _arrays(value: Any) -> Iterator[CostArray]:
    """The arrays with names among values and in lists, DataFrames included."""
    if hasattr(value, "columns"):
        index = getattr(value, "index", None)
        rows = None if type(index).__name__ == "RangeIndex" else index
        value = named(np.asarray(value), rows, value.columns)
    if isinstance(value, CostArray):
        yield value
    for part in value if type(value) in (list, tuple) else ():
        yield from _arrays(part)


def _plain(value: Any) -> Any:
    """The value with plain arrays in place of named ones."""
    if isinstance(value, CostArray):
        return value.view(np.ndarray)
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)
    return {key: _plain(item) for key, item in value.items()} if type(value) is dict else value


# --------------------------------------------------------------- names of axes


def fixed(labels: Any, size: int) -> Labels | None:
    """Labels of an axis, which no code changes; None if they do not name it."""
    if labels is None:
        return None
    array = labels if isinstance(labels, np.ndarray) else np.array(list(labels))
    if array.shape != (size,) or len(set(array.tolist())) < size:
        return None
    if array.flags.writeable:
        array = array.copy()
        array.flags.writeable = False
    return array


def selected(labels: Labels | None, axis: int, shape: tuple[int, ...], key: Any) -> Labels | None:
    """The labels of an axis of a selection, found by the same selection of their positions."""
    if labels is None:
        return None
    if not isinstance(key, tuple) and len(shape) - max(np.ndim(key), 1) >= -axis:
        return labels  # of an axis that the key does not reach
    position = np.arange(len(labels), dtype=np.min_scalar_type(len(labels)))
    place = np.broadcast_to(position.reshape(-1, *[1] * (-1 - axis)), shape)[key]
    if not place.size:
        return None
    place = np.moveaxis(place[None, None], axis, -1)
    first = place[(0,) * (place.ndim - 1)]
    # An axis without strides repeats its first part.
    parts = place[tuple(slice(None) if step else slice(1) for step in place.strides)]
    return labels[first] if (parts == first).all() else None


def _different(axis: str, a: list[Any], b: list[Any]) -> ValueError:
    remedy = "Select the same labels, or pass np.asarray(b) to combine them by position."
    if len(a) == len(b) and set(a) == set(b):
        order = [b.index(label) for label in a]
        remedy = f"Reorder the second by b[..., {order}{', :' if axis == 'classes' else ''}]."
    return ValueError(
        f"The {axis} of two arrays of costs, a and b, are {shorten(np.array(a))} and "
        f"{shorten(np.array(b))}; expected the same in the same order. {remedy}"
    )


# ------------------------------------------------- names of costs, and other labels


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
