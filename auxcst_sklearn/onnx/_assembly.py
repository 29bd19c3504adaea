"""Assembly of a file from its parts, each converted by its own tool."""

from __future__ import annotations

import logging
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import torch
from onnx import compose, helper, version_converter
from sklearn.pipeline import Pipeline

from .._inputs import ImageInputs, TableInputs
from ..modules import WrappedNetwork
from ._columns import MATRICES, OUTPUTS, ROWS, array_type, columns_model, skl2onnx_types
from ._decision import Decision

# Versions of the operators in the file, and of the file format.
OPSET, IR_VERSION = 20, 10


_FAILED = "The steps before the network cannot be converted by skl2onnx: "


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def assemble(model: Any, X: Any, takes_costs: bool) -> onnx.ModelProto:
    """The steps before the network, and the decision."""
    if not isinstance(model, Pipeline):
        return _of_estimator(model, X, takes_costs)
    steps = [step for step in model.steps[:-1] if not hasattr(step[1], "fit_resample")]
    if not steps:
        return _of_estimator(model[-1], X, takes_costs)
    head = _named(_of_steps(Pipeline(steps), X), "steps/")
    (output,) = head.graph.output
    dtype = helper.tensor_dtype_to_np_dtype(output.type.tensor_type.elem_type)
    rows = np.zeros((1, model[-1].n_features_in_), dtype)
    file = _joined(head, _of_estimator(model[-1], rows, takes_costs))
    try:
        onnx.checker.check_model(file, full_check=True)
    except Exception as error:
        raise ValueError(_FAILED + f"its file is not valid: {_reason(error)}") from error
    return file


def _of_estimator(model: Any, X: Any, takes_costs: bool) -> onnx.ModelProto:
    head = columns_model(model, X, OPSET) if isinstance(model._inputs, TableInputs) else None
    if head is not None:
        head = _named(head, "columns/")
        X = np.zeros(X.shape, np.float64)
    tail = _of_network(model, np.asarray(X), takes_costs)
    return tail if head is None else _joined(head, tail)


def _of_network(model: Any, X: np.ndarray, takes_costs: bool) -> onnx.ModelProto:
    """Export the decision with torch, with a symbolic number of rows."""
    inputs = model._inputs
    images = isinstance(inputs, ImageInputs)
    dtype = np.dtype(inputs.dtype) if images else array_type(X.dtype)
    n_rows, n_classes = 3, len(model.classes_)  # not 0 or 1, which torch treats as constants
    examples = [torch.zeros(n_rows, *X.shape[1:], dtype=torch.from_numpy(np.empty(0, dtype)).dtype)]
    names = [ROWS]
    if takes_costs:
        examples.append(torch.zeros(n_rows, n_classes, n_classes, dtype=torch.float64))
        names.append(MATRICES)
    module = Decision(model, takes_costs)
    bodies = [part.body for part in module.modules() if isinstance(part, WrappedNetwork)]
    name = type((bodies or [module.module])[0]).__name__
    try:
        free = tuple({0: torch.export.Dim.DYNAMIC} for _ in examples)
        with torch.no_grad(), _quiet():
            program = torch.export.export(module, tuple(examples), dynamic_shapes=free)
            outputs = OUTPUTS if module.has_probabilities else OUTPUTS[:2]
            found: Any = torch.onnx.export(
                program,
                tuple(examples),
                dynamo=True,
                opset_version=OPSET,
                external_data=False,
                input_names=names,
                output_names=outputs,
                verbose=False,
            )
    except Exception as error:
        raise ValueError(
            f"The module {name} cannot be exported to ONNX: {type(error).__name__}, "
            f"{_reason(error)}"
        ) from error
    return _finished(found.model_proto, name)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's notes: that torchvision is not installed, and of its own old calls."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*treespec", FutureWarning)
            yield
    finally:
        logger.setLevel(level)


def _finished(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The model for any number of rows, without metadata of its conversion."""
    for value in (*model.graph.input, *model.graph.output):
        first = value.type.tensor_type.shape.dim[0]
        if not first.dim_param:
            raise ValueError(
                f"The module {name} cannot be exported to ONNX: it fixes the number of rows, of "
                f"{value.name} to {first.dim_value}."
            )
        first.dim_param = "n"
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    del model.graph.value_info[:], model.graph.metadata_props[:], model.metadata_props[:]
    model.ir_version = IR_VERSION
    model.producer_name, model.producer_version = "auxcst_sklearn", ""
    return model


def _of_steps(steps: Pipeline, X: Any) -> onnx.ModelProto:
    """Convert the steps of a pipeline before the network."""
    from skl2onnx import convert_sklearn

    try:
        head = convert_sklearn(steps, initial_types=skl2onnx_types(X), target_opset=OPSET)
    except Exception as error:
        raise ValueError(_FAILED + _reason(error)) from error
    head = version_converter.convert_version(head, OPSET)
    for value in head.graph.input:  # skl2onnx does not name the number of rows
        value.type.tensor_type.shape.dim[0].dim_param = "n"
    nodes = [part for node in head.graph.node for part in _filled(node)]
    del head.graph.node[:]
    head.graph.node.extend(nodes)
    return head


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


def _named(head: onnx.ModelProto, prefix: str) -> onnx.ModelProto:
    """Give all values before the network names of their own."""
    for value in head.graph.input:
        if value.name in (*OUTPUTS, MATRICES):
            _rename_input(head, value, f"{value.name}_")
    used = Counter(name for node in head.graph.node for name in node.output)
    used.update(value.name for value in head.graph.input)
    for value in head.graph.input:
        if not value.name or used[value.name] > 1:
            raise ValueError(
                f"X has a column {value.name!r}, a name that no input of the file can have: it is "
                "empty, or used by the file itself; expected another one. Rename the column "
                "before the training."
            )
    return compose.add_prefix(head, prefix, rename_inputs=False)


def _joined(head: onnx.ModelProto, tail: onnx.ModelProto) -> onnx.ModelProto:
    """Join two models; the outputs of the first are the inputs of the second."""
    (output,) = head.graph.output
    tail = compose.add_prefix(tail, "net/", rename_outputs=False, rename_inputs=False)
    _rename_input(tail, tail.graph.input[0], "net/rows")
    opsets = {opset.domain: opset.version for opset in (*head.opset_import, *tail.opset_import)}
    for model in (head, tail):
        del model.opset_import[:]
        model.opset_import.extend(helper.make_opsetid(*item) for item in opsets.items())
        model.ir_version = IR_VERSION
    return compose.merge_models(head, tail, io_map=[(output.name, "net/rows")])


def _rename_input(model: onnx.ModelProto, value: onnx.ValueInfoProto, name: str) -> None:
    for node in model.graph.node:
        node.input[:] = [name if own == value.name else own for own in node.input]
    value.name = name
