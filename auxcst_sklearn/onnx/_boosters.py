"""Classifiers of LightGBM and XGBoost, which onnxmltools converts."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from ._graph import Graph, Rows

_CONVERTERS = {
    "lightgbm": ("lightgbm.operator_converters.LightGbm", "convert_lightgbm"),
    "xgboost": ("xgboost.operator_converters.XGBoost", "convert_xgboost"),
}


def package_of(model: Any) -> str:
    """The package of a classifier."""
    return type(model).__module__.partition(".")[0]


def register(model: Any) -> None:
    """Register the converter of a classifier of these packages; of others do nothing."""
    if package_of(model) not in _CONVERTERS:
        return
    from skl2onnx import update_registered_converter
    from skl2onnx.common.shape_calculator import calculate_linear_classifier_output_shapes

    module, function = _CONVERTERS[package_of(model)]
    update_registered_converter(
        type(model),
        f"{package_of(model)}{type(model).__name__}",
        calculate_linear_classifier_output_shapes,
        getattr(import_module(f"onnxmltools.convert.{module}"), function),
        options={"nocl": [True, False], "zipmap": [True, False, "columns"]},
    )


def as_read(model: Any, graph: Graph, rows: Rows) -> Rows:
    """Rows in the precision of the package: the thresholds of XGBoost are rows in float32."""
    if package_of(model) != "xgboost":
        return rows
    value = graph.add("Cast", graph.value(rows), to=TensorProto.FLOAT)
    return Rows(np.zeros(rows.sample.shape, np.float32), value)


def make_exact(part: onnx.ModelProto, model: Any) -> None:
    """Give the trees of LightGBM its thresholds in float64, which onnxmltools rounds."""
    if package_of(model) != "lightgbm":
        return
    exact = _thresholds(model.booster_.model_to_string())
    for node in part.graph.node:
        if node.op_type != "TreeEnsembleClassifier":
            continue
        given = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        pairs = zip(given["nodes_featureids"], given["nodes_values"])
        given["nodes_values"] = [exact.get(pair, pair[1]) for pair in pairs]
        given.pop("nodes_hitrates", None)
        for name in {"nodes_values", "class_weights", "base_values"} & set(given):
            values = given.pop(name)
            given[f"{name}_as_tensor"] = helper.make_tensor(
                name, TensorProto.DOUBLE, [len(values)], values
            )
        del node.attribute[:]
        node.attribute.extend(helper.make_attribute(*item) for item in given.items())


def _thresholds(text: str) -> dict[tuple[int, float], float]:
    """The threshold of a column and a rounded threshold, of a model as text."""
    lines = [line.partition("=") for line in text.splitlines()]
    columns, values = (
        [float(v) for name, _, row in lines if name == wanted for v in row.split()]
        for wanted in ("split_feature", "threshold")
    )
    return {(int(j), float(np.float32(v))): v for j, v in zip(columns, values)}
