"""Run a file and its model on the same rows; raise an error if costs or decisions differ.

Both read rows of X, and rows drawn from its columns, with unusual values that the model takes.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from numpy.typing import NDArray
from onnx import TensorProto, helper
from skorch.helper import SliceDict

from .._checks.data import (
    as_floats,
    holds_string,
    is_frame,
    label_index,
    objects,
    select,
    shorten,
    without_gaps,
)
from ..costs._evaluation import final_estimator, last_step
from ..modules._named_rows import Layout
from ._graph import MATRICES, ROWS, SMALLEST_UNIT, Graph, first_line, names_of_inputs

# The share of rows at the steps of an isotonic calibration, where any rounding is a difference.
MOST_AT_STEPS = 0.02

MOST_ROWS, MOST_VALUES = 500, 2_000_000  # in a table
TRIED_ROWS, TRIED_COLUMNS = 32, 30  # to find the columns in which a model takes unusual values
SHARE = 0.3  # of unusual values in a column
SHOWN = 10  # values of a row in a message
BLANKS = " \u00a0 "  # between words; scikit-learn's analyzer of characters makes one of them

Results = dict[str, NDArray[Any]]  # outputs of the file, or what the model computes
Columns = list[Any]
Candidates = dict[int, NDArray[Any]]  # unusual values, by the positions of their columns


def check_agreement(file: onnx.ModelProto, model: Any, X: Any, graph: Graph) -> None:
    """Raise an error if the file cannot be run, or differs from the model on rows like X."""
    last = final_estimator(model)
    takes_costs = any(given.name == MATRICES for given in file.graph.input)
    rng = np.random.default_rng(0)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    networks = [network for network, _ in graph.networks.values()]
    with _as_in_a_file(networks):
        with _explained(graph):
            session = onnxruntime.InferenceSession(file.SerializeToString(), options)
        by_name = isinstance(X, SliceDict)
        taken = partial(_is_taken, model)
        for rows in _named(X, networks[0]._inputs.layout) if by_name else _tables(X, taken):
            shape = (len(rows), len(last.classes_), len(last.decisions_))
            cost = rng.uniform(1, 9, shape) if takes_costs else None
            with _explained(graph):
                found = _run(session, file, rows, cost)
            expected = _estimated(model, rows, cost)
            if difference := _difference(found, expected, last, rows, graph):
                raise ValueError(f"The file differs from the model {difference}.{_advice(graph)}")


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


# ------------------------------------------------------------------ comparison


def _estimated(model: Any, rows: Any, cost: Any) -> Results:
    """The outputs as the model computes them."""
    last, inner = last_step(model, rows)
    decided = label_index(last.decide(inner, cost), last.decisions_, name="decisions_")
    results = {"cost": last.predict_cost(inner, cost), "index": decided}
    if hasattr(last, "predict_proba"):
        results = {"probability": last.predict_proba(inner), **results}
    return results


def _is_taken(model: Any, rows: Any) -> bool:
    try:
        last, inner = last_step(model, rows)
        return bool(np.isfinite(last.predict_cost(inner)).all())
    except Exception:  # any that a step or a classifier raises
        return False


def _run(session: Any, file: onnx.ModelProto, rows: Any, cost: Any) -> Results:
    """The outputs of the file."""
    given = {} if cost is None else {MATRICES: cost}
    given |= {i.name: _input(i, rows) for i in file.graph.input if i.name != MATRICES}
    names = [output.name for output in file.graph.output]
    return dict(zip(names, session.run(names, given)))


def _input(given: onnx.ValueInfoProto, rows: Any) -> NDArray[Any]:
    """The array, or one column; a missing string is ""."""
    dtype = helper.tensor_dtype_to_np_dtype(given.type.tensor_type.elem_type)
    if isinstance(rows, SliceDict):
        return np.asarray([*rows.values()][names_of_inputs(rows).index(given.name)], dtype)
    if not is_frame(rows) and given.name == ROWS:
        return np.asarray(rows, dtype)
    j = names_of_inputs(rows).index(given.name)
    values = values_of(select(rows, j) if is_frame(rows) else rows[:, j])
    if given.type.tensor_type.elem_type == TensorProto.STRING:
        values = np.where(values == values, values, "")
    return values.astype(dtype)[:, np.newaxis]


def _difference(
    found: Results, expected: Results, last: Any, rows: Any, graph: Graph
) -> str | None:
    """Where an output differs most, and in how many rows."""
    labels = {"probability": last.classes_, "cost": last.decisions_}
    for name, values in expected.items():
        if name == "index":  # not as far as the costs differ
            at = np.stack([found[name], values], axis=1)
            two = np.take_along_axis(expected["cost"], at, axis=1)
            gap = np.abs(np.diff(two)) / _unit(expected["cost"])
        else:
            gap = np.abs(found[name] - values) / _unit(values)
        share = (~(gap <= graph.tolerance)).any(axis=1).mean()
        if share > (MOST_AT_STEPS if graph.has_steps else 0):
            row, k = np.unravel_index(np.nan_to_num(gap, nan=np.inf).argmax(), gap.shape)
            if name == "index":
                what = "decision"
                mine, theirs = last.decisions_[at[row]].tolist()
            else:
                what = f"{name} of {labels[name].tolist()[k]!r}"
                mine, theirs = float(found[name][row, k]), float(values[row, k])
            return (
                f"in {share:.1%} of rows, most for {_shown(rows, int(row))}, where the {what} is "
                f"{mine!r} instead of {theirs!r}"
            )
    return None


def _unit(values: NDArray[Any]) -> NDArray[Any]:
    """The size of each row, (n, 1)."""
    largest: NDArray[Any] = np.abs(values).max(axis=1, keepdims=True)
    return largest.clip(SMALLEST_UNIT * np.median(largest) + np.finfo(np.float64).tiny)


def _shown(rows: Any, row: int) -> str:
    """The first values of a row."""
    if isinstance(rows, SliceDict):
        return f"row {row}"
    values = [values_of(column)[row] for column in _columns(rows)[: SHOWN + 1]]
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    return shorten(np.array(plain, object), SHOWN)


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


def _tables(X: Any, takes: Callable[[Any], bool]) -> Iterator[Any]:
    """Rows of X, and rows drawn from its columns, with unusual values that the model takes."""
    columns, rng = _columns(X), np.random.default_rng(0)
    n = min(MOST_ROWS, max(8, MOST_VALUES // len(columns)))
    at = np.linspace(0, len(X) - 1, min(n, len(X))).astype(int)
    columns = [_at(column, at) for column in columns]
    yield _joined(X, columns)
    drawn = [_at(column, rng.integers(len(at), size=n)) for column in columns]
    if len(X.shape) == 1:  # two texts in one, so that words occur twice and beside others
        drawn = [drawn[0].astype(object) + BLANKS + rng.choice(drawn[0], n).astype(object)]
    if not takes(_joined(X, drawn)):
        return
    few = [_at(column, np.arange(min(n, TRIED_ROWS))) for column in drawn]
    for unusual in (_between, _missing) if len(X.shape) == 2 else ():
        found = {j: unusual(column) for j, column in enumerate(columns)}
        found = {j: values for j, values in found.items() if len(values)}
        if not takes(_joined(X, _changed(few, found, 1.0, rng))):
            some = rng.permutation(list(found))[:TRIED_COLUMNS].tolist()
            tried = {j: _joined(X, _changed(few, {j: found[j]}, 1.0, rng)) for j in some}
            found = {j: found[j] for j, rows in tried.items() if takes(rows)}
        changed = _changed(drawn, found, SHARE, rng)
        drawn = changed if takes(_joined(X, changed)) else drawn
    yield _joined(X, drawn)


def _named(X: SliceDict, layout: Layout) -> Iterator[SliceDict]:
    """Rows of arrays by name, and the same with three more steps of zeros in all sequences."""
    few = X[np.linspace(0, len(X) - 1, min(MOST_ROWS, len(X))).astype(int)]
    yield few
    of_steps = [name for name, shape in zip(layout.names, layout.shapes) if None in shape]
    if of_steps:
        padding = {k: [(0, 0), (0, 3), *[(0, 0)] * (few[k].ndim - 2)] for k in of_steps}
        yield SliceDict(**few | {name: np.pad(few[name], padding[name]) for name in of_steps})


def _changed(
    columns: Columns, found: Candidates, share: float, rng: np.random.Generator
) -> Columns:
    """Columns with candidates in a share of their rows."""
    new = list(columns)
    for j, values in found.items():
        n = len(columns[j])
        new[j] = _replaced(columns[j], rng.uniform(size=n) < share, rng.choice(values, n))
    return new


def _between(column: Any) -> NDArray[Any]:
    """Numbers half-way between neighbours, zero and two beyond; or categories never seen."""
    values = values_of(column)
    if values.dtype.kind == "O":
        texts = [value for value in values[:TRIED_ROWS] if isinstance(value, str)]
        # Perhaps texts: some words of two in one occur twice, others once.
        unseen = ["never seen", *(f"{a}{BLANKS}{a} {b}" for a, b in pairwise(texts))]
        return np.array([] if _is(column, "enum") else unseen, object)
    known: NDArray[Any] = np.unique(values[values == values])
    if _is(column, "bool"):
        return known[:0]
    if known.dtype.kind != "f" or not len(known):
        return known[:-1] + np.diff(known) // 2
    low, high, middle = known[0], known[-1], known[:-1] / 2 + known[1:] / 2
    if (known == np.floor(known)).all():  # perhaps codes of categories
        middle = np.floor(middle)
    width = high - low + 1
    rare = [0, low - width, high + width] * (1 + len(middle) // 10)
    return np.array([*middle, *rare], known.dtype)


def _missing(column: Any) -> NDArray[Any]:
    """NaN, or what is missing among strings: for encoders None, NaN and "" may be three."""
    values = values_of(column)
    if values.dtype.kind == "O":
        gaps = [value for value in column if not isinstance(value, str | bytes)]
        return np.array(gaps[:1], object)
    return np.array([np.nan] if values.dtype.kind == "f" else [], values.dtype)


def values_of(column: Any) -> NDArray[Any]:
    """Strings as objects, with NaN for missing ones; or numbers."""
    is_plain = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufb"
    values = np.asarray(column) if is_plain or isinstance(column, np.ndarray) else objects(column)
    if values.dtype.kind in "OUS" and holds_string(values):
        return without_gaps(values.astype(object))
    return as_floats(values)


def _is(column: Any, kind: str) -> bool:
    return str(column.dtype).lower().startswith(kind)


def _columns(X: Any) -> Columns:
    if is_frame(X):
        return [select(X, j) for j in range(X.shape[1])]
    return list(X.reshape(len(X), -1).T)


def _at(column: Any, at: NDArray[Any]) -> Any:
    """Some rows of a column, without their index."""
    return column.iloc[at].reset_index(drop=True) if hasattr(column, "iloc") else column[at]


def _replaced(column: Any, mask: NDArray[np.bool_], new: NDArray[Any]) -> Any:
    """A column with new values in some rows, of its type if it has strings."""
    values = values_of(column)
    if values.dtype.kind != "O":
        return np.where(mask, new, values)
    values[:] = list(column)  # with missing values as they are
    values = np.where(mask, new, values)
    if isinstance(column, np.ndarray):
        return values
    if _is(column, "category"):  # of pandas; a new category is added
        return type(column)(type(column.array)(values.tolist()))
    return type(column)(values.tolist(), dtype=column.dtype)


def _joined(X: Any, columns: Columns) -> Any:
    """Columns in the form of X."""
    if is_frame(X):
        return type(X)(dict(zip(X.columns, columns)))
    return np.column_stack(columns).reshape(-1, *X.shape[1:])
