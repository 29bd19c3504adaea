"""Run a file and its model on the same rows; raise an error if costs or decisions differ."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper
from sklearn.utils import _safe_indexing
from skorch.helper import SliceDict

from .._checks.data import as_floats, holds_string, is_frame, objects, select, without_gaps
from .._checks.nesting import final_estimator, last_step
from ..costs._reading import costs_of
from ._converted import attributes
from ._graph import MATRICES, ROWS, SMALLEST_UNIT, Graph, first_line, names_of_inputs

# The share of rows at the steps of an isotonic calibration, where any rounding is a difference.
MOST_AT_STEPS = 0.02

MOST_ROWS, MOST_VALUES = 500, 2_000_000  # in a table

Results = dict[str, NDArray[Any]]  # outputs of the file, or what the model computes


def check_agreement(file: onnx.ModelProto, model: Any, X: Any, graph: Graph) -> None:
    """Raise an error if the file cannot be run, or differs from the model on rows of X."""
    last = final_estimator(model)
    takes_costs = any(node.name == MATRICES for node in file.graph.input)
    rows, places = _some(X, model)
    shape = (len(rows), len(last.classes_), len(last.decisions_))
    cost = np.random.default_rng(0).uniform(1, 9, shape) if takes_costs else None
    if (function := last._deciding_function) is not None:
        costs = costs_of(function, last_step(model, rows)[1], len(rows), type(last).__name__)
        cost = costs.align(last.classes_, last.decisions_)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    networks = [network for network, _ in graph.networks.values()]
    with _as_in_a_file(networks):
        with _explained(graph):
            session = onnxruntime.InferenceSession(file.SerializeToString(), options)
            of_file = _run(session, file, rows, cost)
        expected = _estimated(model, rows, cost)
    labels = {"probability": last.classes_, "cost": last.decisions_}
    if difference := _difference(of_file, expected, labels, places, graph):
        raise ValueError(
            f"The file differs from the model {difference}.{_advice(graph)}{_gaps(rows)}"
        )


@contextmanager
def _explained(graph: Graph) -> Iterator[None]:
    """Errors of onnxruntime, or of a string for a number, with what may have caused them."""
    try:
        yield
    except Exception as error:
        reason = first_line(error).removesuffix(".")
        raise ValueError(f"The file cannot be run: {reason}.{_advice(graph)}") from error


def _advice(graph: Graph) -> str:
    """What other packages have converted, perhaps wrongly."""
    if not graph.converted:
        return ""
    names = ", ".join(dict.fromkeys(graph.converted))
    return f" Other packages converted {names}; use other estimators or parameters there."


def _gaps(rows: Any) -> str:
    """Columns of strings in which some are missing."""
    columns = [*(rows.columns if is_frame(rows) else ())]
    strings = (values_of(select(rows, j)) for j in range(len(columns)))
    gaps = [k for k, v in zip(columns, strings) if v.dtype.kind == "O" and (v != v).any()]
    return f" Strings are missing in {gaps}, and are '' in a file: fill them in." if gaps else ""


# ------------------------------------------------------------------ comparison


def _estimated(model: Any, rows: Any, cost: Any) -> Results:
    """The outputs as the model computes them."""
    last, inner = last_step(model, rows)
    results = {"cost": last.predict_cost(inner, cost)}
    if hasattr(last, "predict_proba"):
        results = {"probability": last.predict_proba(inner), **results}
    return results


def _run(session: Any, file: onnx.ModelProto, rows: Any, cost: Any) -> Results:
    """The outputs of the file."""
    inputs = {} if cost is None else {MATRICES: cost}
    inputs |= {i.name: _input(i, rows) for i in file.graph.input if i.name != MATRICES}
    names = [output.name for output in file.graph.output]
    return dict(zip(names, session.run(names, inputs)))


def _input(node: onnx.ValueInfoProto, rows: Any) -> NDArray[Any]:
    """The array, or one column; a missing string is ""."""
    dtype = helper.tensor_dtype_to_np_dtype(node.type.tensor_type.elem_type)
    if isinstance(rows, SliceDict):
        return np.asarray([*rows.values()][names_of_inputs(rows).index(node.name)], dtype)
    if not is_frame(rows) and node.name == ROWS:
        return np.asarray(rows, dtype)
    j = names_of_inputs(rows).index(node.name)
    values = values_of(select(rows, j) if is_frame(rows) else rows[:, j])
    if node.type.tensor_type.elem_type == TensorProto.STRING:
        values = np.where(values == values, values, "")
    return values.astype(dtype)[:, np.newaxis]


def _difference(
    of_file: Results, expected: Results, labels: Results, places: list[str], graph: Graph
) -> str | None:
    """How far an output differs, and most in which row."""
    for name, values in expected.items():
        gap = np.abs(of_file[name] - values) / _unit(values)
        share = (~(gap <= graph.tolerance)).any(axis=1).mean()
        if share > (MOST_AT_STEPS if graph.has_steps else 0):
            row, k = np.unravel_index(np.nan_to_num(gap, nan=np.inf).argmax(), gap.shape)
            mine, theirs = float(of_file[name][row, k]), float(values[row, k])
            what = f"the {name} of {labels[name].tolist()[k]!r} is {mine!r} instead of {theirs!r}"
            return f"in {share:.1%} of the rows; {what} in {places[row]}"
    return None


def _unit(values: NDArray[Any]) -> NDArray[Any]:
    """The size of each row, (n, 1)."""
    largest: NDArray[Any] = np.abs(values).max(axis=1, keepdims=True)
    return largest.clip(SMALLEST_UNIT * np.median(largest) + np.finfo(np.float64).tiny)


@contextmanager
def _as_in_a_file(networks: list[Any]) -> Iterator[None]:
    """Compute in float32, not in bfloat16 or on a GPU in TF32.

    The networks are those of a copy of the model, so that they stay changed.
    """
    for network in networks:
        network.net_.module_.set_precision(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.backends.cudnn.flags(allow_tf32=False):
            yield


# ------------------------------------------------------------------------ rows


def _some(X: Any, model: Any) -> tuple[Any, list[str]]:
    """Up to `MOST_ROWS` rows of X, fewer of wide ones, and their places; arrays also at thresholds.

    Rows at the thresholds of trees show how these are rounded.
    """
    n_values = 1 if isinstance(X, SliceDict) else int(np.prod(X.shape[1:]))
    n = min(MOST_ROWS, max(8, MOST_VALUES // n_values), len(X))
    at = np.linspace(0, len(X) - 1, n).astype(int)
    rows = X[at] if isinstance(X, SliceDict) else _safe_indexing(X, at)
    places = [f"row {i} of X" for i in at]
    if not isinstance(X, np.ndarray) or X.dtype.kind not in "fiu" or X.ndim != 2:
        return rows, places
    trees = [tree for tree in attributes(model, "tree_") if tree.n_features == X.shape[1]]
    splits = [(j, t) for tree in trees for j, t in zip(tree.feature, tree.threshold) if j >= 0]
    splits = splits[:: 1 + len(splits) // n]
    more = rows[np.resize(np.arange(n), len(splits))]
    for row, (j, threshold) in zip(more, splits):
        row[j] = threshold
    places += [f"a row with {threshold!s} in column {j}" for j, threshold in splits]
    return np.concatenate([rows, more]), places


def values_of(column: Any) -> NDArray[Any]:
    """Strings as objects, with NaN for missing ones; or numbers."""
    is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"
    values = np.asarray(column) if is_plain or isinstance(column, np.ndarray) else objects(column)
    if values.dtype.kind in "OUS" and holds_string(values):
        return without_gaps(values.astype(object))
    return as_floats(values)
