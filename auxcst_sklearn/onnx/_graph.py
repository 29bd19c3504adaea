"""The graph of a file, put together from nodes and from parts that other tools have converted."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir
from onnx import TensorProto, compose, helper, numpy_helper
from onnx_ir.passes.common import RemoveUnusedNodesPass

from .._checks.data import is_frame

OUTPUTS = ("cost", "index", "probability")
ROWS, MATRICES = "X", "cost_matrices"
# How far costs may differ, relative to the largest number of a row, or to a hundredth of the median
# of these: where the costs of a row cancel out, single precision is not better. In deep networks on
# sequences, which multiply in single precision dozens of times, rounding adds up.
TOLERANCE, DEEP_TOLERANCE, SMALLEST_UNIT = 1e-5, 1e-4, 0.01
# Versions of the operators in the file, and of the file format.
OPSET, ML_OPSET, IR_VERSION = 20, 4, 10


def array_type(dtype: np.dtype) -> np.dtype:
    """The type of a file's input for an array: uint8 and float32 are kept, others are float64."""
    return dtype if dtype in (np.uint8, np.float32) else np.dtype(np.float64)


def first_line(error: BaseException) -> str:
    """What went wrong, without the context."""
    return str(error).strip().partition("\n")[0]


class GraphRows(NamedTuple):
    """Rows in a graph: a value, or None for the inputs of the file; a sample has their type."""

    sample: Any
    value: str | None = None


class Graph:
    """Nodes and constants; values are referred to by their names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.uses: dict[str, list[onnx.ValueInfoProto]] = defaultdict(list)
        # Networks with their outputs, and names of what other packages have converted.
        self.networks: dict[tuple[int, str | None], tuple[Any, list[str]]] = {}
        self.converted: list[str] = []
        self.imputed: dict[float, float] = {}  # what imputers fill in, by its rounded value
        self.has_steps = False  # of an isotonic calibration
        self.tolerance = TOLERANCE
        self.n_names = 0

    def _name(self) -> str:
        self.n_names += 1
        return f"/{self.n_names}"

    def add(self, op: str, *inputs: Any, output: str | None = None, **attributes: Any) -> str:
        """Add a node with one output; inputs that are not names are constants."""
        names = [x if isinstance(x, str) else self._constant(x) for x in inputs]
        output = output or self._name()
        # Without names, the fusions of onnxruntime 1.20 give several nodes the same one.
        self.nodes.append(helper.make_node(op, names, [output], name=output, **attributes))
        return output

    def _constant(self, value: Any) -> str:
        name = self._name()
        self.constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def as_double(self, value: str) -> str:
        """The same in float64."""
        return self.add("Cast", value, to=TensorProto.DOUBLE)

    def read(self, name: str, elem_type: int, *shape: int) -> str:
        """Read an input of the file, in the type that a part needs."""
        value = helper.make_tensor_value_info(self._name(), elem_type, ["n", *shape])
        self.uses[name].append(value)
        return value.name

    def embed(self, model: onnx.ModelProto, rows: GraphRows, missing: str = "") -> list[str]:
        """Add a part that is computed from rows; returns the names of its outputs.

        A missing string, which is "" in the file, is `missing` for the part.
        """
        names = [value.name for value in model.graph.input]
        if isinstance(rows.sample, dict):  # arrays by name, in the order of their layout
            names = sorted(rows.sample)
        if is_frame(rows.sample):  # of which skl2onnx changes spaces and signs
            names = names_of_columns(rows.sample)
        model = compose.add_prefix(model, f"{self._name()}/")
        for name, value in zip(_apart_from_outputs(names), model.graph.input):
            elem_type = value.type.tensor_type.elem_type
            if rows.value is not None:
                self.add("Cast", rows.value, output=value.name, to=elem_type)
            elif elem_type == TensorProto.STRING and missing:
                text = self.read(name, elem_type, 1)
                gap = self.add("Equal", text, np.array([""], object))
                self.add("Where", gap, np.array([missing], object), text, output=value.name)
            else:
                self.uses[name].append(value)
        for node in model.graph.node:
            attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
            if node.op_type == "Imputer" and np.isnan(attributes.get("replaced_value_float", 0)):
                # onnxruntime has no Imputer of float64.
                (x,), (result,) = node.input, node.output
                values = [self.imputed.get(v, v) for v in attributes["imputed_value_floats"]]
                filled = self.add("CastLike", values, x)
                self.add("Where", self.add("IsNaN", x), filled, x, output=result)
            else:
                self.nodes.append(node)
        self.constants.extend(model.graph.initializer)
        return [value.name for value in model.graph.output]

    def value(self, rows: GraphRows) -> str:
        """Rows of an array, in float64."""
        if rows.value is not None:
            return self.as_double(rows.value)
        elem_type = helper.np_dtype_to_tensor_dtype(array_type(rows.sample.dtype))
        return self.as_double(self.read(ROWS, elem_type, rows.sample.shape[1]))

    def finished(self, results: list[str], n_classes: int, n_decisions: int) -> onnx.ModelProto:
        """The file, with results by the names of `OUTPUTS`, and without unused nodes."""
        inputs, readers = [], []
        for name, uses in self.uses.items():
            value_info = onnx.ValueInfoProto(name=name, type=uses[0].type)
            # One cost matrix may be for all rows.
            length = "1 or n" if name == MATRICES else "n"
            value_info.type.tensor_type.shape.dim[0].dim_param = length
            inputs.append(value_info)
            readers += [helper.make_node("Identity", [name], [value.name]) for value in uses]
        outputs, named = [], []
        for name, value in zip(OUTPUTS, results):
            named.append(helper.make_node("Identity", [value], [name]))
            width = {"cost": [n_decisions], "index": [], "probability": [n_classes]}[name]
            shape: list[Any] = ["n", *width]
            elem_type = TensorProto.INT64 if name == "index" else TensorProto.DOUBLE
            outputs.append(helper.make_tensor_value_info(name, elem_type, shape))
        nodes = [*readers, *self.nodes, *named]
        made = {name for node in nodes for name in node.output}
        for value_info in inputs:
            if value_info.name in made:
                raise _refused_name(value_info.name)
        graph = helper.make_graph(nodes, "decision", inputs, outputs, self.constants)
        versions = {"": OPSET, "ai.onnx.ml": ML_OPSET}
        versions |= {node.domain: 1 for node in nodes if node.domain not in versions}
        opsets = [helper.make_opsetid(*version) for version in versions.items()]
        file = helper.make_model(
            graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="auxcst_sklearn"
        )
        return onnx_ir.to_proto(RemoveUnusedNodesPass()(onnx_ir.from_proto(file)).model)


def names_of_columns(X: Any) -> list[str]:
    """Names of the columns of X, or of its arrays."""
    if isinstance(X, dict):
        return [*X]
    return (
        [str(name) for name in X.columns] if is_frame(X) else [f"x{j}" for j in range(X.shape[1])]
    )


def names_of_inputs(X: Any) -> list[str]:
    """Names of a file's inputs for the columns of X."""
    return _apart_from_outputs(names_of_columns(X))


def _apart_from_outputs(names: list[str]) -> list[str]:
    """Names of the inputs of a file; no input has the name of an output."""
    renamed = [f"{name}_" if name in (*OUTPUTS, MATRICES) else name for name in names]
    for name, count in Counter(renamed).items():
        if not name or count > 1:
            raise _refused_name(name)
    return renamed


def _refused_name(name: str) -> ValueError:
    return ValueError(
        f"X has a column {name!r}, a name that no input of the file can have: it is empty, or used "
        "by the file itself; expected another one. Rename the column before the training."
    )
