"""Validation of costs: finite, of the right shape, their columns in the order of the classes."""

from __future__ import annotations

import reprlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks.labels import column_positions, frame_labels, shorten


def check_cost(cost: Any, *, n_samples: int, classes: NDArray[Any]) -> NDArray[np.float64]:
    """Per-sample costs as a finite (n_samples, n_classes) array, columns as in `classes`."""
    values = _finite(cost, "cost", "(n_samples, n_classes)")
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
        return values[:, column_positions(labels, classes, "the columns of cost")]
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
    if isinstance(cost, list | tuple) and any(frame_labels(matrix) is not None for matrix in cost):
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
    return values


def is_per_sample_matrix(cost: Any) -> bool:
    """Whether costs hold a matrix for each sample, rather than a row."""
    try:
        return np.ndim(cost) == 3
    except ValueError:  # ragged lists, which raise an error elsewhere
        return False


def _shape(cost: Any) -> str:
    try:
        return f"shape {np.shape(cost)}"
    except ValueError:
        return "rows of different lengths"


def expected_cost(
    probability: NDArray[Any],
    cost: Any,
    classes: NDArray[Any],
    decisions: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """Expected cost of each decision (n, D) under class probabilities, by each row's matrix."""
    if not is_per_sample_matrix(cost):
        shape = (*probability.shape, len(classes if decisions is None else decisions))
        raise ValueError(
            f"cost has {_shape(cost)}; expected {shape}, for each "
            "sample a matrix with a row per true class and a column per prediction. Costs that "
            "are the same for all samples belong in cost_matrix=; cost vectors (n_samples, "
            "n_classes), which presume the true class, belong in score."
        )
    matrices = check_cost_matrices(
        cost, n_samples=len(probability), classes=classes, decisions=decisions
    )
    expected: NDArray[np.float64] = np.einsum("nk,nkj->nj", probability, matrices)
    return expected


def sample_costs(
    cost: Any,
    label: NDArray[Any],
    classes: NDArray[Any],
    decisions: NDArray[Any] | None = None,
) -> NDArray[np.float64]:
    """Costs (n_samples, n_decisions) of each decision for samples whose true class is known."""
    if not is_per_sample_matrix(cost):
        columns = classes if decisions is None else decisions
        return check_cost(cost, n_samples=len(label), classes=columns)
    matrices = check_cost_matrices(cost, n_samples=len(label), classes=classes, decisions=decisions)
    rows: NDArray[np.float64] = matrices[np.arange(len(label)), label]
    return rows


def check_cost_matrix(
    cost_matrix: Any, *, classes: NDArray[Any], decisions: NDArray[Any] | None = None
) -> NDArray[np.float64]:
    """Class-level costs as a finite array, rows as in `classes`, columns as in `decisions`.

    Without `decisions` the columns are the classes.
    """
    values = _finite(cost_matrix, "cost_matrix", "(n_classes, n_classes)")
    if decisions is None and values.shape[0] != values.shape[1]:
        raise ValueError(
            f"cost_matrix has shape {values.shape}; expected a square matrix with one row per "
            f"true class and one column per prediction. {_how_to_make_square(cost_matrix, classes)}"
        )
    columns = classes if decisions is None else decisions
    labels, index = frame_labels(cost_matrix), getattr(cost_matrix, "index", None)
    if labels is not None:
        name = "the columns of cost_matrix"
        values = values[:, column_positions(labels, columns, name)]
        if index is not None:
            labels, name = np.asarray(list(index)), "the index labels of cost_matrix"
        # A frame of polars has no index: rows like columns, if these are the classes.
        if index is not None or decisions is None or {*labels.tolist()} == {*classes.tolist()}:
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


def _how_to_make_square(cost_matrix: Any, classes: NDArray[Any]) -> str:
    """What to do about a matrix of costs that is not square: add what its labels lack, if known."""
    rows, columns = list(getattr(cost_matrix, "index", [])), frame_labels(cost_matrix)
    if columns is None or not set(rows) & set(columns.tolist()):
        return (
            "Pass per-sample costs to fit(..., cost=). Decisions that are not the classes need "
            "names: a DataFrame whose index holds the classes and whose columns are the decisions, "
            "or decisions=."
        )
    more = set(columns.tolist()) - set(rows)
    if set(rows) < set(columns.tolist()) and not more & set(classes.tolist()):
        column_positions(np.asarray(rows), classes, "the index labels of cost_matrix")
        return "Decisions are of no use here; pass the columns of the classes alone."
    wanted = {"row": columns.tolist(), "column": rows}
    named = {"row": rows, "column": columns.tolist()}
    missing = {
        part: [label for label in wanted[part] if label not in named[part]] for part in wanted
    }
    lacking = [f"{part} for {labels}" for part, labels in missing.items() if labels]
    return f"It has no {' and no '.join(lacking)}." if lacking else "A label occurs twice."


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
            f"an array or DataFrame of real costs, of shape {shape}.{_of_texts(cost)} Got "
            f"{reprlib.repr(cost)}."
        ) from error
    if values.ndim != ndim:
        raise ValueError(
            f"{name} has shape {values.shape}; expected {'two' if ndim == 2 else 'three'} "
            f"dimensions, {shape}: the cost of each possible prediction.{_of_amounts(values)}"
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


def _of_texts(cost: Any) -> str:
    """What to do with a DataFrame whose first column holds texts."""
    if not hasattr(cost, "iloc") or cost.ndim != 2:
        return ""
    if np.asarray(cost.iloc[:, 0]).dtype.kind in "OUST":
        return (
            " Its first column holds texts: if they label the rows, make them the index, by "
            "set_index or by read_csv(..., index_col=0)."
        )
    return ""


def _of_amounts(values: NDArray[Any]) -> str:
    """What to do with one amount per row."""
    if values.ndim != 1 or len(values) == 0:
        return ""
    return (
        " One amount per row becomes costs by auxcst_sklearn.costs.binary_cost_matrices(fp_cost=, "
        "fn_cost=, classes=, pos_label=), or for more classes by cost_matrices(terms, amounts)."
    )


def _check_count(n_columns: int, classes: NDArray[Any], found: str) -> None:
    if n_columns != len(classes):
        raise ValueError(
            f"{found}, but there are {len(classes)} classes: {shorten(classes)}. If some "
            "classes have no sample here, name all of them in classes=, in sorted order, or use "
            "a DataFrame with the labels as columns."
        )
