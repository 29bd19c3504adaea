"""The decision of a model as one file: costs, the cheapest decision, and probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from sklearn.pipeline import Pipeline

from ._graph import Graph, Rows, first_line
from ._probabilities import cost_and_probability
from ._steps import rows_of_steps


def assemble(model: Any, X: Any, takes_costs: bool) -> onnx.ModelProto:
    """The steps before the last estimator, its estimates, and the decision."""
    graph, rows = Graph(), Rows(X)
    if isinstance(model, Pipeline):
        rows, model = rows_of_steps(model, graph, rows), model[-1]
    cost, *p = cost_and_probability(model, graph, rows)
    n_columns = len(model.classes_), len(model.decisions_)
    if takes_costs:
        row = graph.add("Unsqueeze", p[0], np.array([1]))
        expected = graph.add("MatMul", row, graph.matrices(*n_columns))
        cost = graph.add("Squeeze", expected, np.array([1]))
    index = graph.add("ArgMin", cost, axis=1, keepdims=0)
    file = graph.finished([cost, index, *p], *n_columns)
    try:
        onnx.checker.check_model(file, full_check=True)
    except Exception as error:
        raise ValueError(f"The file is not valid: {first_line(error)}") from error
    return file
