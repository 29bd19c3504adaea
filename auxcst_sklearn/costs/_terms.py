"""Cost matrices of each row: from a table of costs, or from four outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from .._checks.data import as_floats, check_row_order, is_frame
from .._checks.labels import plain_labels
from ._labelled import LabelledCosts
from ._reading import as_numbers

if TYPE_CHECKING:
    from pandas import DataFrame


def cost_matrices(terms: Mapping[Any, Mapping[Any, ArrayLike]] | DataFrame) -> LabelledCosts:
    """Arrange a table of labelled costs as a cost matrix, or as one for each sample.

    The order in which the table is written has no effect on the order of the classes.

    Parameters
    ----------
    terms : dict of dict, or DataFrame of pandas
        The cost of each decision for each true class: ``{true class: {decision: cost}}``, or a
        DataFrame whose index contains the true classes and whose columns are the decisions. A cost
        is, in currency, a number or an array of shape (n_samples,), such as ``0.75 *
        customers["limit"]`` or ``np.maximum(claims["loss"] - 500, 0)``.

    Returns
    -------
    LabelledCosts of shape (n_samples, n_classes, n_decisions), or (n_classes, n_decisions) if all \
            costs are numbers
        Matrices for ``cost=`` of ``fit``, ``predict``, ``score`` and the metrics, or one for
        ``cost_matrix=``. True classes are in the order of the sorted labels. So are the decisions,
        if they are the classes; other decisions are in the order of the columns or of the first
        row. Estimators, metrics and displays match rows and columns by the labels.

    Raises
    ------
    ValueError
        If a row lacks a decision, a cost is not finite, or arrays differ in length or in the order
        of their index.

    See Also
    --------
    binary_cost_matrices : Two classes, with the four outcomes as arguments.

    Examples
    --------
    A default loses three quarters of the limit, and a refused good customer the margin:

    >>> import numpy as np
    >>> from auxcst_sklearn.costs import cost_matrices
    >>> limit = np.array([1000.0, 4000.0])
    >>> terms = {
    ...     "paid": {"paid": 0, "default": 0.05 * limit + 20},
    ...     "default": {"paid": 0.75 * limit, "default": 0},
    ... }
    >>> cost_matrices(terms)  # sorted: default, paid
    LabelledCosts([[[   0.,  750.],
                    [  70.,    0.]],
    <BLANKLINE>
                   [[   0., 3000.],
                    [ 220.,    0.]]],
                  classes=['default', 'paid'], decisions=['default', 'paid'])

    Decisions need not be classes. With numbers alone, the result is one matrix:

    >>> cost_matrices({
    ...     "fraud": {"pass": 90, "review": 4, "decline": 0},
    ...     "legitimate": {"pass": 0, "review": 4, "decline": 10},
    ... })
    LabelledCosts([[90.,  4.,  0.],
                   [ 0.,  4., 10.]],
                  classes=['fraud', 'legitimate'], decisions=['pass', 'review', 'decline'])
    """
    return _arranged(*_read(terms))


def binary_cost_matrices(
    *,
    fp_cost: ArrayLike,
    fn_cost: ArrayLike,
    tp_cost: ArrayLike = 0,
    tn_cost: ArrayLike = 0,
    classes: ArrayLike,
    pos_label: Any,
) -> LabelledCosts:
    """Arrange the costs of the four outcomes of a binary decision as cost matrices.

    Rows are true classes, columns predictions, both in the order of the sorted labels, as
    `classes_` everywhere in scikit-learn.

    Parameters
    ----------
    fp_cost : float or array-like of shape (n_samples,)
        Cost of a false alarm: `pos_label` is predicted for the other class.
    fn_cost : float or array-like of shape (n_samples,)
        Cost of a miss: the other class is predicted for `pos_label`.
    tp_cost : float or array-like of shape (n_samples,), default=0
        Cost of a hit, such as the cost of the work that it causes.
    tn_cost : float or array-like of shape (n_samples,), default=0
        Cost of a correct prediction of the other class.
    classes : array-like of shape (2,)
        Both labels, in any order.
    pos_label : label
        The positive class: the label in `classes` that is to be detected.

    Returns
    -------
    LabelledCosts of shape (n_samples, 2, 2), or (2, 2) if all costs are scalars
        A matrix for each sample, or one for all. Pass the former to ``fit(..., cost=)``,
        ``predict(..., cost=)`` and the metrics, the latter as ``cost_matrix=``.

    Raises
    ------
    ValueError
        If `classes` are not two labels, `pos_label` is not one of them, or the costs are not finite
        numbers or arrays of equal length.

    See Also
    --------
    cost_matrices : Any number of classes and decisions, from a labelled table.

    Examples
    --------
    >>> from auxcst_sklearn.costs import binary_cost_matrices
    >>> amount = [20.0, 500.0]                                   # of two payments
    >>> binary_cost_matrices(fp_cost=5, tp_cost=5, fn_cost=amount,
    ...                      classes=["fraud", "good"], pos_label="fraud")
    LabelledCosts([[[  5.,  20.],
                    [  5.,   0.]],
    <BLANKLINE>
                   [[  5., 500.],
                    [  5.,   0.]]],
                  classes=['fraud', 'good'], decisions=['fraud', 'good'])
    """
    labels = plain_labels(classes) if np.shape(classes) == (2,) else np.empty(0)
    if len(labels := np.unique(labels)) != 2:
        raise ValueError(f"classes={classes!r}; expected the two labels of a binary problem.")
    if np.ndim(pos_label) or pos_label not in labels.tolist():
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels.tolist()}.")
    costs = {"tp_cost": tp_cost, "fn_cost": fn_cost, "fp_cost": fp_cost, "tn_cost": tn_cost}
    if pos_label != labels[0]:
        costs = dict(reversed(costs.items()))
    return _arranged(labels, labels, costs)


def _arranged(rows: Any, columns: Any, costs: Mapping[str, Any]) -> LabelledCosts:
    """Costs with names, one for each cell in the order of reading, as matrices."""
    check_row_order(**costs)
    values = [_as_costs(cost, name) for name, cost in costs.items()]
    check_consistent_length(*(value for value in values if value.ndim))
    cells = np.stack(np.broadcast_arrays(*values), axis=-1)
    matrices = cells.reshape(*cells.shape[:-1], len(rows), len(columns))
    return LabelledCosts.of_own(matrices, rows, columns)


def _as_costs(cost: ArrayLike, name: str) -> NDArray[np.float64]:
    """A finite cost, or one for each sample."""
    try:
        values = as_numbers(cost)
        values = (as_floats(values) if values.ndim else values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name} cannot be read as numbers: {error}; expected a number, or one for each "
            "sample, such as 0.75 * customers['limit']."
        ) from error
    if values.ndim > 1 or not np.isfinite(values).all():
        raise ValueError(
            f"{name} has shape {values.shape} and {np.count_nonzero(~np.isfinite(values))} values "
            "that are not finite; expected a finite number, or one for each sample."
        )
    return values


def _read(terms: Any) -> tuple[list[Any], list[Any], dict[str, Any]]:
    """True classes and decisions, both in the order of the result, and the cells with names."""
    if is_frame(terms) and hasattr(terms, "index"):
        if not (terms.index.is_unique and terms.columns.is_unique):
            raise ValueError("A label occurs twice in the index or in the columns of terms.")
        terms = terms.to_dict(orient="index")
    if not isinstance(terms, Mapping) or not all(isinstance(r, Mapping) for r in terms.values()):
        raise TypeError(
            f"terms is of type {type(terms).__name__}; expected {{true class: {{decision: cost}}}} "
            "or a DataFrame of pandas whose index contains the true classes."
        )
    if not terms:
        raise ValueError("terms is empty; expected a row for each true class.")
    columns = list(next(iter(terms.values())))
    for label, row in terms.items():
        if not row or set(row) != set(columns):
            raise ValueError(
                f"terms[{label!r}] has costs for {list(row)}; expected one for each of {columns}, "
                "as in the first row. Write 0 for what costs nothing."
            )
    rows = sorted(terms)
    columns = rows if set(rows) == set(columns) else columns
    return rows, columns, {f"terms[{k!r}][{d!r}]": terms[k][d] for k in rows for d in columns}
