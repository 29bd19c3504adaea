"""Networks on images: their first layer, random flips and shifts, and a residual network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._layers import SEEDING, SeededModule

# Float32 has all integers up to this one.
MOST_EXACT = 2**24

# Maps with fewer pixels along a side are not pooled along it.
SMALLEST_POOLED = 6

# Kernels of 3 x 3 pixels see too little of an image with such a side, so that it is halved first.
LARGE = 48


class ImageLayer(SeededModule):
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

    @property
    def scales(self) -> bool:
        """Whether uint8 are pixels, which are divided by 255."""
        return len(self.shape) > 1 and not self.integers

    def forward(self, x: Tensor) -> Tensor:
        """Numbers of shape ``(n_samples, *out_shape)``; uint8 images are scaled to 0 ... 1."""
        x = x.reshape(-1, *self.shape)  # not len(x), which would become a constant in an export
        if self.channels_last:
            x = x.movedim(-1, 1)
        if self.integers:
            if x.is_floating_point() and ((x != x.trunc()) | (x.abs() > MOST_EXACT)).any():
                other = x[(x != x.trunc()) | (x.abs() > MOST_EXACT)][0].item()
                raise ValueError(
                    f"X contains {other:.10g}, but the module takes integers alone, as an "
                    "nn.Embedding does; expected whole numbers, in any dtype up to "
                    f"{MOST_EXACT}, and beyond, where float32 merges some, in one of integers."
                )
            x = x.long()  # Scikit-learn's tools may hold indices as floats.
        elif not x.is_floating_point():
            x = x.float() / 255 if x.dtype == torch.uint8 and self.scales else x.float()
        if self.augmentation is None or not self.training:
            return x
        with self.seeded(x.device):
            augmented = self.augmentation(x)
        if augmented.shape != x.shape:
            raise ValueError(
                f"augmentation turned a batch of shape {tuple(x.shape)} into one of shape "
                f"{tuple(augmented.shape)}; expected the same shape."
            )
        return augmented

    @contextmanager
    def seeded(self, device: torch.device) -> Iterator[None]:
        """Seed torch's own generators for a callable of the user, and restore them."""
        if self.generator is None or isinstance(self.augmentation, SeededModule):
            yield
            return
        gpus = [device] if device.type == "cuda" else []
        with SEEDING, torch.random.fork_rng(devices=gpus):
            drawn = torch.randint(2**62, (), generator=self.generator, device=self.generator.device)
            for generator in (torch.default_generator, *map(_own_generator, gpus)):
                generator.manual_seed(int(drawn))
            yield

    def extra_repr(self) -> str:
        """Show the shape and order of the input."""
        return f"{self.shape}, channels_last={self.channels_last}"


def _own_generator(gpu: torch.device) -> torch.Generator:
    """The generator from which functions draw on a GPU."""
    index = torch.cuda.current_device() if gpu.index is None else gpu.index
    return torch.cuda.default_generators[index]


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
            rows = _reflect(rows + self._draw(x, 2 * shift + 1) - shift, height - 1)
            columns = _reflect(columns + self._draw(x, 2 * shift + 1) - shift, width - 1)
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


def _reflect(index: Tensor, last: int) -> Tensor:
    """Indices from 0 to `last`; those beyond are reflected."""
    return last - (last - index.abs()).abs()


TRANSFORMS: dict[str, RandomFlipShift] = {
    "flip": RandomFlipShift(max_shift=0),
    "shift": RandomFlipShift(flip=False),
    "flip_shift": RandomFlipShift(),
}


# ----------------------------------------------------------------------- residual network


