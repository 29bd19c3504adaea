"""Formulas of numbers and columns, computed from arrays, or from the values of an ONNX graph."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from functools import partial, reduce
from itertools import pairwise
from typing import Any

import numpy as np

# What Python's operators and functions are in ONNX, and in numpy.
OPERATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "Add": ("Add", np.add),
    "Sub": ("Sub", np.subtract),
    "Mult": ("Mul", np.multiply),
    "Div": ("Div", np.divide),
    "USub": ("Neg", np.negative),
    "min": ("Min", np.minimum),
    "max": ("Max", np.maximum),
    "Lt": ("Less", np.less),
    "LtE": ("LessOrEqual", np.less_equal),
    "Gt": ("Greater", np.greater),
    "GtE": ("GreaterOrEqual", np.greater_equal),
    "Eq": ("Equal", np.equal),
}
COMPARISONS = {"Lt", "LtE", "Gt", "GtE", "Eq"}


def on_arrays(operation: str, *values: Any) -> Any:
    """An operation on numbers and arrays; what is not finite is an error elsewhere."""
    with np.errstate(all="ignore"):
        return OPERATIONS[operation][1](*values)


def compute(
    text: str,
    name: str,
    columns: list[Any],
    column: Callable[[str], Any],
    apply: Callable[..., Any] = on_arrays,
) -> Any:
    """The value of a formula: numbers are np.float64, others what `column` and `apply` return."""

    def value(node: ast.AST) -> Any:
        match node:
            case ast.BinOp(left=left, op=op, right=right) if _kind(op) in OPERATIONS:
                return apply(_kind(op), value(left), value(right))
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return apply("USub", value(operand))
            case ast.Compare(left=a, ops=ops, comparators=b) if {*map(_kind, ops)} <= COMPARISONS:
                pairs = zip(map(_kind, ops), pairwise(map(value, [a, *b])))
                return reduce(partial(apply, "Mult"), (compared(op, *pair) for op, pair in pairs))
            case ast.Call(func=ast.Name(id="min" | "max" as f), args=[_, _, *_] as a, keywords=[]):
                return reduce(partial(apply, f), map(value, a))
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
        """1 or 0, and NaN where one of the values is missing."""
        gaps = apply("Mult", np.float64(0), apply("Add", a, b))
        return apply("Add", apply(operation, a, b), gaps)

    _check_names(text, name, columns)
    source = re.sub("`([^`]*)`", lambda name: repr(name[1]), text.strip())
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
