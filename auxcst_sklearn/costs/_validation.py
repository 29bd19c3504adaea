"""Validation of costs: finite, of the right shape, in the order of the classes and decisions."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks.calls import warn
from .._checks.data import own_order, shorten
from ._named import LabelledCosts, column_names, column_positions, row_names

# Where costs of another number of dimensions belong.
_OTHER_COSTS = {
    2: "Amounts become costs by auxcst_sklearn.costs.binary_cost_matrices, or for more classes by "
    "cost_matrices.",
    3: "Costs that are the same for all samples belong in cost_matrix=; cost vectors (n_samples, "
    "n_classes), which presume the true class, belong in score.",
}


def check_cost(cost: Any, *, n_samples: int, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Per-sample costs as a finite (n_samples, n_classes) array, columns as in `classes`."""
    values = _finite(cost, "cost", "(n_samples, n_classes)")
    n_rows, n_columns = values.shape
    if n_rows != n_samples:
        raise ValueError(
            f"cost has {n_rows} rows, but there are {n_samples} samples; expected shape "
            f"({n_samples}, {len(classes)}). Select the same rows of cost as of X, or pass a cost "
            "matrix of the classes as cost_matrix=."
        )
    labels = column_names(cost)
    if labels is not None:
        order = column_positions(labels, classes, "the columns of cost")
        return _in_order(values, order, 1) if isinstance(cost, LabelledCosts) else values[:, order]
    _check_count(n_columns, classes, f"cost has {n_columns} columns")
    return values


