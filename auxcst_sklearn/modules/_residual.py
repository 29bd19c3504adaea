"""A residual network on images, and batch normalisation that accepts a single value."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

# Maps with fewer pixels along a side are not pooled along it.
SMALLEST_POOLED = 6

# Kernels of 3 x 3 pixels see too little of an image with such a side, so that it is halved first.
LARGE = 48


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
            window, size = halved(size)
            windows.append(window)
        n_first, self.first = max(1, channels[0] // 2), nn.Sequential()
        for first in windows or [(1, 1)]:  # pooling here would lose details of small images
            self.first.append(convolution(n_channels, n_first, first))
            n_channels = n_first
        self.n_stages, self.depth = len(channels), depth
        for i, n_maps in enumerate(channels, start=1):
            stage = nn.Sequential()
            window, size = halved(size)
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


def halved(size: Sequence[int]) -> tuple[list[int], list[int]]:
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
