"""A class network and a cost network: the two networks of the loss "bayes_risk"."""

from __future__ import annotations

import torch
from torch import Tensor

from ._network import AuxNetwork


class ClassAndCostNetwork(AuxNetwork):
    """A network with heads, and a cost network without; the outputs are concatenated.

    `classes` has the heads and returns K logits; `costs` returns 2 K outputs.
    """

    def __init__(self, classes: AuxNetwork, costs: AuxNetwork) -> None:
        super().__init__()
        self.classes = classes
        self.costs = costs
        self.n_networks = classes.n_networks
        self.even_rows = classes.even_rows

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers of the class network that have a head, and of its output."""
        return self.classes.layers

    def rescale_heads(self, factor: float, shift: float, *, output: bool, hidden: bool) -> None:
        """Rescale the heads of the class network."""
        self.classes.rescale_heads(factor, shift, output=output, hidden=hidden)

    def set_precision(self, bf16: bool) -> None:
        """Set the number format of both networks."""
        self.classes.set_precision(bf16)
        self.costs.set_precision(bf16)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the class network, then of the cost network."""
        return torch.cat([self.classes(x), self.costs(x)], dim=-1)

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head of the class network, the last with those of the cost network."""
        *hidden, output = self.classes.forward_heads(x)
        return [*hidden, torch.cat([output, self.costs(x)], dim=-1)]

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of the class network; the cost network starts at outputs of zero."""
        self.classes.start_at(bias, aux_bias)
        for parameter in self.costs.output.parameters():
            parameter.zero_()
