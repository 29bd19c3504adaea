"""Costs that a file computes from its columns, as `cost_matrices` does from a table."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from .._checks.data import holds_categories, is_frame, select
from .._checks.labels import shorten
from ..costs._formulas import compute, on_arrays
from ..costs._named import column_positions, same_labels
from ..costs._terms import matrices_of, read_terms
from ._graph import Graph, names_of_inputs

AXES = ("classes", "decisions")
TRUTHS = ("Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")


class Account:
    """The cost of each cell of the terms, for a table whose first columns are the model's.

    `table` holds the columns of X that the model and the formulas read.
    """

    def __init__(self, terms: Any, model: Any, last: Any, X: Any) -> None:
        if not is_frame(X):
            raise ValueError(
                f"X is of type {type(X).__name__}, and terms are formulas of columns; expected a "
                "DataFrame with the columns that the model and terms read."
            )
        self.terms, self.columns = terms, list(X.columns)
        self.rows, self.decisions, self.cells = read_terms(terms)
        read = self._columns_read(X)
        names = getattr(model, "feature_names_in_", self.columns)
        own = [name for name in names if name in self.columns]
        self.n_own = len(own)
        self.table = X[[*own, *(name for name in read if name not in own)]]
        costs: Any = matrices_of(terms, self.table, gaps=True)
        if not np.isfinite(costs).all(axis=(1, 2)).any():
            raise ValueError(f"In no row of X are all columns that terms reads finite: {read}.")
        of_axes = [(getattr(costs, axis), getattr(last, f"{axis}_"), axis) for axis in AXES]
        for labels, wanted, axis in of_axes:
            if not same_labels(labels, wanted):
                raise ValueError(
                    f"terms has the {axis} {shorten(labels)}; expected those of the model, "
                    f"{shorten(wanted)}. Write terms with these, or fit the model with terms."
                )
        self.order = tuple(column_positions(*one) for one in of_axes)

    def _columns_read(self, X: Any) -> list[str]:
        """The columns that formulas read."""
        read: dict[str, None] = {}
        one: np.float64 = np.float64(1)

        def column(name: str) -> np.float64:
            if holds_categories(select(X, self.columns.index(name))):
                raise ValueError(f"terms reads the column {name!r} of X, which holds strings.")
            read[name] = None
            return one

        for label, row in self.cells.items():
            for decision, cell in row.items():
                name = f"terms[{label!r}][{decision!r}]"
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
        """Rows in which all costs are known."""
        costs = np.asarray(matrices_of(self.terms, rows, gaps=True))
        known: NDArray[np.bool_] = np.atleast_1d(np.isfinite(costs).all(axis=(1, 2)))
        return known

    def matrices(self, graph: Graph, like: str) -> str:
        """Cost matrices (n, n_classes, n_decisions); `like` has two dimensions, of rows first."""
        inputs = dict(zip(self.table.columns, names_of_inputs(self.table)))

        def column(name: str) -> str:
            return graph.read(inputs[name], TensorProto.DOUBLE, 1)

        def apply(operation: str, *values: Any) -> Any:
            if not any(isinstance(value, str) for value in values):
                return on_arrays(operation, *values)
            result = graph.add(operation, *values)
            return graph.as_double(result) if operation in TRUTHS else result

        cells = [self.cells[label][decision] for label in self.rows for decision in self.decisions]
        values = [
            compute(cell, "", self.columns, column, apply) if isinstance(cell, str) else float(cell)
            for cell in cells
        ]
        numbers = [i for i, value in enumerate(values) if not isinstance(value, str)]
        formulas = [i for i, value in enumerate(values) if isinstance(value, str)]
        zero = graph.add("Mul", graph.add("Gather", like, np.array([0]), axis=1), 0.0)
        constants = np.array([[values[i] for i in numbers]], np.float64)
        parts = [graph.add("Add", zero, constants), *(values[i] for i in formulas)]
        place = np.argsort([*numbers, *formulas]).reshape(len(self.rows), len(self.decisions))
        all_cells = graph.add("Concat", *parts, axis=1)
        return graph.add("Gather", all_cells, place[np.ix_(*self.order)], axis=1)
