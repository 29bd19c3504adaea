"""Names of the axes of costs: what a selection keeps, and what two arrays have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks.labels import shorten

Labels = NDArray[Any]
Names = tuple["Labels | None", "Labels | None"]  # of the classes and of the decisions


def fixed(labels: Any, size: int) -> Labels | None:
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


def common(names: Iterable[Names]) -> Names:
    """The names that arrays have in common; a ValueError if they differ."""
    found: Names = (None, None)
    for other in names:
        for axis, a, b in zip(("classes", "decisions"), found, other):
            if a is not None and b is not None and a.tolist() != b.tolist():
                raise _different(axis, a.tolist(), b.tolist())
        found = tuple(b if a is None else a for a, b in zip(found, other))  # type: ignore[assignment]
    return found


def _different(axis: str, a: list[Any], b: list[Any]) -> ValueError:
    remedy = "Select the same labels, or pass np.asarray(b) to combine them by position."
    if len(a) == len(b) and set(a) == set(b):
        order = [b.index(label) for label in a]
        remedy = f"Reorder the second by b[..., {order}{', :' if axis == 'classes' else ''}]."
    return ValueError(
        f"The {axis} of two arrays of costs, a and b, are {shorten(np.array(a))} and "
        f"{shorten(np.array(b))}; expected the same in the same order. {remedy}"
    )
