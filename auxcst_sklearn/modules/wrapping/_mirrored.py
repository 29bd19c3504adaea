"""Predictions that are means over an image and its mirror image."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor

from .._images import RandomFlipShift
from ._wrapped import WrappedNetwork


class MirroredNetwork(WrappedNetwork):
    """A network on images; where training mirrors them, outputs are means over both images."""

    @property
    def mirrors(self) -> bool:
        """Whether outputs are means; in evaluation only."""
        augmentation = getattr(self.inputs, "augmentation", None)
        return not self.training and isinstance(augmentation, RandomFlipShift) and augmentation.flip

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        return self._mean(super().forward(x))

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of those `among` some, in the order of `layers`."""
        return [*map(self._mean, super().forward_heads(x, among))]

    def _own(self, x: Tensor) -> Any:
        own = super()._own(x)
        return torch.cat([own, own.flip(-1)]) if self.mirrors else own

    def _mean(self, outputs: Tensor) -> Tensor:
        if not self.mirrors:
            return outputs
        return outputs.view(2, -1, outputs.shape[-1]).mean(dim=0)
