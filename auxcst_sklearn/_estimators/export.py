"""A fitted estimator as one torch module: for `to_module`, and for the files of ONNX."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._inputs.scaling import OUTLYING, Scaling
from .._inputs.tables import TablePreprocessor
from ..modules._heads import CostHead
from ..modules._images import ImageLayer
from ..modules._network import copy_of

# Much larger values have infinite squares in float64, and infinite bounds in float32 constants.
_LARGEST = 1e30


class ScaledRows(nn.Module):
    """The computation of `Scaling.apply`, also in float64, by tensors that become constants.

    `transform` does not run it: files cannot contain a search for the bin of a value, without which
    ranked columns take thirty times as long.
    """

    def __init__(self, scaling: Scaling, keep: NDArray[Any]) -> None:
        super().__init__()
        self.moves, self.fills = scaling.moves, not keep.all()
        self.has_heavy, self.has_ranked = scaling.has_heavy, bool(scaling.ranked.any())
        self.center, self.scale = _constant(scaling.center), _constant(scaling.scale)
        self.fill, self.filled = _constant(scaling.fill), _constant(~keep)
        self.heavy = _constant(scaling.heavy)
        # Ranked columns come after all others, and are moved to their places.
        d, ranked = len(scaling.ranked), scaling.ranked
        self.columns = _constant(np.flatnonzero(ranked))
        self.places = _constant(np.where(ranked, d - 1 + ranked.cumsum(), np.arange(d)))
        width, height = (np.diff(part, axis=0).T for part in (scaling.quantiles, scaling.scores))
        self.low, self.first = _constant(scaling.quantiles[:-1].T), _constant(scaling.scores[0])
        self.width, self.height = _constant(np.where(width > 0, width, 1.0)), _constant(height)

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


def _constant(values: NDArray[Any]) -> nn.Buffer:
    return nn.Buffer(torch.as_tensor(np.ascontiguousarray(values)))


class DecisionModule(nn.Module):
    """Computes costs in currency, probabilities, and cost matrices of rows."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = copy_of(model.net_.module_).cpu().eval()
        self.net = [model.net_]  # in a list, so that it is not registered as a submodule
        self.has_probabilities = model._has_probabilities()
        assert model.net_.has_logits in (True, False)  # cached, before the trace has no values
        inputs = model._inputs
        scaling = inputs.row_scaling
        self.rows: nn.Module = nn.Identity() if scaling is None else ScaledRows(*scaling)
        images = [layer for layer in self.module.modules() if isinstance(layer, ImageLayer)]
        self.integers = any(layer.integers for layer in images)
        for layer in self.module.modules():
            if isinstance(layer, CostHead):  # In training some send no gradient into the layers.
                layer.gradient = 1.0

    def forward(self, x: Tensor | dict[str, Tensor]) -> list[Tensor]:
        """Costs (n, D) in float64; probabilities and cost matrices of rows if the loss has them."""
        (net,) = self.net
        sets: Any = (x,) if isinstance(x, dict) else self._prepare(x).unsqueeze(0)
        output = net.forward_ensemble(sets, self.module)
        loss, statistics = net.criterion_.loss, net.statistics
        results = [statistics.to_currency(loss.to_cost(output, statistics).mean(dim=0).double())]
        if self.has_probabilities:
            p = loss.probabilities(output).mean(dim=0).double()
            results.append(p / p.sum(dim=1, keepdim=True))
        if net.learns_sample_costs:
            matrices = loss.class_costs(output).mean(dim=0)
            results.append(statistics.to_currency(matrices.double()))
        return results

    def _prepare(self, x: Tensor) -> Tensor:
        """Rows in the form of the network's input; uint8 images stay uint8."""
        x = self.rows(x)
        if self.integers and (torch.compiler.is_compiling() or not x.is_floating_point()):
            return x.long()  # Other floats are whole numbers, or the first layer raises an error.
        return x.float() if x.is_floating_point() else x


class OutputModule(nn.Module):
    """One of the results: costs, or probabilities; arrays by name are keyword arguments."""

    def __init__(self, model: Any, output: str) -> None:
        super().__init__()
        inputs = model._inputs
        if isinstance(inputs, TablePreprocessor) and inputs.categories:
            raise ValueError(
                f"The columns {list(inputs.categories)} of X are categories, which a torch module "
                "cannot read; expected a network that was fitted with numeric columns. Encode them "
                "in front, for example using a OneHotEncoder."
            )
        self.decision, self.index = DecisionModule(model), int(output == "probability")
        self.inputs = inputs
        images = [layer for layer in self.decision.modules() if isinstance(layer, ImageLayer)]
        self.pixels = getattr(inputs, "dtype", "") == "uint8" and images[0].scales

    # The array has no name, because one of several may have any.
    def forward(self, x: Tensor | None = None, /, **arrays: Tensor) -> Tensor:
        """Costs or probabilities (n_samples, ...), of an array or of arrays by name."""
        layout = getattr(self.inputs, "layout", None)
        if (layout is None) == (x is None) or (layout and set(arrays) != set(layout.names)):
            expected = f"the arrays {[*layout.names]} by name" if layout else "a tensor of samples"
            raise TypeError(f"expected {expected}.")
        if x is None:
            result: Tensor = self.decision(self.inputs.check(arrays))[self.index]
            return result
        self.inputs.check(x)
        if self.pixels and x.is_floating_point():  # as the first layer does with uint8
            x = x / 255
        return self.decision(x)[self.index]
