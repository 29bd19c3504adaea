"""Networks of one architecture side by side, as one network on batched matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Generator, Tensor, nn

from ._aux_mlp import AuxMLP
from ._cost_network import ClassAndCostNetwork
from ._feature_input import StackedFeatureInput
from ._layers import SeededDropout, draw_dropout
from ._network import AuxNetwork, LayeredNetwork


class StackedLinear(nn.Module):
    """Linear layers of M networks; those that are None are zero, and stay so without a gradient."""

    def __init__(self, layers: Sequence[nn.Linear | None]) -> None:
        super().__init__()
        present = next(layer for layer in layers if layer is not None)
        n, like = len(layers), present.weight
        self.weight = nn.Parameter(like.new_zeros(n, *like.shape))
        self.bias = nn.Parameter(like.new_zeros(n, len(like), 1))
        for i, layer in enumerate(layers):
            if layer is not None:
                self.weight.data[i] = layer.weight.data
                self.bias.data[i, :, 0] = layer.bias.data

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (M, n_samples, out_features) for inputs (M, n_samples, in_features).

        In memory samples come last, because batched products with few columns are slow.
        """
        return torch.baddbmm(self.bias, self.weight, x.mT).mT

    @torch.no_grad()
    def copy_to(self, layer: nn.Linear, i: int) -> None:
        """Set the weights of one network's layer."""
        layer.weight.copy_(self.weight[i])
        layer.bias.copy_(self.bias[i, :, 0])


def share_sets(x: Tensor, n_networks: int) -> Tensor:
    """For each network the part of its set of rows; for one set without a copy."""
    n_sets = len(x)
    return x.expand(n_networks // n_sets, *x.shape).flatten(0, 1)


class SharedInput(nn.Module):
    """Inputs of S sets of rows for M networks, among which the sets take turns."""

    def __init__(self, n_networks: int) -> None:
        super().__init__()
        self.n_networks = n_networks

    def forward(self, x: Tensor) -> Tensor:
        """Inputs (n_networks, ...) for inputs (n_sets, ...)."""
        return share_sets(x, self.n_networks)


def stack_inputs(inputs: Sequence[Any]) -> nn.Module:
    """First modules of M networks as one, for inputs of S sets of rows."""
    if getattr(inputs[0], "table", None) is not None:
        return StackedFeatureInput(inputs)
    return nn.Sequential(inputs[0], SharedInput(len(inputs)))


class SharedDropout(nn.Module):
    """Dropout with a generator for each set of rows, whose networks share its masks."""

    def __init__(self, p: float, generators: Sequence[Generator]) -> None:
        super().__init__()
        self.p, self.generators = p, generators

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training:
            return x
        masks = [draw_dropout(x.shape[1:], self.p, x, generator) for generator in self.generators]
        keep = torch.stack(masks).mT.contiguous()  # in memory as x is
        return x * share_sets(keep, len(x)).mT


class StackedMLP(LayeredNetwork):
    """Networks that differ in their weights, and perhaps in which layers have a head.

    The first dimension of inputs are the sets of rows, that of outputs the networks: network i sees
    set i modulo `n_row_sets`.
    """

    def __init__(self, networks: Sequence[AuxMLP], n_row_sets: int) -> None:
        super().__init__()
        self.inputs = stack_inputs([network.inputs for network in networks])
        self.hidden = nn.ModuleDict()
        for name in networks[0].hidden:
            blocks: list[Any] = [network.hidden[name] for network in networks]  # nn.Sequential
            self.hidden[name] = nn.Sequential(
                StackedLinear([block[0] for block in blocks]),
                *(
                    SharedDropout(layer.p, [block[-1].generator for block in blocks[:n_row_sets]])
                    if isinstance(layer, SeededDropout)
                    else layer
                    for layer in blocks[0][1:]
                ),
            )
        self.output = StackedLinear([network.output for network in networks])
        self.heads = nn.ModuleDict()
        for name in self.hidden:
            heads: list[Any] = [dict(network.heads.items()).get(name) for network in networks]
            if any(head is not None for head in heads):
                self.heads[name] = StackedLinear(heads)


def stack(networks: Sequence[Any], n_row_sets: int) -> AuxNetwork:
    """A `StackedMLP` of copies of networks; of pairs of networks, a pair of stacks."""
    if isinstance(networks[0], ClassAndCostNetwork):
        parts = ("classes", "costs")
        stacks = [stack([getattr(n, part) for n in networks], n_row_sets) for part in parts]
        return ClassAndCostNetwork(*stacks)
    return StackedMLP(networks, n_row_sets)


def unstack(stacked: AuxNetwork, networks: Sequence[AuxNetwork]) -> None:
    """Copy the weights of a stack back into the networks that it was made of, in their order."""
    for i, network in enumerate(networks):
        layers = dict(network.named_modules())
        for name, layer in stacked.named_modules():
            if isinstance(layer, StackedLinear | StackedFeatureInput) and name in layers:
                layer.copy_to(layers[name], i)
