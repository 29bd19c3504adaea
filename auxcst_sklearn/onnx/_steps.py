"""Steps of a pipeline, and other classifiers, as parts of a file: converted by skl2onnx."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, version_converter
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import Pipeline

from .._checks.frames import holds_categories, holds_string, is_frame, select
from ._boosters import as_read, make_exact, package_of, register
from ._columns import coded_rows, skl2onnx_types
from ._graph import OPSET, Graph, Rows, first_line


def rows_of_steps(model: Pipeline, graph: Graph, rows: Rows) -> Rows:
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
    return Rows(np.zeros((1, model[-1].n_features_in_), dtype), value)


def _has_strings(X: Any) -> bool:
    if is_frame(X):
        return any(holds_categories(select(X, j)) for j in range(X.shape[1]))
    return isinstance(X, np.ndarray) and X.dtype.kind in "OUS" and holds_string(X)


def estimates(model: Any, graph: Graph, rows: Rows, **options: Any) -> str:
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


def _converted(model: Any, rows: Rows, name: str, opset: Any, options: Any = None) -> Any:
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
