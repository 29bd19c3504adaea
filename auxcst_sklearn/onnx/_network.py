"""A network as a part of a file, exported by torch."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import torch

from .._inputs import ImageInputs, TableInputs
from ..modules.wrapping import WrappedNetwork
from ._columns import coded_rows
from ._decision import Decision
from ._graph import OPSET, ROWS, Graph, Rows, array_type, first_line


def network_estimates(model: Any, graph: Graph, rows: Rows) -> list[str]:
    """Costs in currency, and probabilities and cost matrices of rows if the loss has them."""
    key = (id(model), rows.value)
    if key not in graph.networks:  # a pool reads its networks for two purposes
        if isinstance(model._inputs, TableInputs):
            rows = coded_rows(model._inputs.categories, graph, rows)
        graph.networks[key] = graph.embed(_exported(model, np.asarray(rows.sample)), rows)
    return graph.networks[key]


def _exported(model: Any, X: np.ndarray) -> onnx.ModelProto:
    """The network with a symbolic number of rows."""
    inputs = model._inputs
    images = isinstance(inputs, ImageInputs)
    dtype = np.dtype(inputs.dtype) if images else array_type(X.dtype)
    n_rows = 3  # not 0 or 1, which torch treats as constants
    example = torch.from_numpy(np.zeros((n_rows, *X.shape[1:]), dtype))
    module = Decision(model)
    bodies = [part.body for part in module.modules() if isinstance(part, WrappedNetwork)]
    name = type((bodies or [module.module])[0]).__name__
    try:
        with torch.no_grad(), _without_notes():
            free = ({0: torch.export.Dim.DYNAMIC},)
            program = torch.export.export(module, (example,), dynamic_shapes=free)
            found: Any = torch.onnx.export(
                program,
                (example,),
                dynamo=True,
                opset_version=OPSET,
                external_data=False,
                input_names=[ROWS],
                verbose=False,
            )
    except Exception as error:
        raise ValueError(
            f"The module {name} cannot be exported to ONNX: {type(error).__name__}, "
            f"{first_line(error)}"
        ) from error
    return _finished(found.model_proto, name)


@contextmanager
def _without_notes() -> Iterator[None]:
    """Without torch's notes on packages that are not needed, and on its own deprecations."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    logger.addFilter(_is_no_note)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r".*treespec.*LeafSpec", FutureWarning)
            yield
    finally:
        logger.removeFilter(_is_no_note)


def _is_no_note(record: logging.LogRecord) -> bool:
    return "torchvision is not installed" not in record.getMessage()


def _finished(part: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """The part for any number of rows, without metadata of its conversion."""
    for value in (*part.graph.input, *part.graph.output):
        first = value.type.tensor_type.shape.dim[0]
        if not first.dim_param:
            raise ValueError(
                f"The module {name} cannot be exported to ONNX: it fixes the number of rows, of "
                f"{value.name} to {first.dim_value}."
            )
    for node in part.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    return part
