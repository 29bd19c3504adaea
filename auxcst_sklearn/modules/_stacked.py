"""Networks of one architecture side by side, as one network on batched matrices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Union

import torch
from torch import Generator, Tensor, nn

from ._aux_mlp import AuxMLP
from ._cost_network import ClassAndCostNetwork
from ._feature_input import FeatureInput, StackedFeatureInput
from ._layers import ScaledLinear, SeededDropout, draw_dropout, factors, share_sets
from ._network import AuxNetwork, LayeredNetwork
from ._side_by_side import SideBySide

Layer = Union[nn.Linear, "StackedLinear"]  # noqa: UP007


class StackedLinear(nn.Module):
    """Linear layers of M networks; a layer that is None is zero, and is not trained.

    `layers` are those of single networks, or of stacks of `counts` networks.
    """

    def __init__(self, layers: Sequence[Layer | None], counts: Sequence[int]) -> None:
        super().__init__()
        weight, _ = weights_of(next(layer for layer in layers if layer is not None))
        n, shape = sum(counts), weight.shape[1:]
        self.weight = nn.Parameter(weight.new_zeros(n, *shape))
        self.bias = nn.Parameter(weight.new_zeros(n, shape[0], 1))
        for layer, part in zip(layers, slices(counts)):
            if layer is not None:
                for own, other in zip((self.weight, self.bias), weights_of(layer)):
                    own.data[part] = other

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (M, n_samples, out_features) for inputs (M, n_samples, in_features).

        In memory samples come last, because batched products with few columns are slow.
        """
        return torch.baddbmm(self.bias, self.weight, x.mT).mT

    def copy_to(self, layer: Layer, part: slice) -> None:
        """Set the weights of the layer of some networks."""
        for own, other in zip((self.weight, self.bias), weights_of(layer)):
            other.copy_(own.data[part])


class StackedScaledLinear(StackedLinear):
    """Layers of M networks that also learn factors of some inputs."""

    def __init__(self, layers: Sequence[Any], counts: Sequence[int]) -> None:
        super().__init__(layers, counts)
        scales = [layer.scale.data.reshape(-1, 1, layer.scale.shape[-1]) for layer in layers]
        self.around = layers[0].around
        self.scale = nn.Parameter(torch.cat(scales))

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (M, n_samples, out_features) for inputs (M, n_samples, in_features)."""
        factor = factors(self.scale, self.around)
        if self.training:  # of weights, so that the inputs need no gradient
            return torch.baddbmm(self.bias, self.weight * factor, x.mT).mT
        return super().forward(x * factor)

    def copy_to(self, layer: Any, part: slice) -> None:
        """Set the weights and factors of the layer of some networks."""
        super().copy_to(layer, part)
        layer.scale.copy_(self.scale.data[part].reshape(layer.scale.shape))


class StackedHead(StackedLinear):
    """Cost neurons of M networks, computed in the precision of their weights."""

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (M, n_samples, n_classes)."""
        x = x.to(self.weight.dtype)
        if not torch.is_autocast_enabled(x.device.type):
            return super().forward(x)
        with torch.autocast(x.device.type, enabled=False):
            return super().forward(x)


def weights_of(layer: Layer) -> tuple[Tensor, Tensor]:
    """Weights (n_networks, out, in) and biases (n_networks, out, 1) of a layer."""
    weight, bias = layer.weight.data, layer.bias.data
    if isinstance(layer, StackedLinear):
        return weight, bias
    return weight.unsqueeze(0), bias[None, :, None]


def slices(counts: Sequence[int]) -> list[slice]:
    """The parts of a stack whose sizes are `counts`."""
    ends = list(accumulate(counts))
    return [slice(end - count, end) for end, count in zip(ends, counts)]


class SharedInput(nn.Module):
    """Inputs of S sets of rows for M networks; network i uses set i modulo S."""

    def __init__(self, n_networks: int) -> None:
        super().__init__()
        self.n_networks = n_networks

    def forward(self, x: Tensor) -> Tensor:
        """Inputs (n_networks, ...) for inputs (n_sets, ...)."""
        return share_sets(x, self.n_networks)


def stack_inputs(inputs: Sequence[Any], n_networks: int) -> nn.Module:
    """First modules of M networks as one, for inputs of S sets of rows."""
    first = inputs[0]
    one_by_one = isinstance(first, FeatureInput) and (first.table is not None or first.bins)
    if isinstance(first, StackedFeatureInput) or one_by_one:
        return StackedFeatureInput(inputs)
    return nn.Sequential(inputs[0], SharedInput(n_networks))


