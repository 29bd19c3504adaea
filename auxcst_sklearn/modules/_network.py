"""What every network has in common: a cost output, and heads on its hidden layers."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn


class AuxNetwork(nn.Module):
    """A network whose hidden layers carry auxiliary cost heads.

    Subclasses set `output`, the main head, and `heads`, the auxiliary ones by the name of the
    layer they read, and define `forward` and `forward_heads`. `forward` gives the estimated costs
    alone; the auxiliary heads cost nothing at prediction.
    """

    output: nn.Linear
    heads: nn.ModuleDict
    bf16: bool = False

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

    def hidden_precision(self, x: Tensor) -> AbstractContextManager:
        """What the hidden layers compute in: bfloat16 if `bf16`; weights and heads are float32."""
        if self.bf16:
            return torch.autocast(x.device.type, torch.bfloat16)
        return nullcontext()

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of the output and of the auxiliary heads."""
        self.output.bias.copy_(bias)
        for head in self.heads.values():
            head.bias.copy_(aux_bias)
