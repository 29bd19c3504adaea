"""From examples as the caller holds them to what a network computes with."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn


class ImageInput(nn.Module):
    """First layer of a network on images: shape, channel order, range, augmentation.

    It works on a batch at a time, on the device, so the data themselves stay as they are: flat
    rows, channels last, pixels as bytes.

    Bytes of images, examples of several dimensions, are scaled; those of rows are numbers. Where
    `integers` is set, as `WrappedNetwork` does for a module that takes no floats, nothing is scaled
    and the output is int64.

    Parameters
    ----------
    shape : sequence of int
        Shape of an example, such as (C, H, W). Flattened rows are brought to it.
    channels_last : bool, default=False
        Whether the last of three dimensions, not the first, counts the channels.
    augmentation : callable, default=None
        Applied to the batches in training mode only: takes floats (n_samples, C, H, W) and returns
        as many of the same shape.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import ImageInput
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
        """Shape of an example behind this layer, channels first."""
        return (self.shape[-1], *self.shape[:-1]) if self.channels_last else self.shape

    def forward(self, x: Tensor) -> Tensor:
        """Numbers of shape ``(n_samples, *out_shape)``; bytes of images become 0 ... 1."""
        x = x.reshape(-1, *self.shape)  # not len(x), which an export would fix
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
        """Show what the input looks like."""
        return f"{self.shape}, channels_last={self.channels_last}"


def as_integers(x: Tensor) -> Tensor:
    """Indices, which scikit-learn's tools may hold as floats, as int64."""
    if x.is_floating_point() and not torch.equal(x, x.trunc()):
        raise ValueError(
            f"X holds {x[x != x.trunc()][0].item():g}, but the module takes integers alone, as an "
            "nn.Embedding does; expected whole numbers, in any dtype."
        )
    return x.long()
