"""Conversion of the caller's samples to the input of a network."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class ImageInput(nn.Module):
    """First layer of a network on images: shape, channel order, range, augmentation.

    It converts one mini-batch at a time, on the device, so the data themselves do not change: flat
    rows, channels last, pixels as uint8.

    uint8 images, that is samples of several dimensions, are scaled; uint8 rows are treated as
    numbers. If `integers` is set, as `WrappedNetwork` does for a module that accepts no floats,
    nothing is scaled and the output is int64.

    Parameters
    ----------
    shape : sequence of int
        Shape of a sample, such as (C, H, W). Flattened rows are reshaped to it.
    channels_last : bool, default=False
        Whether the last of three dimensions, not the first, holds the channels.
    augmentation : callable, default=None
        Applied to mini-batches in training mode only: takes floats (n_samples, C, H, W) and returns
        floats of the same shape.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules._image_input import ImageInput
    >>> images = ImageInput((2, 2, 3), channels_last=True)
    >>> pixels = torch.full((5, 12), 255, dtype=torch.uint8)
    >>> images(pixels).shape, images(pixels).max()
    (torch.Size([5, 3, 2, 2]), tensor(1.))
    """

    integers: bool = False

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        channels_last: bool = False,
        augmentation: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        super().__init__()
        self.shape = tuple(shape)
        self.channels_last = channels_last and len(self.shape) == 3
        self.augmentation = augmentation

    @property
    def out_shape(self) -> tuple[int, ...]:
        """Shape of a sample after this layer, channels first."""
        return (self.shape[-1], *self.shape[:-1]) if self.channels_last else self.shape

    def forward(self, x: Tensor) -> Tensor:
        """Numbers of shape ``(n_samples, *out_shape)``; uint8 images are scaled to 0 ... 1."""
        x = x.reshape(-1, *self.shape)  # not len(x), which would become a constant in an export
        if self.channels_last:
            x = x.movedim(-1, 1)
        if self.integers:
            x = as_integers(x)
        elif not x.is_floating_point():
            x = x.float() / 255 if len(self.shape) > 1 else x.float()
        if self.augmentation is None or not self.training:
            return x
        augmented = self.augmentation(x)
        if augmented.shape != x.shape:
            raise ValueError(
                f"augmentation turned a batch of shape {tuple(x.shape)} into one of shape "
                f"{tuple(augmented.shape)}; expected the same shape."
            )
        return augmented

    def extra_repr(self) -> str:
        """Show the shape and order of the input."""
        return f"{self.shape}, channels_last={self.channels_last}"


def as_integers(x: Tensor) -> Tensor:
    """Convert indices, which scikit-learn's tools may hold as floats, to int64."""
    if x.is_floating_point() and not torch.equal(x, x.trunc()):
        raise ValueError(
            f"X holds {x[x != x.trunc()][0].item():g}, but the module takes integers alone, as an "
            "nn.Embedding does; expected whole numbers, in any dtype."
        )
    return x.long()