class SharedDropout(nn.Module):
    """Dropout of networks that share masks if they share a set of rows.

    The sets are divided among the generators, so that each draws once for several sets. A generator
    with a single set draws the same numbers as `SeededDropout`.
    """

    generators: Sequence[Generator] = ()
    n_sets = 1

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "generators": ()}  # type: ignore[no-untyped-call]

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training or self.p == 0:
            return x
        n_each, (_, n_samples, n_inputs) = self.n_sets // len(self.generators), x.shape
        single = n_each == 1
        shape = (1, n_samples, n_inputs) if single else (n_each, n_inputs, n_samples)
        masks = [draw_dropout(shape, self.p, x, generator) for generator in self.generators]
        if single:
            masks = [mask.mT.contiguous() for mask in masks]  # with the memory layout of x
        keep = masks[0] if len(masks) == 1 else torch.cat(masks)
        return x * share_sets(keep, len(x)).mT


class StackedMLP(LayeredNetwork):
    """Networks that differ in their weights, and perhaps in which layers have a head.

    The first dimension of inputs holds the sets of rows, that of outputs the networks: network i
    uses set i modulo the number of sets. `networks` are single networks or stacks.
    """

    even_rows = 16

    def __init__(self, networks: Sequence[AuxMLP | StackedMLP]) -> None:
        super().__init__()
        counts = [network.n_networks for network in networks]
        self.n_networks = sum(counts)
        first = networks[0]
        self.inputs = stack_inputs([own_inputs(network) for network in networks], self.n_networks)
        self.hidden = nn.ModuleDict()
        for name in first.hidden:
            blocks: list[Any] = [network.hidden[name] for network in networks]  # nn.Sequential
            scaled = isinstance(blocks[0][0], ScaledLinear | StackedScaledLinear)
            kind = StackedScaledLinear if scaled else StackedLinear
            self.hidden[name] = nn.Sequential(
                kind([block[0] for block in blocks], counts),
                *(
                    SharedDropout(layer.p)
                    if isinstance(layer, (SeededDropout, SharedDropout))
                    else layer
                    for layer in blocks[0][1:]
                ),
            )
        outputs: list[Any] = [network.output for network in networks]
        self.output = StackedHead(outputs, counts)
        self.heads = nn.ModuleDict()
        for name in self.hidden:
            heads: list[Any] = [dict(network.heads.items()).get(name) for network in networks]
            if any(head is not None for head in heads):
                self.heads[name] = StackedHead(heads, counts)


def own_inputs(network: AuxMLP | StackedMLP) -> nn.Module:
    """First module of a network; for a stack, without the assignment of sets."""
    if isinstance(network, StackedMLP) and isinstance(network.inputs, nn.Sequential):
        return network.inputs[0]
    return network.inputs


def stack(networks: Sequence[Any]) -> AuxNetwork:
    """One network of several, or of stacks: of perceptrons a `StackedMLP` of copies of them.

    Pairs of networks become a pair of stacks; other networks are computed one by one.
    """
    if isinstance(networks[0], ClassAndCostNetwork):
        parts = ("classes", "costs")
        return ClassAndCostNetwork(*(stack([getattr(n, part) for n in networks]) for part in parts))
    if isinstance(networks[0], AuxMLP | StackedMLP):
        return StackedMLP(networks)
    return SideBySide(networks)


def weights_by_network(module: nn.Module) -> list[list[Tensor]]:
    """The tensors of each network of a stack; where they lie in one tensor, views of it."""
    if isinstance(module, SideBySide):
        return [list(network.state_dict().values()) for network in module.networks]
    if isinstance(module, ClassAndCostNetwork):
        parts = (weights_by_network(module.classes), weights_by_network(module.costs))
        return [[*of_classes, *of_costs] for of_classes, of_costs in zip(*parts)]
    return [*map(list, zip(*(parameter.detach() for parameter in module.parameters())))]


@torch.no_grad()
def unstack(stacked: AuxNetwork, networks: Sequence[AuxNetwork]) -> None:
    """Copy the weights of a stack back to the networks from which it was made, in order."""
    for network, part in zip(networks, slices([network.n_networks for network in networks])):
        layers: Any = dict(network.named_modules())
        for name, layer in stacked.named_modules():
            if isinstance(layer, StackedLinear | StackedFeatureInput) and name in layers:
                layer.copy_to(layers[name], part)