def check_cost_matrices(
    cost: Any, *, n_samples: int, classes: NDArray[Any], decisions: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """A matrix for each sample, finite, with a row per class and a column per decision.

    Without `decisions` the columns are the classes.
    """
    columns = classes if decisions is None else decisions
    shape = (n_samples, len(classes), len(columns))
    if isinstance(cost, list | tuple) and any(column_names(matrix) is not None for matrix in cost):
        cost = np.stack(
            [check_cost_matrix(matrix, classes=classes, decisions=decisions) for matrix in cost]
        )
    values = _finite(cost, "cost", "(n_samples, n_classes, n_classes)", ndim=3)
    if values.shape != shape:
        raise ValueError(
            f"cost has shape {values.shape}; expected {shape}: for each sample a matrix with a row "
            f"per true class and a column per prediction, in the order {shorten(columns)}. Costs "
            "that are the same for all samples belong in cost_matrix=; select the same rows of "
            "cost as of X. Columns other than the classes are named by decisions=."
        )
    if isinstance(cost, LabelledCosts):
        for axis, labels, wanted in ((2, cost.decisions, columns), (1, cost.classes, classes)):
            if labels is not None:
                part = "classes" if axis == 1 else "decisions"
                order = column_positions(labels, wanted, f"the {part} of cost")
                values = _in_order(values, order, axis)
    return values


def _in_order(values: NDArray[Any], order: list[int], axis: int) -> NDArray[Any]:
    """Costs in the order of an axis; not copied if in this order, because they may be large."""
    return values if order == list(range(len(order))) else values.take(order, axis=axis)


def is_per_sample_matrix(cost: Any) -> bool:
    """Whether costs hold a matrix for each sample, rather than a row."""
    try:
        return np.ndim(cost) == 3
    except ValueError:  # ragged lists, which raise an error elsewhere
        return False


def check_cost_matrix(
    cost_matrix: Any, *, classes: NDArray[Any], decisions: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Class-level costs as a finite array, rows as in `classes`, columns as in `decisions`.

    Without `decisions` the columns are the classes.
    """
    values = _finite(cost_matrix, "cost_matrix", "(n_classes, n_classes)")
    labels, of_rows = column_names(cost_matrix), row_names(cost_matrix)
    if decisions is None and values.shape[0] != values.shape[1]:
        rows = "" if of_rows is None else f" and the index labels {shorten(of_rows)}"
        raise ValueError(
            f"cost_matrix has shape {values.shape}{rows}, but the classes are {shorten(classes)}; "
            "expected a square matrix with one row per true class and one column per prediction. "
            "Pass per-sample costs to fit(..., cost=), and decisions that are not the classes by "
            "name: in a DataFrame whose index holds the classes and whose columns are the "
            "decisions, or in decisions=."
        )
    columns = classes if decisions is None else decisions
    if labels is not None:
        name = "the columns of cost_matrix"
        values = values[:, column_positions(labels, columns, name)]
        if of_rows is not None:
            labels, name = of_rows, "the index labels of cost_matrix"
        # A frame of polars has no index: rows like columns, if these are the classes.
        if of_rows is not None or decisions is None or {*labels.tolist()} == {*classes.tolist()}:
            values = values[column_positions(labels, classes, name)]
    elif decisions is None:
        _check_count(len(values), classes, f"cost_matrix has shape {values.shape}")
    if values.shape != (len(classes), len(columns)):
        raise ValueError(
            f"cost_matrix has shape {values.shape}; expected {(len(classes), len(columns))}: a "
            f"row for each class, {shorten(classes)}, and a column for each decision, "
            f"{shorten(columns)}. If some classes have no sample here, name all in classes=."
        )
    return values


def warn_if_order_is_lost(cost: Any, cost_matrix: Any, classes: Any = None, **labels: Any) -> None:
    """Warn of ordered categories in another order than sorted, if nothing names the columns."""
    costs = cost_matrix if cost is None else cost
    if costs is None or classes is not None or column_names(costs) is not None:
        return
    for name, y in labels.items():
        categories = own_order(y) or []
        try:
            expected = sorted(categories)
        except TypeError:  # which have no sorted order, an error elsewhere
            continue
        if categories != expected:
            warn(
                f"{name} has ordered categories, {categories}, but classes_, and so the columns of "
                "costs without labels, are sorted, as everywhere in scikit-learn: "
                f"{expected}. Pass costs with these labels, as a DataFrame or from "
                "ordinal_cost_matrix(labels), or name the columns of an array in classes=.",
            )


def warn_of_permutation(decisions: NDArray[Any], classes: NDArray[Any]) -> None:
    """Warn of decisions that are the classes in another order."""
    warn(
        f"decisions={shorten(decisions)} names the classes in another order than classes_, "
        f"{shorten(classes)}. Columns of costs with names are matched by them, others are taken in "
        "this order. Leave decisions= out if the columns are in the order of classes_, or have "
        "names."
    )


def as_numbers(cost: Any) -> NDArray[Any]:
    """Costs as an array; raises a TypeError with the reason if they are no numbers."""
    values = np.asarray(cost)
    if values.dtype.kind not in "biufO":
        raise TypeError(f"its values are of type {values.dtype}")
    if np.ma.is_masked(cost):
        raise TypeError("it holds masked values")
    return values


def _finite(cost: Any, name: str, shape: str, ndim: int = 2) -> NDArray[np.float64]:
    try:
        values = as_numbers(cost).astype(
            np.float64, copy=ndim == 2
        )  # matrices per sample may be large
    except (TypeError, ValueError) as error:
        raise type(error)(
            f"{name} of type {type(cost).__name__} cannot be read as numbers ({error}); expected "
            f"an array or DataFrame of real costs, of shape {shape}, with labels of rows as its "
            f"index, as by read_csv(..., index_col=0). Got {reprlib.repr(cost)}."
        ) from error
    if values.ndim != ndim:
        raise ValueError(
            f"{name} has shape {values.shape}; expected {'two' if ndim == 2 else 'three'} "
            f"dimensions, {shape}: the cost of each possible prediction. {_OTHER_COSTS[ndim]}"
        )
    finite = np.isfinite(values)
    if not finite.all():
        place = tuple(np.argwhere(~finite)[0].tolist())
        row, column = place if ndim == 2 else (place[:2], place[2])
        raise ValueError(
            f"{name} holds {values[place]} in row {row}, column {column}, and "
            f"{np.size(finite) - np.count_nonzero(finite)} values that are not finite in all; "
            "expected finite costs. For a forbidden prediction use a finite cost some ten times "
            "the others; one of 1e9 would set the unit in which all are learnt."
        )
    return values


def _check_count(n_columns: int, classes: NDArray[Any], found: str) -> None:
    if n_columns != len(classes):
        raise ValueError(
            f"{found}, but there are {len(classes)} classes: {shorten(classes)}. If some "
            "classes have no sample here, name all of them in classes=, in sorted order, or use "
            "a DataFrame with the labels as columns."
        )
