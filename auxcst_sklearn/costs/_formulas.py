"""Formulas of numbers and columns, computed from arrays, or from the values of an ONNX graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np

# By their names in ONNX.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Neg": np.negative,
    "Min": np.minimum,
    "Max": np.maximum,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
    "Equal": np.equal,
}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "Add",
    ast.Sub: "Sub",
    ast.Mult: "Mul",
    ast.Div: "Div",
    ast.Lt: "Less",
    ast.LtE: "LessOrEqual",
    ast.Gt: "Greater",
    ast.GtE: "GreaterOrEqual",
    ast.Eq: "Equal",
}
_FUNCTIONS = {"min": "Min", "max": "Max"}


def on_arrays(operation: str, *values: Any) -> Any:
    """An operation on numbers and arrays; what is not finite is an error elsewhere."""
    with np.errstate(all="ignore"):
        return OPERATIONS[operation](*values)


def compute(
    text: str,
    name: str,
    columns: Sequence[Any],
    column: Callable[[str], Any],
    apply: Callable[..., Any] = on_arrays,
) -> Any:
    """The value of a formula: numbers are np.float64, others what `column` and `apply` return."""

    def value(node: ast.AST) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return apply(_OPERATORS[type(op)], value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return apply("Neg", value(operand))
            case ast.Compare(left=left, ops=ops, comparators=others) if all(
                type(op) in _OPERATORS for op in ops
            ):
                pairs = zip(ops, pairwise(map(value, [left, *others])))
                held = [_compared(_OPERATORS[type(op)], *pair, apply) for op, pair in pairs]
                return reduce(lambda a, b: apply("Mul", a, b), held)
            case ast.Call(func=ast.Name(id=function), args=[_, _, *_] as args, keywords=[]) if (
                function in _FUNCTIONS
            ):
                return reduce(lambda a, b: apply(_FUNCTIONS[function], a, b), map(value, args))
            case ast.Constant(value=int() | float() as number):
                return np.float64(number)
            case ast.Name(id=found) | ast.Constant(value=str() as found):
                if found not in columns:
                    raise ValueError(
                        f"{name}={text!r} names {found!r}; expected columns of amounts: "
                        f"{[*columns]}."
                    )
                return column(found)
        raise ValueError(
            f"{name}={text!r} cannot be read; expected numbers and columns of amounts with + - * / "
            "< <= > >= ==, min(a, b), max(a, b) and parentheses, column names with other "
            "characters in backticks. For anything else, pass an array."
        )

    _check_names(text, name, columns)
    quoted = re.sub("`([^`]*)`", lambda name: repr(name[1]), text.strip())
    try:
        formula: ast.AST = ast.parse(quoted, mode="eval").body
    except SyntaxError:
        formula = ast.Pass()  # which cannot be read
    return value(formula)


def _compared(operation: str, a: Any, b: Any, apply: Callable[..., Any]) -> Any:
    """1 or 0, and NaN where one of the values is missing."""
    gap = apply("Add", apply("Mul", a, np.float64(0)), apply("Mul", b, np.float64(0)))
    return apply("Add", apply(operation, a, b), gap)


def _check_names(text: str, name: str, columns: Sequence[Any]) -> None:
    """Raise an error for a column without backticks whose name reads as an operation."""
    for column in map(str, columns):
        if not re.search(r"\w.*[-+*/<>=]", column):
            continue
        if re.search(rf"(?<!\w){re.escape(column)}(?!\w)", re.sub("`[^`]*`", "", text)):
            raise ValueError(
                f"{name}={text!r} holds the name of the column {column!r}, which reads as an "
                "operation. Write the name in backticks, or an operation with other spaces."
            )
