"""Columns of X, steps of pipelines, and classifiers that skl2onnx converts, as parts of a file."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, version_converter
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline

from .._checks.data import holds_categories, holds_string, is_frame, select
from .._inputs.columns import MOST_EXACT, UNKNOWN
from ._graph import OPSET, ROWS, Graph, GraphRows, array_type, first_line
from ._trees import as_read, make_exact, package_of, register

# --------------------------------------------------------------------- columns


def input_names(X: Any) -> list[str]:
    """Names of the inputs for the columns of X."""
    return (
        [str(name) for name in X.columns] if is_frame(X) else [f"x{j}" for j in range(X.shape[1])]
    )


def coded_rows(levels: dict[int, NDArray[Any]], graph: Graph, rows: GraphRows) -> GraphRows:
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
    return GraphRows(np.zeros(X.shape), value)


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
            kind = kinds.Int64TensorType  # of types without missing values, which a file has as NaN
        inputs.append((name, kind([None, 1])))
    return inputs


# ----------------------------------------------------------------------- steps


def rows_of_steps(model: Pipeline, graph: Graph, rows: GraphRows) -> GraphRows:
    """The rows after all steps of a pipeline but the last."""
    steps = [step for step in model.steps[:-1] if not hasattr(step[1], "fit_resample")]
    if not steps:
        return rows
    before = Pipeline(steps)
    name = "The steps before the classifier"
    if rows.value is None and _has_strings(before.transform(rows.sample)):
        raise _refused(
            name,
            "they pass strings on beside numbers, and it has no array of both. Encode them in "
            "the pipeline, or leave these columns to a classifier that takes a DataFrame.",
        )
    part = _converted(before, rows, name, OPSET)
    (output,) = part.graph.output
    dtype = helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    (value,) = graph.embed(part, rows)
    return GraphRows(np.zeros((1, model[-1].n_features_in_), dtype), value)


def _has_strings(X: Any) -> bool:
    if is_frame(X):
        return any(holds_categories(select(X, j)) for j in range(X.shape[1]))
    return isinstance(X, np.ndarray) and X.dtype.kind in "OUS" and holds_string(X)


def estimates(model: Any, graph: Graph, rows: GraphRows, **options: Any) -> str:
    """Probabilities, or scores with `raw_scores`, of a classifier, in float64."""
    name = type(model).__name__
    _refuse_categories(model, name)
    if options and package_of(model) == "lightgbm":
        raise _refused(name, "its calibrator reads raw scores, which onnxmltools does not convert.")
    register(model)
    if rows.value is None and _has_strings(rows.sample):
        raise _refused(name, "it reads categories of a DataFrame. Encode them in a pipeline.")
    rows = as_read(model, graph, coded_rows({}, graph, rows))
    opset, chosen = {"": OPSET, "ai.onnx.ml": 3}, {id(model): options} if options else None
    part = _converted(model, rows, name, opset, chosen)
    make_exact(part, model)
    value = graph.embed(part, rows)[1]
    for node in graph.nodes:
        if node.op_type == "ZipMap" and node.output[0] == value:  # a dict for each row
            value = node.input[0]
    return graph.as_double(value)


def _converted(model: Any, rows: GraphRows, name: str, opset: Any, options: Any = None) -> Any:
    types = skl2onnx_types(rows.sample)
    try:
        part = _convert(model, types, opset, options)
    except Exception as error:
        try:  # some steps, such as an imputer of the mean, read no integers
            part = _convert(model, _without_integers(types), opset, options)
        except Exception:
            raise _refused(name, first_line(error)) from error
    part = version_converter.convert_version(part, OPSET)
    nodes = _named_gaps(part.graph, _missing_category(model))
    nodes += [new for node in part.graph.node for new in _filled(node)]
    del part.graph.node[:]
    part.graph.node.extend(nodes)
    return part


def _convert(model: Any, types: list[Any], opset: Any, options: Any) -> onnx.ModelProto:
    from skl2onnx import convert_sklearn

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # skl2onnx reads deprecated attributes
        part: onnx.ModelProto = convert_sklearn(
            model, initial_types=types, target_opset=opset, options=options
        )
    return part


def _without_integers(types: list[Any]) -> list[Any]:
    from skl2onnx.common.data_types import DoubleTensorType, Int64TensorType

    return [
        (name, DoubleTensorType(kind.shape) if isinstance(kind, Int64TensorType) else kind)
        for name, kind in types
    ]


def _refused(name: str, why: str) -> ValueError:
    return ValueError(f"{name} cannot be converted by skl2onnx: {why}")


def _refuse_categories(model: Any, name: str) -> None:
    """Raise an error for boosting inside of another classifier, whose categories are ignored."""
    for part in model.get_params().values():
        if isinstance(part, HistGradientBoostingClassifier):
            raise _refused(name, f"it would ignore the categories of its {type(part).__name__}.")


def _missing_category(model: Any) -> str:
    """What skl2onnx calls the missing category of the encoders in a pipeline; "" if there is none.

    It takes the string for the category, where Python has None or NaN.
    """
    levels = [level for encoder in _encoders(model) for level in np.concatenate(encoder)]
    names = {str(level) for level in levels if level is None or level != level}
    if len(names) != 1 or not (names | {""}).isdisjoint(levels):
        return ""  # what a missing string is, is not known
    return names.pop()


def _encoders(step: Any) -> Iterator[list[Any]]:
    """The categories of each encoder."""
    parts = getattr(step, "steps", getattr(step, "transformers_", ()))
    for _, part, *_ in parts:
        yield from _encoders(part)
    if hasattr(step, "categories_"):
        yield step.categories_


def _named_gaps(graph: onnx.GraphProto, missing: str) -> list[onnx.NodeProto]:
    """Nodes that replace "", which stands for a missing string in the file."""
    nodes = []
    for value in graph.input:
        if not missing or value.type.tensor_type.elem_type != TensorProto.STRING:
            continue
        name, gap, empty, fill, named = (value.name + end for end in ("", "/=", "/0", "/1", "/2"))
        for node in graph.node:
            node.input[:] = [named if own == name else own for own in node.input]
        nodes += [
            helper.make_node("Constant", [], [empty], value_string=""),
            helper.make_node("Constant", [], [fill], value_string=missing),
            helper.make_node("Equal", [name, empty], [gap]),
            helper.make_node("Where", [gap, fill, name], [named]),
        ]
    return nodes


def _filled(node: onnx.NodeProto) -> list[onnx.NodeProto]:
    """A node; an imputer, which onnxruntime supports only for float32, is replaced."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if node.op_type != "Imputer" or not np.isnan(attributes.get("replaced_value_float", 0)):
        return [node]
    (x,), (result,) = node.input, node.output
    values, fill, gap = (f"{result}/{name}" for name in ("values", "fill", "gap"))
    return [
        helper.make_node("Constant", [], [values], value_floats=attributes["imputed_value_floats"]),
        helper.make_node("CastLike", [values, x], [fill]),
        helper.make_node("IsNaN", [x], [gap]),
        helper.make_node("Where", [gap, fill, x], [result]),
    ]
