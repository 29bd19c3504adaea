"""Networks on images: the conversion of images, random flips, and the convolutional network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._layers import ACTIVATIONS, CostHead, SeededDropout, SeededModule
from ._network import LayeredNetwork

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
    max_shift : int, default=4
        Maximum shift of each image in pixels, in both directions; zeros fill the gap.

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
    >>> shift(torch.ones(1, 1, 3, 3))
    tensor([[[[0., 1., 1.],
              [0., 1., 1.],
              [0., 0., 0.]]]])
    """

    def __init__(self, *, flip: bool = True, max_shift: int = 4) -> None:
        super().__init__()
        if not isinstance(max_shift, int | np.integer) or max_shift < 0:
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
        n, n_channels, height, width = x.shape
        if self.max_shift >= min(height, width):
            raise ValueError(
                f"max_shift={self.max_shift} can move images of {height} x {width} pixels out of "
                "sight; use a smaller one, RandomFlipShift(max_shift=1), say."
            )
        rows = torch.arange(height, device=x.device).expand(n, -1)
        columns = torch.arange(width, device=x.device).expand(n, -1)
        if self.flip:
            columns = torch.where(self._draw(x, 2) == 1, columns.flip(1), columns)
        if self.max_shift > 0:
            x = F.pad(x, [self.max_shift] * 4)
            rows = rows + self._draw(x, 2 * self.max_shift + 1)
            columns = columns + self._draw(x, 2 * self.max_shift + 1)
        image = torch.arange(n, device=x.device)[:, None, None, None]
        channel = torch.arange(n_channels, device=x.device)[:, None, None]
        return x[image, channel, rows[:, None, :, None], columns[:, None, None, :]]

    def _draw(self, x: Tensor, high: int) -> Tensor:
        """Draw an integer below `high` for each image."""
        return torch.randint(high, (len(x), 1), generator=self.generator, device=x.device)

    def extra_repr(self) -> str:
        """Show the parameters."""
        return f"flip={self.flip}, max_shift={self.max_shift}"


TRANSFORMS: dict[str, RandomFlipShift] = {
    "flip": RandomFlipShift(max_shift=0),
    "shift": RandomFlipShift(flip=False),
    "flip_shift": RandomFlipShift(),
}


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation that accepts a batch of one value.

    A single image whose maps have one pixel has no variance, so it is normalised by the running
    statistics, and does not update them.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each channel."""
        if self.training and x.numel() == x.shape[1]:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


class AuxCNN(LayeredNetwork):
    """Convolution blocks "conv1" ..., then dense layers "dense1" ..., with auxiliary cost heads.

    A block is a convolution that keeps the size of its maps, batch normalisation, the activation
    and max pooling, which reduces a direction with fewer pixels than `pool_size` to one pixel. The
    input of the first dense layer is all values of the last maps. `head_layers` counts from 0,
    blocks first.
    """

    def __init__(
        self,
        images: ImageLayer,
        n_classes: int,
        *,
        channels: Sequence[int],
        kernel_size: Sequence[int],
        pool_size: Sequence[int],
        width: Sequence[int],
        head_layers: Collection[int],
        head_input: Literal["mean", "flatten"] = "mean",
        batch_norm: bool = True,
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.inputs = images
        self.hidden = nn.ModuleDict()
        shapes = [images.out_shape]
        layer: list[nn.Module]
        blocks = zip(channels, kernel_size, pool_size)
        for i, (n_maps, kernel, window) in enumerate(blocks, start=1):
            n_inputs, *size = shapes[-1]
            windows = tuple(min(window, pixels) for pixels in size)
            layer = [nn.Conv2d(n_inputs, n_maps, kernel, padding="same", bias=not batch_norm)]
            if batch_norm:
                layer.append(BatchNorm(n_maps))
            layer.append(ACTIVATIONS[activation]())
            if max(windows) > 1:
                layer.append(nn.MaxPool2d(windows))
            self.hidden[f"conv{i}"] = nn.Sequential(*layer)
            shapes.append((n_maps, *(pixels // w for pixels, w in zip(size, windows))))
        for i, n_neurons in enumerate(width, start=1):
            layer = [nn.Flatten(), nn.Linear(prod(shapes[-1]), n_neurons)]
            layer.append(ACTIVATIONS[activation]())
            if dropout > 0:
                layer.append(SeededDropout(dropout))
            self.hidden[f"dense{i}"] = nn.Sequential(*layer)
            shapes.append((n_neurons,))
        # Heads are initialised last, so that the other weights are the same with and without heads.
        self.output = CostHead(shapes[-1], n_classes, "flatten")
        names = list(self.hidden)
        self.heads = nn.ModuleDict(
            {names[i]: CostHead(shapes[i + 1], n_classes, head_input) for i in sorted(head_layers)}
        )
        # Convolutions take half the time on a CPU. torch's stub of `to` lacks this argument.
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
