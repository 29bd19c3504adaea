"""The inputs of a file: one for an array, one for each column of a DataFrame; and categories."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .._checks.frames import holds_categories, is_frame, select
from .._inputs.columns import MOST_EXACT, UNKNOWN
from ._graph import ROWS, Graph, Rows, array_type


def input_names(X: Any) -> list[str]:
    """Names of the inputs for the columns of X."""
    return (
        [str(name) for name in X.columns] if is_frame(X) else [f"x{j}" for j in range(X.shape[1])]
    )


def coded_rows(levels: dict[int, NDArray[Any]], graph: Graph, rows: Rows) -> Rows:
    """Rows as one array, with codes of the levels of some columns."""
    X = rows.sample
    apart = is_frame(X) or X.dtype.kind in "OUS"
    if not apart and not levels:
        return rows
    builder = _Columns(levels, X.shape[1])
    if apart:
        for j, name in enumerate(input_names(X)):
            builder.is_single = str(select(X, j).dtype).lower() == "float32"
            builder.add_column(j, name)
    else:
        builder.add_array(array_type(X.dtype))
    part = helper.make_graph(
        [*builder.nodes, helper.make_node("Concat", builder.parts, ["/rows"], axis=1)],
        "columns",
        builder.inputs,
        [helper.make_tensor_value_info("/rows", TensorProto.DOUBLE, ["n", X.shape[1]])],
        builder.constants,
    )
    (value,) = graph.embed(helper.make_model(part), rows)
    return Rows(np.zeros(X.shape), value)


class _Columns:
    """Nodes that return the columns one by one, in `parts`."""

    def __init__(self, levels: dict[int, NDArray[Any]], n_columns: int) -> None:
        self.levels = levels
        self.n_columns, self.is_single = n_columns, False
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.parts: list[str] = []

    def add_column(self, j: int, name: str) -> None:
        """Read a column from its own input."""
        kind = TensorProto.STRING if self._of_strings(j) else TensorProto.DOUBLE
        self.inputs.append(helper.make_tensor_value_info(name, kind, ["n", 1]))
        self._add_part(j, name)

    def add_array(self, dtype: np.dtype) -> None:
        """Read all columns from one input."""
        self.is_single = dtype == np.float32
        kind = helper.np_dtype_to_tensor_dtype(dtype)
        self.inputs.append(helper.make_tensor_value_info(ROWS, kind, ["n", self.n_columns]))
        self.nodes.append(helper.make_node("Cast", [ROWS], ["/numbers"], to=TensorProto.DOUBLE))
        for j in range(self.n_columns):
            self.constants.append(helper.make_tensor(f"/at{j}", TensorProto.INT64, [1], [j]))
            self.nodes.append(
                helper.make_node("Gather", ["/numbers", f"/at{j}"], [f"/column{j}"], axis=1)
            )
            self._add_part(j, f"/column{j}")

    def _of_strings(self, j: int) -> bool:
        return any(isinstance(level, str) for level in self.levels.get(j, ()))

    def _add_part(self, j: int, name: str) -> None:
        if j in self.levels:
            self.nodes.append(self._encoder(j, name))
            name = f"/codes{j}"
        self.parts.append(name)

    def _encoder(self, j: int, name: str) -> onnx.NodeProto:
        """Codes of the levels; NaN for a missing one, if one was missing in the training."""
        known: list[Any] = [level for level in self.levels[j] if level == level]
        codes = [float(code) for code in range(len(known))]
        missing: Any
        kind, missing, keys = TensorProto.STRING, "", known
        if not self._of_strings(j):
            if other := [level for level in known if not isinstance(level, Real | np.bool_)]:
                raise ValueError(
                    f"Column {name!r} of X has categories such as {other[0]!r}; expected strings "
                    "or numbers, which a file can hold. Convert them, such as with astype(str)."
                )
            # Single precision is widened here, not read as the digits of its categories.
            keys = np.array(known, np.float32 if self.is_single else np.float64).tolist()
            kind, missing = TensorProto.DOUBLE, np.nan
            if large := [v for v in known if v > MOST_EXACT or v < -MOST_EXACT]:
                raise ValueError(
                    f"Column {name!r} of X has the category {large[0]}, and numbers beyond 2**53 "
                    "are not exact in the file; expected smaller ones, or strings. Convert them "
                    "with astype(str)."
                )
        if len(known) < len(self.levels[j]):
            if missing in keys:
                raise ValueError(
                    f"Column {name!r} of X has both missing values and the category {missing!r}, "
                    "which stands for them in the file; expected one of the two. Rename it."
                )
            keys, codes = [*keys, missing], [*codes, float("nan")]
        tensor = helper.make_tensor
        return helper.make_node(
            "LabelEncoder",
            [name],
            [f"/codes{j}"],
            domain="ai.onnx.ml",
            keys_tensor=tensor("keys", kind, [len(keys)], keys),
            values_tensor=tensor("codes", TensorProto.DOUBLE, [len(codes)], codes),
            default_tensor=tensor("unknown", TensorProto.DOUBLE, [1], [float(UNKNOWN)]),
        )


def skl2onnx_types(X: Any) -> list[tuple[str, Any]]:
    """Inputs of a pipeline, in the form of skl2onnx."""
    from skl2onnx.common import data_types as kinds

    if not is_frame(X):
        single = array_type(X.dtype) == np.float32
        kind = kinds.FloatTensorType if single else kinds.DoubleTensorType
        return [(ROWS, kind([None, *X.shape[1:]]))]
    inputs = []
    for j, name in enumerate(input_names(X)):
        column = select(X, j)
        kind = kinds.StringTensorType if holds_categories(column) else kinds.DoubleTensorType
        if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu":
            kind = (
                kinds.Int64TensorType
            )  # types that hold no missing value, which a file has as NaN
        inputs.append((name, kind([None, 1])))
    return inputs
