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
from numpy.typing import NDArray
from torch import Tensor, nn

from .._inputs import ImageInputs, NamedInputs, TableInputs
from .._inputs.scaling import OUTLYING, Scaling
from ..modules._images import ImageInput
from ..modules._network import copy_of
from ..modules.wrapping import WrappedNetwork
from ._graph import DEEP_TOLERANCE, OPSET, ROWS, Graph, GraphRows, array_type, first_line
from ._pipelines import coded_rows

# Of an example: not 0 or 1, which torch treats as constants.
N_ROWS = 3
# Much larger values have infinite squares in float64, and infinite bounds in float32 constants.
_LARGEST = 1e30


class ScaledRows(nn.Module):
    """The computation of `Scaling.apply`, also in float64, by tensors that become constants."""

    def __init__(self, scaling: Scaling, keep: NDArray[Any]) -> None:
        super().__init__()
        self.moves, self.fills = scaling.moves, not keep.all()
        self.has_heavy, self.has_ranked = scaling.has_heavy, bool(scaling.ranked.any())
        center, scale, fill, heavy = scaling.center, scaling.scale, scaling.fill, scaling.heavy
        self.center, self.scale, self.fill = map(torch.as_tensor, (center, scale, fill))
        self.heavy, self.filled = torch.as_tensor(heavy), torch.as_tensor(~keep)
        # Ranked columns come after all others, and are moved to their places.
        d, ranked = len(scaling.ranked), scaling.ranked
        self.columns = torch.as_tensor(np.flatnonzero(ranked))
        self.places = torch.as_tensor(np.where(ranked, d - 1 + ranked.cumsum(), np.arange(d)))
        low, first = scaling.quantiles[:-1].T, scaling.scores[0]
        width, height = (np.diff(part, axis=0).T for part in (scaling.quantiles, scaling.scores))
        self.low, self.width, self.height, self.first = map(
            torch.as_tensor, (low, np.where(width > 0, width, 1.0), height, first)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Float32 rows for the network."""
        raw = x
        if self.moves:
            x = (x.double() - self.center) / self.scale
        if self.has_heavy:
            t = (x / OUTLYING).clamp(-_LARGEST, _LARGEST)
            x = torch.where(self.heavy, OUTLYING * t / (1 + t * t).sqrt(), x)
        if self.has_ranked:
            ranked = raw.double().index_select(1, self.columns).unsqueeze(-1)
            parts = ((ranked - self.low) / self.width).clamp(0, 1)
            scores = self.first + (parts * self.height).sum(dim=-1)
            x = torch.cat([x, scores], dim=1).index_select(1, self.places)
        if self.fills:
            x = torch.where(torch.isnan(x) & self.filled, self.fill.to(x.dtype), x)
        return x.float()


class Decision(nn.Module):
    """Computes costs in currency, probabilities, and cost matrices of rows."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = copy_of(model.net_.module_).cpu()
        self.module.set_precision(False)
        self.module.eval()
        self.net = [model.net_]  # in a list, so that it is not registered as a submodule
        self.has_probabilities = model._has_probabilities()
        assert model.net_.has_logits in (True, False)  # cached, before the trace has no values
        scaling = model._inputs.row_scaling
        self.rows: nn.Module = nn.Identity() if scaling is None else ScaledRows(*scaling)
        inputs = [part for part in self.module.modules() if isinstance(part, ImageInput)]
        self.integers = any(part.integers for part in inputs)

    def forward(self, x: Tensor | dict[str, Tensor]) -> list[Tensor]:
        """Costs (n, D) in float64; probabilities and cost matrices of rows if the loss has them."""
        (net,) = self.net
        sets: Any = (x,) if isinstance(x, dict) else self._prepared(x).unsqueeze(0)
        output = net.combined(sets, self.module)
        loss, statistics = net.criterion_.loss, net.statistics
        results = [statistics.to_currency(loss.to_cost(output, statistics).mean(dim=0).double())]
        if self.has_probabilities:
            p = loss.probabilities(output).mean(dim=0).double()
            results.append(p / p.sum(dim=1, keepdim=True))
        if net.learns_sample_costs:
            matrices = loss.class_costs(output).mean(dim=0)
            results.append(statistics.to_currency(matrices.double()))
        return results

    def _prepared(self, x: Tensor) -> Tensor:
        """Rows in the form of the network's input; uint8 images stay uint8."""
        x = self.rows(x)
        if self.integers:
            return x.long()
        return x.float() if x.is_floating_point() else x


def network_estimates(model: Any, graph: Graph, rows: GraphRows) -> list[str]:
    """Costs in currency, and probabilities and cost matrices of rows if the loss has them."""
    key = (id(model), rows.value)
    if key not in graph.networks:  # an ensemble reads its networks for two purposes
        if isinstance(model._inputs, TableInputs):
            rows = coded_rows(model._inputs.categories, graph, rows)
        graph.converted.append(type(model).__name__)
        if isinstance(model._inputs, NamedInputs):
            graph.tolerance = DEEP_TOLERANCE
            part = _exported(model, *_named_example(model._inputs, rows.sample))
        else:
            part = _exported(model, *_example(model._inputs, np.asarray(rows.sample)))
        outputs = graph.embed(part, rows)
        graph.networks[key] = model, outputs
    return graph.networks[key][1]


def _example(inputs: Any, X: np.ndarray) -> tuple[Tensor, Any, list[str]]:
    """Rows of an array, their free dimensions, and the name of the input."""
    images = isinstance(inputs, ImageInputs)
    dtype = np.dtype(inputs.dtype) if images else array_type(X.dtype)
    example = torch.from_numpy(np.zeros((N_ROWS, *X.shape[1:]), dtype))
    return example, {0: torch.export.Dim.DYNAMIC}, [ROWS]


def _named_example(inputs: NamedInputs, X: Any) -> tuple[dict[str, Tensor], Any, list[str]]:
    """The same of arrays by name; the length of sequences is free, too."""
    layout, free = inputs.layout, torch.export.Dim.DYNAMIC
    rows = np.resize(np.arange(len(X)), N_ROWS)
    example = {name: torch.as_tensor(X[name][rows]) for name in layout.names}
    shapes = zip(layout.names, layout.shapes)
    return (
        example,
        {name: {0: free, 1: free} if None in shape else {0: free} for name, shape in shapes},
        [f"{ROWS}_{i}" for i in range(len(layout.names))],  # which no node has
    )


def _exported(model: Any, example: Any, free: Any, names: list[str]) -> onnx.ModelProto:
    """The network with a symbolic number of rows."""
    module = Decision(model)
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
