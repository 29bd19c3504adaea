"""Costs: the matrices of the experiments, and the one validation that every part uses.

A *cost vector* holds, for one example, what each possible prediction costs, in the caller's
currency. A *cost matrix* holds one such vector per true class: row = true class, column =
prediction.
"""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state, column_or_1d

__all__ = [
    "cost_vectors",
    "ordinal_cost_matrix",
    "randomized_proportional_cost_matrix",
    "tree_distance_cost_matrix",
]


def cost_vectors(
    y: ArrayLike, cost_matrix: ArrayLike, *, classes: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Give every example the row of the cost matrix that belongs to its class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes)
        Cost of each prediction (column) for each true class (row). The rows and columns of a
        DataFrame are matched by label; those of an array follow `classes`.
    classes : array-like of shape (n_classes,), default=None
        The labels that the rows and columns stand for. By default the labels of a DataFrame,
        else the sorted labels of `y`.

    Returns
    -------
    ndarray of shape (n_samples, n_classes)
        One cost vector per example, columns in the order of `classes`.

    Raises
    ------
    ValueError
        If the matrix does not fit the classes, is not finite, or `y` has a label that is not
        among the classes.

    Examples
    --------
    >>> from auxcst_sklearn.costs import cost_vectors
    >>> cost_vectors(["no", "yes", "yes"], [[0, 1], [5, 0]])
    array([[0., 1.],
           [5., 0.],
           [5., 0.]])
    """
    y = column_or_1d(y)
    if classes is None:
        classes = frame_labels(cost_matrix)
    classes = np.unique(y) if classes is None else np.asarray(classes)
    return check_cost_matrix(cost_matrix, classes=classes)[label_index(y, classes, name="y")]


def randomized_proportional_cost_matrix(
    y: ArrayLike, random_state: int | np.random.RandomState | None = None
) -> NDArray[np.float64]:
    """Draw a cost matrix in which mistakes on rare classes tend to be expensive.

    The diagonal is zero, and the cost of predicting class k for class y is drawn from the
    uniform distribution on [0, 10 n_k / n_y], where n counts the examples of each class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of the training set.
    random_state : int, RandomState instance or None, default=None
        Determines the draw. Pass an int for the same matrix on every call.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Cost matrix, rows and columns in the order of the sorted labels of `y`.

    References
    ----------
    N. Abe, B. Zadrozny, J. Langford, "An iterative method for multi-class cost-sensitive
    learning", KDD 2004.

    Examples
    --------
    >>> from auxcst_sklearn.costs import randomized_proportional_cost_matrix
    >>> randomized_proportional_cost_matrix([0, 0, 0, 1], random_state=0).round(2)
    array([[ 0.  ,  2.38],
           [18.08,  0.  ]])
    """
    count = np.unique(column_or_1d(y), return_counts=True)[1].astype(np.float64)
    random_state = check_random_state(random_state)
    cost_matrix = random_state.uniform(size=(len(count), len(count))) * 10.0
    cost_matrix *= count[np.newaxis, :] / count[:, np.newaxis]
    np.fill_diagonal(cost_matrix, 0.0)
    return cost_matrix


def tree_distance_cost_matrix(paths: Sequence[str | Sequence[str]]) -> NDArray[np.float64]:
    """Count the edges between the leaves of a class tree: near categories are cheap to confuse.

    Parameters
    ----------
    paths : sequence of str or of sequences of str, of length n_classes
        The way from the root to each class, as a tuple of names or one "/"-joined string.
        Siblings are 2 edges apart, cousins 4. Paths that share no first name meet in an
        implied root.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Number of edges between each pair of classes, in the order of `paths`.

    Raises
    ------
    ValueError
        If a path is empty or stands twice.

    Examples
    --------
    >>> from auxcst_sklearn.costs import tree_distance_cost_matrix
    >>> tree_distance_cost_matrix(["animal/cat", "animal/dog", "vehicle/car"])
    array([[0., 2., 4.],
           [2., 0., 4.],
           [4., 4., 0.]])
    """
    nodes = [tuple(path.split("/")) if isinstance(path, str) else tuple(path) for path in paths]
    for path in nodes:
        if not path or not all(path):
            raise ValueError(
                f"paths holds {'/'.join(path)!r}: every path must name at least the class itself, "
                "and no name may be empty. Write e.g. 'animal/cat' or ('animal', 'cat')."
            )
        if nodes.count(path) > 1:
            raise ValueError(
                f"paths holds {'/'.join(path)!r} more than once: two classes at the same place "
                "would cost nothing to confuse. Give every class a name of its own."
            )
    distance = np.zeros((len(nodes), len(nodes)))
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes[:i]):
            shared = next((s for s, (u, v) in enumerate(zip(a, b)) if u != v), min(len(a), len(b)))
            distance[i, j] = distance[j, i] = len(a) + len(b) - 2 * shared
    return distance


def ordinal_cost_matrix(n_classes: int, power: float = 1.0) -> NDArray[np.float64]:
    """Charge a prediction by how many grades it is off: ``abs(i - j) ** power``.

    Parameters
    ----------
    n_classes : int
        Number of ordered classes.
    power : float, default=1.0
        1 for absolute, 2 for squared distances.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
        Cost matrix.

    Raises
    ------
    ValueError
        If `n_classes` is below 1 or `power` is not positive.

    Examples
    --------
    >>> from auxcst_sklearn.costs import ordinal_cost_matrix
    >>> ordinal_cost_matrix(3, power=2)
    array([[0., 1., 4.],
           [1., 0., 1.],
           [4., 1., 0.]])
    """
    if n_classes < 1:
        raise ValueError(f"n_classes must be at least 1, got {n_classes!r}.")
    if not power > 0:
        raise ValueError(f"power must be positive, got {power!r}: use 1 for absolute distances.")
    grade = np.arange(n_classes, dtype=np.float64)
    return np.abs(grade[:, np.newaxis] - grade) ** power


# ------------------------------------------------------------------ validation


def check_cost(cost: Any, *, n_samples: int, classes: NDArray) -> NDArray[np.float64]:
    """Per-sample costs as a finite (n_samples, n_classes) array, columns as in `classes`."""
    values = _finite_2d(cost, "cost", "(n_samples, n_classes)")
    n_rows, n_columns = values.shape
    if n_rows != n_samples:
        if n_rows == n_columns == len(classes):
            raise ValueError(
                f"cost has shape {values.shape}, which is a cost matrix of the {n_rows} classes; "
                f"expected one row per sample, ({n_samples}, {len(classes)}). Pass class-level "
                "costs as cost_matrix=, or expand them with auxcst_sklearn.costs.cost_vectors."
            )
        raise ValueError(
            f"cost has {n_rows} rows, but there are {n_samples} samples; expected shape "
            f"({n_samples}, {len(classes)}). Select the same rows of cost as of X."
        )
    labels = frame_labels(cost)
    if labels is not None:
        return values[:, _positions(labels, classes, "the columns of cost")]
    _check_count(n_columns, classes, f"cost has {n_columns} columns")
    return values


def check_cost_matrix(cost_matrix: Any, *, classes: NDArray) -> NDArray[np.float64]:
    """Class-level costs as a finite (n_classes, n_classes) array, both axes as in `classes`."""
    values = _finite_2d(cost_matrix, "cost_matrix", "(n_classes, n_classes)")
    if values.shape[0] != values.shape[1]:
        raise ValueError(
            f"cost_matrix has shape {values.shape}; expected a square matrix with one row per "
            "true class and one column per prediction. Pass per-sample costs to fit(..., cost=)."
        )
    labels = frame_labels(cost_matrix)
    if labels is not None:
        columns = _positions(labels, classes, "the columns of cost_matrix")
        index = getattr(cost_matrix, "index", None)  # polars has none: rows as the columns
        rows = columns
        if index is not None:
            rows = _positions(np.asarray(list(index)), classes, "the index of cost_matrix")
        return values[np.ix_(rows, columns)]
    _check_count(len(values), classes, f"cost_matrix has shape {values.shape}")
    return values


def label_index(y: NDArray, classes: NDArray, *, name: str) -> NDArray[np.intp]:
    """Column of each label; `classes` may be in any order."""
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
            f"{name} holds labels that are not among the classes: {_shorten(unknown)}; expected "
            f"labels among {_shorten(classes)}. Name every class that can occur in classes=."
        )
    return index


def frame_labels(cost: Any) -> NDArray | None:
    """Column labels of a DataFrame, None for anything else."""
    columns = getattr(cost, "columns", None)
    return None if columns is None else np.asarray(list(columns))


def _finite_2d(cost: Any, name: str, shape: str) -> NDArray[np.float64]:
    try:
        values = np.asarray(cost)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"its values are of type {values.dtype}")
        if np.ma.is_masked(cost):
            raise TypeError("it holds masked values")
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} of type {type(cost).__name__} cannot be read as numbers ({error}); expected "
            f"an array or DataFrame of real costs, of shape {shape}. Got {reprlib.repr(cost)}."
        ) from error
    if values.ndim != 2:
        raise ValueError(
            f"{name} has shape {values.shape}; expected two dimensions, {shape}: the cost of "
            "each possible prediction."
        )
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name} holds {values[row, column]} in row {row}, column {column}, and "
            f"{np.size(finite) - np.count_nonzero(finite)} values that are not finite in all; "
            "expected finite costs. For a forbidden prediction use a large finite cost."
        )
    return values


def _check_count(n_columns: int, classes: NDArray, found: str) -> None:
    if n_columns != len(classes):
        raise ValueError(
            f"{found}, but there are {len(classes)} classes: {_shorten(classes)}. If some "
            "classes have no example here, name all of them in classes=, in sorted order, or use "
            "a DataFrame with the labels as columns."
        )


def _positions(labels: NDArray, classes: NDArray, name: str) -> list[int]:
    """Where each class stands among the labels; text labels match classes by their text."""
    wanted = classes.tolist()
    if labels.dtype.kind in "US" and classes.dtype.kind not in "USO":
        # Where a meta-estimator has encoded labels, "10" may stand at 2, and still match 10.
        if len(wanted) > 10 and wanted == list(range(len(wanted))):
            raise ValueError(
                f"{name} are texts, {_shorten(labels)}, but the classes are the numbers "
                f"{_shorten(classes)}, perhaps encoded by a meta-estimator; texts sort in another "
                "order. Use numbers as column labels, or an array in the order of the classes."
            )
        wanted = [str(label) for label in wanted]
    place = {label: i for i, label in enumerate(labels.tolist())}
    if set(place) != set(wanted) or len(place) != len(labels):
        raise ValueError(
            f"{name} are {_shorten(labels)}; expected each class once: {_shorten(classes)}. "
            "Rename the labels, or name all classes in classes=."
        )
    return [place[label] for label in wanted]


def _shorten(labels: NDArray, most: int = 10) -> str:
    shown = ", ".join(repr(label) for label in labels[:most].tolist())
    return f"[{shown}{', ...' if len(labels) > most else ''}]"
