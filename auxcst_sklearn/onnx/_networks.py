"""Networks, from scaled rows to costs in currency, as parts of a file that torch exports."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import torch
from torch import Tensor

from .._estimators.decision_module import DecisionModule
from .._inputs.arrays import ImagePreprocessor
from .._inputs.lazy_rows import exceeds_float32
from .._inputs.named import NamedPreprocessor
from .._inputs.tables import TablePreprocessor
from ..modules.wrapping import WrappedNetwork
from ._graph import DEEP_TOLERANCE, OPSET, ROWS, Graph, GraphRows, array_type, first_line
from ._pipelines import coded_rows

# Of an example: not 0 or 1, which torch treats as constants.
N_ROWS = 3


def network_estimates(model: Any, graph: Graph, rows: GraphRows) -> list[str]:
    """Costs in currency, and probabilities and cost matrices of rows if the loss has them."""
    key = (id(model), rows.value)
    if key not in graph.networks:  # an ensemble reads its networks for two purposes
        if isinstance(model._inputs, TablePreprocessor):
            rows = coded_rows(model._inputs.categories, graph, rows)
        graph.converted.append(type(model).__name__)
        if isinstance(model._inputs, NamedPreprocessor):
            graph.tolerance = DEEP_TOLERANCE
            part = _exported(model, *_named_example(model._inputs, rows.sample))
        else:
            part = _exported(model, *_example(model._inputs, np.asarray(rows.sample)))
        outputs = graph.embed(part, rows)
        graph.networks[key] = model, outputs
    return graph.networks[key][1]


def _example(inputs: Any, X: np.ndarray) -> tuple[Tensor, Any, list[str]]:
    """Rows of an array, their free dimensions, and the name of the input."""
    is_image = isinstance(inputs, ImagePreprocessor) and not exceeds_float32(X)
    dtype = np.dtype(inputs.dtype) if is_image else array_type(X.dtype)
    example = torch.from_numpy(np.zeros((N_ROWS, *X.shape[1:]), dtype))
    return example, {0: torch.export.Dim.DYNAMIC}, [ROWS]


def _named_example(inputs: NamedPreprocessor, X: Any) -> tuple[dict[str, Tensor], Any, list[str]]:
    """The same of arrays by name; the length of sequences is free, too."""
    layout, free = inputs.layout, torch.export.Dim.DYNAMIC
    rows = np.resize(np.arange(len(X)), N_ROWS)
    types = zip(layout.names, layout.dtypes)
    example = {name: torch.as_tensor(X[name][rows].astype(dtype)) for name, dtype in types}
    shapes = zip(layout.names, layout.shapes)
    return (
        example,
        {name: {0: free, 1: free} if None in shape else {0: free} for name, shape in shapes},
        [f"{ROWS}_{i}" for i in range(len(layout.names))],  # which no node has
    )


def _exported(model: Any, example: Any, free: Any, names: list[str]) -> onnx.ModelProto:
    """The network with a symbolic number of rows."""
    module = DecisionModule(model)
    module.module.set_precision(False)
    bodies = [part.body for part in module.modules() if isinstance(part, WrappedNetwork)]
    name = type((bodies or [module.module])[0]).__name__
    try:
        with torch.no_grad(), _without_notes():
            program = torch.export.export(module, (example,), dynamic_shapes=(free,))
            found: Any = torch.onnx.export(
                program,
                (example,),
                dynamo=True,
                opset_version=OPSET,
                external_data=False,
                input_names=names,
                verbose=False,
            )
    except Exception as error:
        raise ValueError(
            f"The module {name} cannot be exported to ONNX: {type(error).__name__}, "
            f"{first_line(error)}"
        ) from error
    part: onnx.ModelProto = found.model_proto
    for node in part.graph.node:  # without metadata of the conversion
        del node.metadata_props[:]
        node.doc_string = ""
    return part


@contextmanager
def _without_notes() -> Iterator[None]:
    """Without torch's notes on packages that are not needed, and on its own deprecations."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    before, logger.disabled = logger.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*treespec.*LeafSpec", FutureWarning)
            yield
    finally:
        logger.disabled = before
