"""The networks of the paper: K outputs, and K auxiliary neurons on hidden layers."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn


class AuxNetwork(nn.Module):
    """A network whose hidden layers have auxiliary cost heads.

    Subclasses set `output`, the main head, and `heads`, the auxiliary heads by the name of their
    layer, and define `forward` and `forward_heads`. `forward` returns the outputs of the main head
    only, so auxiliary heads take no time at prediction.
    """

    output: nn.Module
    heads: nn.ModuleDict
    bf16: bool = False
    n_networks: int = 1  # more in a stack
    even_rows: int = 1  # size of a batch whose rows are all rounded alike

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, first hidden layer to output."""
        return (*self.heads, "output")

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        raise TypeError(f"{type(self).__name__} must define forward.")

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head, in the order of `layers`."""
        raise TypeError(f"{type(self).__name__} must define forward_heads.")

    def set_precision(self, bf16: bool) -> None:
        """Set whether the hidden layers compute in bfloat16."""
        self.bf16 = bf16

    def hidden_precision(self, x: Tensor) -> AbstractContextManager[Any]:
        """Autocast of the hidden layers to bfloat16 if `bf16`; weights and heads are float32."""
        if self.bf16:
            return torch.autocast(x.device.type, torch.bfloat16)
        return nullcontext()

    def rescale_heads(self, factor: float, shift: float, *, output: bool, hidden: bool) -> None:
        """Change the output r of all heads to ``factor * r + shift``."""
        for head in [self.output] * output + list(self.heads.values()) * hidden:
            head.get_parameter("weight").mul_(factor)
            head.get_parameter("bias").mul_(factor).add_(shift)

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of the output and of the auxiliary heads."""
        self.get_parameter("output.bias").copy_(bias)
        for name in self.heads:
            self.heads.get_parameter(f"{name}.bias").copy_(aux_bias)


class LayeredNetwork(AuxNetwork):
    """A sequence of hidden layers, as in the figure of the paper.

    In addition to `output` and `heads`, subclasses set `inputs`, a module that prepares the inputs,
    and `hidden`, the hidden layers by name.
    """

    inputs: nn.Module
    hidden: nn.ModuleDict

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        output: Tensor = self.output(self._run(x, heads={})[0])
        return output

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head, in the order of `layers`."""
        x, outputs = self._run(x, self.heads)
        return [*outputs, self.output(x)]

    def code(self, x: Tensor, n_layers: int) -> Tensor:
        """Output of the first `n_layers` hidden layers; for 0, the prepared inputs."""
        return self._run(x, heads={}, n_layers=n_layers)[0]

    def _run(
        self, x: Tensor, heads: nn.ModuleDict | dict[str, Any], n_layers: int | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Output of the last hidden layer, and of the heads of all layers."""
        x, outputs = self.inputs(x), []
        with self.hidden_precision(x):
            for name, layer in list(self.hidden.items())[:n_layers]:
                x = layer(x)
                if name in heads:
                    outputs.append(heads[name](x))
        return x, outputs
