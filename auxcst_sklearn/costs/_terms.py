"""Cost matrices of each row: from a table of numbers and formulas, or from four outcomes."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import reduce
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length

from .._checks.calls import warn
from .._checks.data import as_floats, check_row_order, is_frame, with_days
from .._checks.labels import check_spelling
from ._named import column_names, named
from ._validation import as_numbers

if TYPE_CHECKING:
    from pandas import DataFrame

Terms = Mapping[Any, Mapping[Any, "str | ArrayLike"]]

# What Python's operators and functions are in numpy.
_OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mult": np.multiply,
    "Div": np.divide,
    "min": np.minimum,
    "max": np.maximum,
    "Lt": np.less,
    "LtE": np.less_equal,
    "Gt": np.greater,
    "GtE": np.greater_equal,
    "Eq": np.equal,
}
_COMPARISONS = {"Lt", "LtE", "Gt", "GtE", "Eq"}


def cost_matrices(terms: Terms | DataFrame, amounts: Any = None) -> NDArray[np.float64]:
    """Compute a cost matrix for each row from a table of labelled costs.

    The order in which the table is written has no effect on the order of the classes.

    Parameters
    ----------
    terms : dict of dict, or DataFrame of pandas
        The cost of each decision for each true class: ``{true class: {decision: cost}}``, or a
        DataFrame whose index holds the true classes and whose columns are the decisions. A cost
        is, in currency, a number, an array of shape (n_samples,), or a formula of numbers and
        columns of `amounts`, such as ``"0.75 * limit + 20"``, with ``+ - * /`` and parentheses,
        ``min(a, b)`` and ``max(a, b)``, and the comparisons ``< <= > >= ==``, which are 1 or 0: a
        loss above a deductible is ``"max(loss - 500, 0)"``, and a fee on small amounts
        ``"20 * (amount < 100)"``. Names that are no identifiers are written in backticks, as in
        pandas' ``DataFrame.eval``: ``"2 * `net-amount`"``.
    amounts : DataFrame of pandas or polars, or dict of float or array-like of shape \
            (n_samples,), default=None
        The columns that formulas name, with a row for each sample; in a dict also numbers. The
        dates of a DataFrame are days since 1970, as for estimators.

    Returns
    -------
    ndarray of shape (n_samples, n_classes, n_decisions), or (n_classes, n_decisions) if all costs \
            are numbers and `amounts` is None
        Matrices for ``cost=`` of ``fit``, ``predict``, ``score`` and the metrics, or one for
        ``cost_matrix=``. True classes are in the order of the sorted labels. So are the decisions,
        if they are the classes; other decisions are in the order of the columns or of the first
        row. The array has both as its attributes `classes` and `decisions`, by which estimators,
        metrics and displays match rows and columns. Selections and elementwise arithmetic keep
        these names; all other operations return a plain array.

    Raises
    ------
    ValueError
        If a row lacks a decision, a formula cannot be read or names such a column without
        backticks, a cost is not finite, or arrays differ in length or in the order of their index.

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
    CostArray([[[   0.,  750.],
                [  70.,    0.]],
    <BLANKLINE>
               [[   0., 3000.],
                [ 220.,    0.]]],
              classes=['default', 'paid'], decisions=['default', 'paid'])
    """
    rows, columns, cells = _read(terms)
    amounts = with_days(amounts)
    if not (amounts is None or is_frame(amounts) or isinstance(amounts, Mapping)):
        kind = type(amounts).__name__
        raise TypeError(f"amounts is a {kind}; expected a DataFrame or a dict of columns.")
    names = [] if amounts is None else list(getattr(amounts, "columns", amounts))

    def column(name: str) -> NDArray[np.float64]:
        return _as_costs(amounts[name], f"amounts[{name!r}]")

    costs = {
        name: _computed(cell, name, names, column) if isinstance(cell, str) else cell
        for name, cell in cells.items()
    }
    given = {} if amounts is None else {"amounts": amounts}
    if isinstance(amounts, Mapping):
        given = {f"amounts[{name!r}]": column for name, column in amounts.items()}
    check_row_order(**given, **costs)
    values = {name: _as_costs(cost, name) for name, cost in costs.items()}
    parts = (*given.values(), *values.values())
    with_rows = [part for part in parts if is_frame(part) or np.ndim(part)]
    check_consistent_length(*with_rows)
    n_rows = [len(part) for part in with_rows[:1]]
    matrices = np.empty((*n_rows, len(rows), len(columns)))
    for (i, j), value in zip(np.ndindex(matrices.shape[-2:]), values.values(), strict=True):
        matrices[..., i, j] = value
    return named(matrices, rows, columns)


def binary_cost_matrices(
    *,
    fp_cost: ArrayLike,
    fn_cost: ArrayLike,
    tp_cost: ArrayLike = 0,
    tn_cost: ArrayLike = 0,
    classes: ArrayLike,
    pos_label: Any,
) -> NDArray[np.float64]:
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
    ndarray of shape (n_samples, 2, 2), or (2, 2) if all costs are scalars
        A matrix for each sample, or one for all. Pass the former to ``fit(..., cost=)``,
        ``predict(..., cost=)`` and the metrics, the latter as ``cost_matrix=``. The array has the
        labels as its attributes `classes` and `decisions`, like :func:`cost_matrices`.

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
    CostArray([[[  5.,  20.],
                [  5.,   0.]],
    <BLANKLINE>
               [[  5., 500.],
                [  5.,   0.]]],
              classes=['fraud', 'good'], decisions=['fraud', 'good'])
    """
    labels = np.unique(np.asarray(classes))
    if np.shape(classes) != (2,) or len(labels) != 2:
        raise ValueError(f"classes={classes!r}; expected the two labels of a binary problem.")
    if np.ndim(pos_label) or pos_label not in labels.tolist():
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels.tolist()}.")
    given = {"fp_cost": fp_cost, "fn_cost": fn_cost, "tp_cost": tp_cost, "tn_cost": tn_cost}
    check_row_order(**given)
    costs = {name: _as_costs(cost, name) for name, cost in given.items()}
    check_consistent_length(*(cost for cost in costs.values() if cost.ndim))
    p = labels.tolist().index(pos_label)
    matrices = np.empty((*np.broadcast_shapes(*(c.shape for c in costs.values())), 2, 2))
    matrices[..., p, p], matrices[..., 1 - p, 1 - p] = costs["tp_cost"], costs["tn_cost"]
    matrices[..., p, 1 - p], matrices[..., 1 - p, p] = costs["fn_cost"], costs["fp_cost"]
    return named(matrices, labels, labels)


