"""Costs with the labels of their classes and decisions, as an immutable value."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks.data import plain_array
from .._checks.labels import plain_labels, shorten

Labels = NDArray[Any]

REMEDY = "Write LabelledCosts(costs.values * amount, costs.classes, costs.decisions), say."

N_SHOWN = 12  # rows of a table in a notebook


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
        Labels of the decisions. Labels of several types keep them, as in ``[0, 1, "review"]``.

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

    values: NDArray[Any]
    classes: Labels | None
    decisions: Labels

    def __init__(self, values: ArrayLike, classes: ArrayLike | None, decisions: ArrayLike) -> None:
        self._set(frozen(plain_array(values, "values")), classes, decisions)

    @classmethod
    def of_own(cls, values: NDArray[Any], classes: Any, decisions: Any) -> LabelledCosts:
        """Costs in an array that belongs to nobody else, so that it need not be copied."""
        costs = cls.__new__(cls)
        costs._set(values, classes, decisions)
        return costs

    def _set(self, values: NDArray[Any], classes: Any, decisions: Any) -> None:
        decisions = frozen(plain_labels(decisions))
        classes = None if classes is None else frozen(plain_labels(classes))
        axes = {"decisions": decisions} | ({} if classes is None else {"classes": classes})
        if values.ndim not in (len(axes), len(axes) + 1):
            raise ValueError(
                f"values has shape {values.shape}; expected a row for each class and a column for "
                "each decision, perhaps for each sample; without classes, cost vectors."
            )
        for axis, (name, labels) in enumerate(axes.items(), 1):
            size = values.shape[-axis]
            if labels.shape != (size,) or len(set(labels.tolist())) < size:
                raise ValueError(
                    f"{name} are {shorten(labels)}; expected {size} labels, each once, because "
                    f"values has shape {values.shape}. The cost vector of each sample is "
                    "cost_vectors(y, cost_matrix)."
                )
        self.__setstate__({"values": values, "classes": classes, "decisions": decisions})

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
            raise TypeError(f"Only rows can be selected, by positions or a mask. {REMEDY}")
        values, classes = self.values[rows], self.classes
        if values.ndim == 0:
            return values
        if self.ndim == 2 and classes is not None:
            classes = classes[rows] if values.ndim == 2 else None
        return self.of_own(values, classes, self.decisions)

    def _refuse(self, *others: Any, **kwargs: Any) -> Any:
        raise TypeError(f"Costs with labels have no arithmetic. {REMEDY}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _refuse
    __array_ufunc__ = None  # so that arrays leave an operator to the methods above

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
        if copy is None:  # which numpy 1.26 neither passes nor takes
            return np.asarray(self.values, dtype=dtype)
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

    def _repr_html_(self) -> str:
        """A table for notebooks: a row for each true class, or the first rows of many samples."""
        classes = [] if self.classes is None else self.classes.tolist()
        is_single = self.ndim == (2 if classes else 1)
        heads = ([] if is_single else ["sample"]) + (["true class"] if classes else [])
        lines = [_html_row("th", [*heads, *self.decisions.tolist()])]
        rows = self.values.reshape(-1, len(self.decisions))
        for i, costs in enumerate(rows[:N_SHOWN]):
            sample, label = divmod(i, len(classes) or 1)
            names = ([] if is_single else [sample]) + (classes[label : label + 1])
            lines.append(_html_row("td", [*names, *(f"{cost:.6g}" for cost in costs)]))
        rest = f", the first {N_SHOWN} of {len(rows)} rows" if len(rows) > N_SHOWN else ""
        caption = f"LabelledCosts of shape {self.shape}{rest}"
        return f"<table><caption>{caption}</caption>{''.join(lines)}</table>"


def _html_row(tag: str, cells: list[Any]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(str(cell))}</{tag}>' for cell in cells)}</tr>"


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """An array that nobody else changes: read-only and with memory of its own, or a copy."""
    return array if array.flags.owndata and not array.flags.writeable else array.copy()