class BatchNorm(nn.BatchNorm2d):
    """Batch normalisation that accepts a batch of one value.

    A single image whose maps have one pixel has no variance. It is therefore normalised with the
    running statistics, and does not update them.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Normalise each channel."""
        if self.training and x.numel() == x.shape[1]:
            return F.batch_norm(
                x, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(x)


class ResidualBlock(nn.Module):
    """Two convolutions. Their result is added to the input."""

    def __init__(self, n_channels: int) -> None:
        super().__init__()
        layers = (convolution(n_channels, n_channels) for _ in range(2))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum of the input and the change."""
        change: Tensor = self.layers(x)
        return x + change


class ResidualCNN(nn.Module):
    """Residual network on images: stages of a convolution, max pooling and residual blocks.

    Normalised pixels first pass a convolution with half of the maps of the first stage. Images with
    a side of 48 pixels or more are halved there by max pooling, with one such convolution for each
    halving, until they are smaller. Each stage begins with a convolution and max pooling. Pooling
    halves sides of 6 pixels or more. Each residual block adds the result of two convolutions to its
    input. Kernels have 3 x 3 pixels. Batch normalisation and a ReLU follow each convolution and its
    pooling. A linear layer reads the maximum of each map of the last block.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of an image, (n_channels, height, width).
    n_outputs : int, default=1
        Number of outputs. The estimators replace this layer.
    channels : sequence of int, default=(32, 64, 128)
        Number of maps in each stage.
    depth : int, default=1
        Number of residual blocks in each stage.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import ResidualCNN
    >>> network = ResidualCNN((3, 32, 32), 10, channels=(8, 16), depth=2)
    >>> network(torch.zeros(5, 3, 32, 32)).shape
    torch.Size([5, 10])
    >>> network.hidden_layers
    ('stage1.block1', 'stage1.block2', 'stage2.block1', 'stage2.block2')
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_outputs: int = 1,
        *,
        channels: Sequence[int] = (32, 64, 128),
        depth: int = 1,
    ) -> None:
        super().__init__()
        n_channels, *size = input_shape
        self.normalize = BatchNorm(n_channels, affine=False)
        windows: list[Sequence[int]] = []
        while max(size) >= LARGE:
            window, size = halve(size)
            windows.append(window)
        n_first, self.first = max(1, channels[0] // 2), nn.Sequential()
        for first in windows or [(1, 1)]:  # pooling here would lose details of small images
            self.first.append(convolution(n_channels, n_first, first))
            n_channels = n_first
        self.n_stages, self.depth = len(channels), depth
        for i, n_maps in enumerate(channels, start=1):
            stage = nn.Sequential()
            window, size = halve(size)
            stage.add_module("convolution", convolution(n_channels, n_maps, window))
            for j in range(1, depth + 1):
                stage.add_module(f"block{j}", ResidualBlock(n_maps))
            self.add_module(f"stage{i}", stage)
            n_channels = n_maps
        self.output = nn.Linear(n_channels, n_outputs)

    @property
    def hidden_layers(self) -> tuple[str, ...]:
        """Names of the residual blocks."""
        stages, blocks = range(1, self.n_stages + 1), range(1, self.depth + 1)
        return tuple(f"stage{i}.block{j}" for i in stages for j in blocks)

    def forward(self, x: Tensor) -> Tensor:
        """Map images (n_samples, n_channels, height, width) to (n_samples, n_outputs)."""
        # This is the memory order of the convolutions. Rounding depends on it.
        x = self.first(self.normalize(x.contiguous(memory_format=torch.channels_last)))
        for i in range(1, self.n_stages + 1):
            x = self.get_submodule(f"stage{i}")(x)
        outputs: Tensor = self.output(x.amax((2, 3)) / 4)
        return outputs


def halve(size: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the window of a pooling that halves sides with enough pixels, and the new sides."""
    window = [1 + (pixels >= SMALLEST_POOLED) for pixels in size]
    return window, [pixels // pooled for pixels, pooled in zip(size, window)]


def convolution(n_inputs: int, n_maps: int, window: Sequence[int] = (1, 1)) -> nn.Sequential:
    """A convolution that keeps the size of its maps, max pooling, normalisation and a ReLU."""
    layers: list[nn.Module] = [nn.Conv2d(n_inputs, n_maps, 3, padding=1, bias=False)]
    if max(window) > 1:
        # Normalisation and ReLU are faster after pooling, because fewer values are left.
        layers.append(nn.MaxPool2d(tuple(window)))
    return nn.Sequential(*layers, BatchNorm(n_maps), nn.ReLU())
