"""Cost matrices of each row, from a small labelled table of numbers, formulas and arrays."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from .._checks.frames import is_frame
from .._checks.labels import frame_labels
from .._checks.rows import check_row_order
from .._checks.warn import warn

if TYPE_CHECKING:
    from pandas import DataFrame

Terms = Mapping[Any, Mapping[Any, "str | ArrayLike"]]

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def cost_matrices(terms: Terms | DataFrame, amounts: Any = None) -> NDArray[np.float64]:
    """Compute a cost matrix for each row from a table of labelled costs.

    The order in which the table is written has no effect on the order of the classes.

    Parameters
    ----------
    terms : dict of dict, or DataFrame of pandas
        The cost of each decision for each true class: ``{true class: {decision: cost}}``, or a
        DataFrame whose index holds the true classes and whose columns are the decisions. A cost
        is, in currency,

        - a number,
        - a formula of numbers and columns of `amounts`, such as ``"0.75 * limit + 20"``, with
          ``+ - * /`` and parentheses; a column whose name is no identifier is written in
          backticks, as in pandas' ``DataFrame.eval``; or
        - an array of shape (n_samples,).
    amounts : DataFrame of pandas or polars, or dict of array-like of shape (n_samples,), \
            default=None
        The columns that formulas name, with a row for each sample.

    Returns
    -------
    ndarray of shape (n_samples, n_classes, n_decisions), or (n_classes, n_decisions) if all costs \
            are numbers and `amounts` is None
        Matrices for ``cost=`` of ``fit``, ``predict``, ``score`` and the metrics, or one for
        ``cost_matrix=``. True classes are in the order of the sorted labels. So are the decisions,
        if they are the classes; other decisions are in the order of the columns or of the first
        row, to be named in ``decisions=``.

    Raises
    ------
    ValueError
        If a row lacks a decision, a formula cannot be read, a cost is not finite, arrays are not
        of equal length, or the rows of two pandas objects are in a different order.

    Warns
    -----
    UserWarning
        If labels are strings of numbers that sort differently as numbers.

    See Also
    --------
    binary_cost_matrices : Two classes, with the four outcomes as arguments.

    Examples
    --------
    A default loses three quarters of the limit, and a refused good customer the margin:

    >>> from auxcst_sklearn.costs import cost_matrices
    >>> terms = {
    ...     "paid": {"paid": 0, "default": "0.05 * limit + 20"},
    ...     "default": {"paid": "0.75 * limit", "default": 0},
    ... }
    >>> cost_matrices(terms, {"limit": [1000.0, 4000.0]})  # sorted: default, paid
    array([[[   0.,  750.],
            [  70.,    0.]],
    <BLANKLINE>
           [[   0., 3000.],
            [ 220.,    0.]]])
    """
    rows, columns, cells = _read(terms)
    costs = {}
    for label in rows:
        for decision in columns:
            name = f"terms[{label!r}][{decision!r}]"
            cell = cells[label][decision]
            costs[name] = _formula(cell, amounts, name) if isinstance(cell, str) else cell
    indexed = {} if amounts is None else {"amounts": amounts}
    check_row_order(**indexed, **costs)
    values = {name: as_costs(cost, name) for name, cost in costs.items()}
    n_rows = [] if amounts is None else [np.empty(_n_rows(amounts))]
    check_consistent_length(*n_rows, *(value for value in values.values() if value.ndim))
    grid = np.broadcast_arrays(*values.values(), *n_rows)[: len(values)]
    matrices: NDArray[np.float64] = np.stack(grid, axis=-1)
    return matrices.reshape(*matrices.shape[:-1], len(rows), len(columns))


def as_costs(cost: ArrayLike, name: str) -> NDArray[np.float64]:
    """A finite cost, or one for each sample."""
    try:
        values = np.asarray(cost)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"its values are of type {values.dtype}")
        if np.ma.is_masked(cost):
            raise TypeError("it holds masked values")
        values = values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}.") from error
    if values.ndim > 1 or not np.isfinite(values).all():
        raise ValueError(
            f"{name} has shape {values.shape} and {np.count_nonzero(~np.isfinite(values))} values "
            "that are not finite; expected a finite number, or one for each sample."
        )
    return values


def _read(terms: Any) -> tuple[list[Any], list[Any], Mapping[Any, Any]]:
    """True classes and decisions, both in the order of the result, and the cells by label."""
    if is_frame(terms) and hasattr(terms, "index"):
        rows = terms.index.tolist()
        columns: list[Any] = frame_labels(terms, like=np.asarray(rows)).tolist()  # type: ignore[union-attr]
        table = terms.to_numpy(dtype=object)
        cells = {label: dict(zip(columns, row)) for label, row in zip(rows, table)}
        if len(cells) < len(rows) or len(set(columns)) < len(columns):
            raise ValueError(f"terms has the rows {rows} and columns {columns}; one occurs twice.")
    elif isinstance(terms, Mapping) and all(isinstance(row, Mapping) for row in terms.values()):
        cells, rows = dict(terms), list(terms)
        columns = list(next(iter(cells.values()), {}))
    else:
        raise TypeError(
            f"terms is of type {type(terms).__name__}; expected {{true class: {{decision: cost}}}} "
            "or a DataFrame of pandas whose index holds the true classes."
        )
    for label, row in cells.items():
        if not row or set(row) != set(columns):
            raise ValueError(
                f"terms[{label!r}] has costs for {list(row)}; expected one for each of {columns}, "
                "as in the first row. Write 0 for what costs nothing."
            )
    try:
        rows = sorted(rows)
    except TypeError as error:
        raise ValueError(f"terms has the rows {rows}, which have no common order.") from error
    _warn_of_numbers_as_strings(rows)
    return rows, rows if set(rows) == set(columns) else columns, cells


def _warn_of_numbers_as_strings(rows: list[Any]) -> None:
    try:
        as_numbers = sorted(rows, key=float)
    except (TypeError, ValueError):
        return
    if as_numbers != rows:
        warn(
            f"The classes in terms are strings, sorted as {rows}. If y holds numbers, their order "
            "is another one: write the classes as numbers."
        )


def _n_rows(amounts: Any) -> int:
    return len(next(iter(amounts.values()), ())) if isinstance(amounts, Mapping) else len(amounts)


def _formula(text: str, amounts: Any, name: str) -> Any:
    """The value of a formula: a number, or one for each row of the amounts."""
    names: list[Hashable] = [] if amounts is None else list(getattr(amounts, "columns", amounts))

    def value(node: ast.AST) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return _OPERATORS[type(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Constant(value=int() | float() as number):
                return np.float64(number)
            case ast.Name(id=column) | ast.Constant(value=str() as column):
                if column not in names:
                    raise ValueError(
                        f"{name}={text!r} names {column!r}; expected columns of amounts: {names}."
                    )
                return as_costs(amounts[column], f"amounts[{column!r}]")
        raise ValueError(
            f"{name}={text!r} cannot be read; expected numbers and columns of amounts with + - * / "
            "and parentheses, column names with other characters in backticks. For anything "
            "else, pass an array."
        )

    try:  # a quoted name is a constant
        tree: ast.AST = ast.parse(
            re.sub("`([^`]*)`", lambda m: repr(m[1]), text.strip()), mode="eval"
        )
    except SyntaxError:
        tree = ast.Pass()  # no formula
    with np.errstate(all="ignore"):  # what is not finite is an error of the cell
        return value(getattr(tree, "body", tree))