def _as_costs(cost: ArrayLike, name: str) -> NDArray[np.float64]:
    """A finite cost, or one for each sample."""
    try:
        values = as_numbers(cost)
        values = (as_floats(values) if values.ndim else values).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} cannot be read as numbers: {error}.") from error
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
        labels = column_names(terms, like=np.asarray(terms.index))
        terms = terms.set_axis(labels, axis=1).to_dict(orient="index")
    if not isinstance(terms, Mapping) or not all(isinstance(r, Mapping) for r in terms.values()):
        raise TypeError(
            f"terms is of type {type(terms).__name__}; expected {{true class: {{decision: cost}}}} "
            "or a DataFrame of pandas whose index holds the true classes."
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
    try:
        rows = sorted(terms)
    except TypeError as error:
        raise ValueError(f"The rows of terms, {list(terms)}, have no common order.") from error
    check_spelling(np.asarray(columns), np.asarray(rows), "The decisions in terms")
    if _are_texts_of_numbers(rows) and rows != sorted(rows, key=float):
        warn(
            f"The classes in terms are strings, sorted as {rows}. If y holds numbers, their order "
            "is another one: write the classes as numbers."
        )
    columns = rows if set(rows) == set(columns) else columns
    return rows, columns, {f"terms[{k!r}][{d!r}]": terms[k][d] for k in rows for d in columns}


def _are_texts_of_numbers(labels: list[Any]) -> bool:
    try:
        return all(isinstance(label, str) and np.isfinite(float(label)) for label in labels)
    except ValueError:
        return False


# ------------------------------------------------------------------ formulas


def _computed(text: str, name: str, columns: list[Any], column: Callable[[str], Any]) -> Any:
    """The value of a formula: a number, or one for each row."""

    def value(node: ast.AST) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if _kind(op) in _OPERATIONS:
                return _OPERATIONS[_kind(op)](value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -value(operand)
            case ast.Compare(left=a, ops=ops, comparators=b) if {*map(_kind, ops)} <= _COMPARISONS:
                pairs = zip(map(_kind, ops), pairwise(map(value, [a, *b])))
                return reduce(np.multiply, (compared(op, *pair) for op, pair in pairs))
            case ast.Call(func=ast.Name(id="min" | "max" as f), args=[_, _, *_] as a, keywords=[]):
                return reduce(_OPERATIONS[f], map(value, a))
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return np.float64(number)
            case ast.Name(id=found) | ast.Constant(value=str() as found):
                if isinstance(node, ast.Name):  # as written: Python's parser normalises it
                    found = ast.get_source_segment(source, node) or found
                if found in columns:
                    return column(found)
                raise ValueError(
                    f"{name}={text!r} names {found!r}; expected columns of amounts: {columns}."
                )
        raise ValueError(
            f"{name}={text!r} cannot be read; expected numbers and columns of amounts with + - * / "
            "< <= > >= ==, min(a, b), max(a, b) and parentheses, column names with other "
            "characters in backticks. For anything else, pass an array."
        )

    def compared(operation: str, a: Any, b: Any) -> Any:
        """1 or 0, and NaN where one of the values is not finite, which is an error."""
        return _OPERATIONS[operation](a, b) + 0 * (a + b)

    _check_names(text, name, columns)
    source = re.sub("`([^`]*)`", lambda name: repr(name[1]), text.strip())
    with np.errstate(all="ignore"):  # what is not finite is an error elsewhere
        return value(_parsed(source))


def _parsed(source: str) -> ast.AST:
    try:
        return ast.parse(source, mode="eval").body
    except SyntaxError:
        return ast.Pass()  # which cannot be read


def _kind(operator: ast.AST) -> str:
    return type(operator).__name__


def _check_names(text: str, name: str, columns: list[Any]) -> None:
    """Raise an error for a column without backticks whose name reads as an operation."""
    for column in map(str, columns):
        if not re.search(r"\w.*[-+*/<>=#]", column):
            continue
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", re.sub("`[^`]*`", "", text)):
            raise ValueError(
                f"{name}={text!r} holds the name of the column {column!r}, which reads as an "
                "operation. Write the name in backticks, or an operation with other spaces."
            )
