"""Cost vectors, and the cost matrices of the experiments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from .._checks.labels import as_labels, label_index
from ._labelled import LabelledCosts
from ._labels import find_labels, warn_of_lost_order
from ._problem import Problem
from ._reading import WHEN_DECIDING, read_costs

Path = str | Sequence[str]


def cost_vectors(
    y: ArrayLike, cost_matrix: ArrayLike, *, classes: ArrayLike | None = None
) -> LabelledCosts:
    """Return the cost vector of each sample: the cost matrix row of its class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        True labels.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), or array-like of shape \
            (n_samples, n_classes, n_classes)
        Cost of each prediction (column) for each true class (row); one matrix for all samples, or
        one for each. A DataFrame is matched by its labels; rows and columns of an array follow
        `classes`.
    classes : array-like of shape (n_classes,), default=None
        The labels of the rows and columns. By default the sorted labels of a DataFrame, or
        otherwise of `y`, as in `classes_` of estimators.

    Returns
    -------
    LabelledCosts of shape (n_samples, n_classes)
        One cost vector per sample, columns in the order of `classes`. Estimators and metrics match
        the columns by their labels, `decisions`. The array is `values`.

    Raises
    ------
    ValueError
        If the matrix does not fit the classes, is not finite, or `y` has a label that is not
        among the classes.

    Examples
    --------
    >>> from auxcst_sklearn.costs import cost_vectors
    >>> cost_vectors(["no", "yes", "yes"], [[0, 1], [5, 0]])
    LabelledCosts([[0., 1.],
                   [5., 0.],
                   [5., 0.]],
                  decisions=['no', 'yes'])
    """
    labels = as_labels(y, "y")
    if cost_matrix is None:
        raise ValueError("cost_matrix=None; expected costs of shape (n_classes, n_classes).")
    costs = read_costs(cost_matrix, "cost_matrix", WHEN_DECIDING, len(labels))
    warn_of_lost_order(costs, classes, y=y)
    axes = find_labels(costs, np.unique(labels), classes)
    data = Problem.of(label_index(labels, axes[0], name="y"), *axes, costs)
    return LabelledCosts(data.vectors(), None, data.decisions)


def randomized_proportional_cost_matrix(
    y: ArrayLike, random_state: int | np.random.RandomState | None = None
) -> LabelledCosts:
    """Draw a cost matrix in which mistakes on rare classes tend to be expensive.

    The diagonal is zero, and the cost of predicting class k for class y is drawn from the
    uniform distribution on [0, 10 n_k / n_y], where n counts the samples of each class.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Labels of the training set.
    random_state : int, RandomState instance or None, default=None
        Determines the draw. Pass an int for the same matrix on every call.

    Returns
    -------
    LabelledCosts of shape (n_classes, n_classes)
        Cost matrix, rows and columns in the order of the sorted labels of `y`. The array is
        `values`.

    References
    ----------
    N. Abe, B. Zadrozny, J. Langford, "An iterative method for multi-class cost-sensitive
    learning", KDD 2004.

    Examples
    --------
    >>> from auxcst_sklearn.costs import randomized_proportional_cost_matrix
    >>> randomized_proportional_cost_matrix([0, 0, 0, 1], random_state=0).values.round(2)
    array([[ 0.  ,  2.38],
           [18.08,  0.  ]])
    """
    classes, count = np.unique(as_labels(y, "y"), return_counts=True)
    random = check_random_state(random_state)
    cost_matrix: NDArray[np.float64] = random.uniform(size=(len(count), len(count))) * 10.0
    cost_matrix *= count / count[:, np.newaxis]
    np.fill_diagonal(cost_matrix, 0.0)
    return LabelledCosts(cost_matrix, classes, classes)


def tree_distance_cost_matrix(
    paths: Sequence[Path] | Mapping[Any, Path],
) -> LabelledCosts | NDArray[np.float64]:
    """Count the edges between the leaves of a class tree, so that close classes cost less.

    Parameters
    ----------
    paths : sequence or dict of (str or sequence of str), of length n_classes
        The path from the root to each class, as a tuple of names or one "/"-joined string. Siblings
        are 2 edges apart, cousins 4. Paths with different first names meet in an implied root. The
        keys of a dict are the labels of the classes.

    Returns
    -------
    ndarray or LabelledCosts of shape (n_classes, n_classes)
        Number of edges between each pair of classes, in the order of `paths`. For a dict, costs
        with its labels, which estimators match with `y`.

    Raises
    ------
    ValueError
        If a path is empty, contains something other than names, or occurs twice.

    Examples
    --------
    >>> from auxcst_sklearn.costs import tree_distance_cost_matrix
    >>> tree_distance_cost_matrix(["animal/cat", "animal/dog", "vehicle/car"])
    array([[0., 2., 4.],
           [2., 0., 4.],
           [4., 4., 0.]])
    >>> tree_distance_cost_matrix({"cat": "animal/cat", "car": "vehicle/car"})
    LabelledCosts([[0., 4.],
                   [4., 0.]],
                  classes=['cat', 'car'], decisions=['cat', 'car'])
    """
    labels = list(paths) if isinstance(paths, Mapping) else None
    nodes: list[tuple[str, ...]] = []
    for way in paths.values() if isinstance(paths, Mapping) else paths:
        path = tuple(way.split("/") if isinstance(way, str) else way if np.iterable(way) else ())
        if not path or not all(isinstance(name, str) and name for name in path):
            raise ValueError(
                f"paths contains {way!r}; expected the names of at least the class itself, none of "
                "them empty, such as 'animal/cat' or ('animal', 'cat')."
            )
        if path in nodes:
            raise ValueError(
                f"paths contains {'/'.join(path)!r} more than once: two classes at the same place "
                "would cost nothing to confuse. Give every class a name of its own."
            )
        nodes.append(path)
    distance = np.zeros((len(nodes), len(nodes)))
    for i, a in enumerate(nodes):
        for j, b in enumerate(nodes[:i]):
            shared = next((s for s, (u, v) in enumerate(zip(a, b)) if u != v), min(len(a), len(b)))
            distance[i, j] = distance[j, i] = len(a) + len(b) - 2 * shared
    return distance if labels is None else LabelledCosts(distance, labels, labels)


def ordinal_cost_matrix(
    classes: int | Sequence[Any],
    power: float = 1.0,
    *,
    over_cost: float = 1.0,
    under_cost: float = 1.0,
) -> LabelledCosts | NDArray[np.float64]:
    """Cost matrix of ordered classes, from their distances: ``abs(i - j) ** power``.

    Parameters
    ----------
    classes : int or sequence of length n_classes
        Number of ordered classes, or their labels in this order. Labels that are strings sort
        alphabetically in `classes_`, so pass them all.
    power : float, default=1.0
        1 for absolute, 2 for squared distances.
    over_cost, under_cost : float, default=1.0
        Cost, in currency, of a prediction one class above the true one, and one below it.

    Returns
    -------
    ndarray or LabelledCosts of shape (n_classes, n_classes)
        Cost matrix. For labels, costs with these labels, which estimators match with the labels of
        `y`.

    Raises
    ------
    ValueError
        If there is no class, a label occurs twice, `power` is not positive, `over_cost` or
        `under_cost` is negative, or a cost would be infinite.

    Examples
    --------
    >>> from auxcst_sklearn.costs import ordinal_cost_matrix
    >>> ordinal_cost_matrix(3, power=2)
    array([[0., 1., 4.],
           [1., 0., 1.],
           [4., 1., 0.]])
    >>> ordinal_cost_matrix(["low", "medium", "high"], over_cost=5)
    LabelledCosts([[ 0.,  5., 10.],
                   [ 1.,  0.,  5.],
                   [ 2.,  1.,  0.]],
                  classes=['low', 'medium', 'high'], decisions=['low', 'medium', 'high'])
    """
    labels = None if isinstance(classes, Integral) else list(classes)  # type: ignore[arg-type]
    n_classes = len(labels) if labels is not None else int(classes)  # type: ignore[arg-type]
    if n_classes < 1 or (labels is not None and len(set(labels)) < n_classes):
        raise ValueError(
            f"classes={classes!r}; expected the number of classes, at least 1, or their labels, "
            "each once."
        )
    if not (isinstance(power, Real) and power > 0):
        raise ValueError(f"power must be positive, got {power!r}: use 1 for absolute distances.")
    for name, value in {"over_cost": over_cost, "under_cost": under_cost}.items():
        if not (isinstance(value, Real) and 0 <= value < np.inf):
            raise ValueError(f"{name}={value!r}; expected the cost of one class, 0 or more.")
    grade = np.arange(n_classes, dtype=np.float64)
    with np.errstate(over="ignore"):
        distance = np.abs(grade[:, np.newaxis] - grade) ** power
    cost_matrix = np.triu(distance) * over_cost + np.tril(distance) * under_cost
    if not np.isfinite(cost_matrix).all():
        raise ValueError(
            f"power={power!r} makes costs of {n_classes} classes infinite; expected a smaller one, "
            "such as 1 for absolute or 2 for squared distances."
        )
    return cost_matrix if labels is None else LabelledCosts(cost_matrix, labels, labels)
