"""A network as one torch module: inputs, network, temperature, costs in currency."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from .._inputs.scaling import OUTLYING, Scaling
from ..modules._images import ImageInput

# Much larger values have infinite squares in float64, and infinite bounds in float32 constants.
_LARGEST = 1e30


class ScaledRows(nn.Module):
    """The computation of `Scaling.apply`, also in float64."""

    center: Tensor
    scale: Tensor
    fill: Tensor
    heavy: Tensor
    places: Tensor
    filled: Tensor

    def __init__(self, scaling: Scaling, keep: NDArray[Any]) -> None:
        super().__init__()
        self.moves, self.fills = scaling.moves, not keep.all()
        self.has_heavy = scaling.has_heavy
        for name in ("center", "scale", "fill", "heavy"):
            self.register_buffer(name, torch.as_tensor(getattr(scaling, name)))
        self.register_buffer("filled", torch.as_tensor(~keep))
        self.ranks = Ranks(scaling) if scaling.ranked.any() else None
        d = len(scaling.ranked)
        places = np.where(scaling.ranked, d - 1 + scaling.ranked.cumsum(), np.arange(d))
        self.register_buffer("places", torch.as_tensor(places))

    def forward(self, x: Tensor) -> Tensor:
        """Float32 rows for the network."""
        raw = x
        if self.moves:
            x = (x.double() - self.center) / self.scale
        if self.has_heavy:
            t = (x / OUTLYING).clamp(-_LARGEST, _LARGEST)
            x = torch.where(self.heavy, OUTLYING * t / (1 + t * t).sqrt(), x)
        if self.ranks is not None:
            x = torch.cat([x, self.ranks(raw.double())], dim=1).index_select(1, self.places)
        if self.fills:
            x = torch.where(torch.isnan(x) & self.filled, self.fill.to(x.dtype), x)
        return x.float()


class Ranks(nn.Module):
    """Normal scores of the ranks of some features."""

    columns: Tensor
    low: Tensor
    width: Tensor
    height: Tensor
    first: Tensor

    def __init__(self, scaling: Scaling) -> None:
        super().__init__()
        columns = np.flatnonzero(scaling.ranked)
        width = np.diff(scaling.quantiles, axis=0).T
        for name, values in {
            "columns": columns,
            "low": scaling.quantiles[:-1].T,
            "width": np.where(width > 0, width, 1.0),
            "height": np.diff(scaling.scores, axis=0).T,
            "first": scaling.scores[0],
        }.items():
            self.register_buffer(name, torch.as_tensor(values))

    def forward(self, x: Tensor) -> Tensor:
        """Scores (n, n_ranked) of float64 rows."""
        parts = (x.index_select(1, self.columns).unsqueeze(-1) - self.low) / self.width
        return self.first + (parts.clamp(0, 1) * self.height).sum(dim=-1)


class Decision(nn.Module):
    """Computes costs in currency, probabilities, and cost matrices of rows."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.module = deepcopy(model.net_.module_).cpu()
        self.module.set_precision(False)
        self.module.eval()
        self.net = [model.net_]  # in a list, so that it is not registered as a submodule
        self.has_probabilities = model._has_probabilities()
        scaling = model._inputs.row_scaling
        self.rows: nn.Module = nn.Identity() if scaling is None else ScaledRows(*scaling)
        inputs = [part for part in self.module.modules() if isinstance(part, ImageInput)]
        self.integers = any(part.integers for part in inputs)

    def forward(self, x: Tensor) -> list[Tensor]:
        """Costs (n, D) in float64; probabilities and cost matrices of rows if the loss has them."""
        (net,) = self.net
        output = self.module(net.to_sets(self._prepared(x)))
        results = [net.scale.to_currency(self._mean(net.to_cost(output)).double())]
        if self.has_probabilities:
            p = self._mean(net.probabilities(output)).double()
            results.append(p / p.sum(dim=1, keepdim=True))
        if net.learns_sample_costs:
            matrices = self._mean(net.criterion_.loss.cost_matrices(output))
            results.append(net.scale.to_currency(matrices.double()))
        return results

    def _mean(self, estimate: Tensor) -> Tensor:
        """The mean over the networks, if there are several."""
        return estimate.mean(dim=0) if self.net[0].is_stack else estimate

    def _prepared(self, x: Tensor) -> Tensor:
        """Rows in the form of the network's input; uint8 images stay uint8."""
        x = self.rows(x)
        if self.integers:
            return x.long()
        return x.float() if x.is_floating_point() else x
