"""The first layer of a network on images, and random flips and shifts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from ._layers import SeededModule

# Float32 has all integers up to this one.
MOST_EXACT = 2**24


class ImageLayer(nn.Module):
    """First layer of a network on images: shape, channel order, range, augmentation.

    It converts one mini-batch at a time, on the device, so the data themselves do not change: flat
    rows, channels last, pixels as uint8. In training, `augmentation` maps float images
    (n_samples, C, H, W) to others of this shape.

    uint8 images, that is samples of several dimensions, are scaled; uint8 rows are treated as
    numbers. If `integers` is set, as `WrappedNetwork` does for a module that accepts no floats,
    nothing is scaled and the output is int64.
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
            if x.is_floating_point() and ((x != x.trunc()) | (x.abs() > MOST_EXACT)).any():
                other = x[(x != x.trunc()) | (x.abs() > MOST_EXACT)][0].item()
                raise ValueError(
                    f"X holds {other:.10g}, but the module takes integers alone, as an "
                    "nn.Embedding does; expected whole numbers, in any dtype up to "
                    f"{MOST_EXACT}, and beyond, where float32 merges some, in one of integers."
                )
            x = x.long()  # Scikit-learn's tools may hold indices as floats.
        elif not x.is_floating_point():
            is_image = x.dtype == torch.uint8 and len(self.shape) > 1
            x = x.float() / 255 if is_image else x.float()
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


class RandomFlipShift(SeededModule):
    """Mirror and shift every image at random.

    Parameters
    ----------
    flip : bool, default=True
        Whether to mirror each image horizontally with probability 1/2.
    max_shift : int, default=None
        Maximum shift of each image in pixels, in both directions. The gap is filled with the
        reflection of the image. If None, it is an eighth of the smaller side.

    Raises
    ------
    ValueError
        If `max_shift` is negative, or no integer.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import RandomFlipShift
    >>> shift = RandomFlipShift(flip=False, max_shift=1)
    >>> shift.generator = torch.Generator().manual_seed(0)
    >>> shift(torch.arange(9.0).view(1, 1, 3, 3))
    tensor([[[[4., 3., 4.],
              [7., 6., 7.],
              [4., 3., 4.]]]])
    """

    def __init__(self, *, flip: bool = True, max_shift: int | None = None) -> None:
        super().__init__()
        is_number = isinstance(max_shift, int | np.integer)
        if max_shift is not None and not (is_number and max_shift >= 0):
            raise ValueError(f"max_shift is {max_shift!r}; expected a number of pixels, 0 or more.")
        self.flip = flip
        self.max_shift = max_shift

    def forward(self, x: Tensor) -> Tensor:
        """Transformed images (n_samples, n_channels, height, width)."""
        if x.dim() != 4:
            raise ValueError(
                f"augmentation mirrors or shifts images (n_samples, C, H, W), but a batch of X has "
                f"the shape {tuple(x.shape)}; expected images. For series and numbers, leave it "
                "out, or pass a function of a batch."
            )
        n, n_channels, *size = x.shape
        height, width = size
        shift = min(size) // 8 if self.max_shift is None else self.max_shift
        if shift >= min(size):
            raise ValueError(
                f"max_shift={shift} can move images of {height} x {width} pixels out of "
                "sight; use a smaller one, RandomFlipShift(max_shift=1), say."
            )
        rows, columns = (torch.arange(pixels, device=x.device).expand(n, -1) for pixels in size)
        if self.flip:
            columns = torch.where(self._draw(x, 2) == 1, columns.flip(1), columns)
        if shift > 0:
            rows = _reflected(rows + self._draw(x, 2 * shift + 1) - shift, height - 1)
            columns = _reflected(columns + self._draw(x, 2 * shift + 1) - shift, width - 1)
        row = torch.arange(n, device=x.device)[:, None] * height + rows
        index = row.unsqueeze(2) * width + columns.unsqueeze(1)
        # Copying whole pixels takes a fifth of the time of indexing four dimensions.
        pixels = x.movedim(1, -1).reshape(-1, n_channels).index_select(0, index.flatten())
        return pixels.view(n, height, width, n_channels).movedim(-1, 1)

    def _draw(self, x: Tensor, high: int) -> Tensor:
        """Draw an integer below `high` for each image."""
        return torch.randint(high, (len(x), 1), generator=self.generator, device=x.device)

    def extra_repr(self) -> str:
        """Show the parameters."""
        return f"flip={self.flip}, max_shift={self.max_shift}"


def _reflected(index: Tensor, last: int) -> Tensor:
    """Indices from 0 to `last`; those beyond are reflected."""
    return last - (last - index.abs()).abs()


TRANSFORMS: dict[str, RandomFlipShift] = {
    "flip": RandomFlipShift(max_shift=0),
    "shift": RandomFlipShift(flip=False),
    "flip_shift": RandomFlipShift(),
}
