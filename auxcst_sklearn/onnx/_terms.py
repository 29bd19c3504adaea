"""Costs that a file computes from its columns, as `cost_matrices` does from a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from .._checks.data import holds_categories, is_frame, select
from .._checks.labels import shorten
from ..costs._named import column_positions, same_labels
from ..costs._terms import COMPARISONS, OPERATIONS, compute, matrices_of, on_arrays, read_terms
from ._graph import Graph, names_of_inputs


class Account:
    """The costs of rows by terms; `table` has the model's columns, and then others of formulas."""

    def __init__(self, terms: Any, model: Any, last: Any, X: Any) -> None:
        if not is_frame(X):
            raise ValueError(
                f"X is of type {type(X).__name__}, and terms are formulas of columns; expected a "
                "DataFrame with the columns that the model and terms read."
            )
        self.terms, self.columns = terms, list(X.columns)
        rows, decisions, self.cells = read_terms(terms)
        read = self._columns_read(X)
        own = [c for c in getattr(model, "feature_names_in_", self.columns) if c in self.columns]
        self.n_own = len(own)
        self.table = X[[*own, *(name for name in read if name not in own)]]
        if not self.known(self.table).any():
            raise ValueError(f"In no row of X are all costs finite; terms reads {read}.")
        self.place = np.arange(len(self.cells)).reshape(len(rows), -1)
        for axis, (name, given) in enumerate({"classes": rows, "decisions": decisions}.items()):
            labels, wanted = np.asarray(given), getattr(last, f"{name}_")
            if not same_labels(labels, wanted):
                raise ValueError(
                    f"terms has the {name} {shorten(labels)}; expected those of the model, "
                    f"{shorten(wanted)}. Write terms with these, or fit the model with terms."
                )
            self.place = self.place.take(column_positions(labels, wanted, name), axis)

    def _columns_read(self, X: Any) -> list[str]:
        """The columns that formulas read."""
        read: dict[str, np.float64] = {}

        def column(name: str) -> np.float64:
            if holds_categories(select(X, self.columns.index(name))):
                raise ValueError(f"terms reads the column {name!r} of X, which holds strings.")
            return read.setdefault(name, np.float64(1))

        for name, cell in self.cells.items():
            if isinstance(cell, str):
                compute(cell, name, self.columns, column)
            elif np.ndim(cell):
                raise ValueError(
                    f"{name} has a value for each row, which a file cannot compute; expected a "
                    "number or a formula. Make it a column of X, and name this."
                )
        return list(read)

    def own(self, rows: Any) -> Any:
        """The columns that the model reads."""
        return select(rows, list(range(self.n_own)))

    def known(self, rows: Any) -> NDArray[np.bool_]:
        """Rows in which all costs are finite."""
        costs = matrices_of(self.terms, rows, gaps=True)
        return np.asarray(np.isfinite(costs).all(axis=(1, 2)))

    def matrices(self, graph: Graph, like: str) -> str:
        """Cost matrices (n, n_classes, n_decisions), for the rows of a value of two dimensions."""
        inputs = dict(zip(self.table.columns, names_of_inputs(self.table)))

        def column(name: str) -> str:
            return graph.read(inputs[name], TensorProto.DOUBLE, 1)

        def apply(operation: str, *values: Any) -> Any:
            if not any(isinstance(value, str) for value in values):
                return on_arrays(operation, *values)
            result = graph.add(OPERATIONS[operation][0], *values)
            return graph.as_double(result) if operation in COMPARISONS else result

        zero = graph.add("Mul", graph.add("Gather", like, np.array([0]), axis=1), 0.0)
        parts = []
        for name, cell in self.cells.items():
            is_formula = isinstance(cell, str)
            value = compute(cell, name, self.columns, column, apply) if is_formula else cell
            parts.append(value if isinstance(value, str) else graph.add("Add", zero, float(value)))
        return graph.add("Gather", graph.add("Concat", *parts, axis=1), self.place, axis=1)
