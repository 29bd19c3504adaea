"""Networks of any kind side by side, each of which computes its own outputs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ._network import AuxNetwork


class SideBySide(AuxNetwork):
    """Networks of one architecture without batched products for it, such as convolutions.

    As in a `StackedMLP`, the first dimension of inputs are the sets of rows, that of outputs the
    networks: network i sees set i modulo the number of sets.
    """

    def __init__(self, networks: Sequence[AuxNetwork]) -> None:
        super().__init__()
        _check_alike(networks)
        self.networks = nn.ModuleList(networks)
        self.n_networks = len(networks)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, the same in all networks."""
        return self._each[0].layers

    @property
    def _each(self) -> list[AuxNetwork]:
        return [network for network in self.networks if isinstance(network, AuxNetwork)]

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main heads, (n_networks, n_samples, n_classes)."""
        return torch.stack([network(x[i % len(x)]) for i, network in enumerate(self.networks)])

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head, each (n_networks, n_samples, n_classes)."""
        of_networks = [network.forward_heads(x[i % len(x)]) for i, network in enumerate(self._each)]
        return [torch.stack(outputs) for outputs in zip(*of_networks)]

    def rescale_heads(self, factor: float, shift: float, *, output: bool, hidden: bool) -> None:
        """Rescale the heads of all networks."""
        for network in self._each:
            network.rescale_heads(factor, shift, output=output, hidden=hidden)

    def set_precision(self, bf16: bool) -> None:
        """Set the number format of all networks."""
        for network in self._each:
            network.set_precision(bf16)


def _check_alike(networks: Sequence[AuxNetwork]) -> None:
    """Raise an error for networks of different layers or sizes, as a random factory makes them."""
    first, *others = ({n: tuple(p.shape) for n, p in net.named_parameters()} for net in networks)
    for i, shapes in enumerate(others, start=2):
        differing = sorted(n for n in {*first, *shapes} if first.get(n) != shapes.get(n))
        if differing:
            name = differing[0]
            raise ValueError(
                f"module made networks of different layers or sizes: {name} has the shape "
                f"{first.get(name)} in the first and {shapes.get(name)} in number {i}; expected "
                "networks that differ only in their weights. Set n_networks=1, or make them alike."
            )
