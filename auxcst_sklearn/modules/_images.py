"""Networks on images: conversion of the caller's images, and the convolutional network."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from math import prod
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._layers import ACTIVATIONS, CostHead, SeededDropout
from ._network import LayeredNetwork


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
    >>> from auxcst_sklearn.modules._images import ImageInput
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
    """Convolution blocks, then dense layers, with auxiliary cost heads.

    A block is a convolution that keeps the size of its maps, batch normalisation, the activation
    and max pooling. The input of the first dense layer is all values of the last maps.

    Parameters
    ----------
    images : ImageInput
        First layer; its `out_shape` is the shape (C, H, W) of the images.
    n_classes : int
        Number of costs that each head estimates.
    channels : sequence of int
        Channels of each convolution block, "conv1" ...
    kernel_size : sequence of int, of the same length
        Height and width of each block's kernels.
    pool : sequence of int, of the same length
        Height and width of each block's pooling; 1 for none. A map with fewer pixels in one
        direction is pooled to a single pixel in this direction.
    width : sequence of int
        Neurons of each dense layer, "dense1" ...; may be empty.
    head_layers : collection of int
        Indices of the hidden layers that get a head, counted from 0, blocks first.
    head_input : {"pool", "flatten"}, default="pool"
        Input of the head of a block: the mean of each map, or every value.
    batch_norm : bool, default=True
        Whether blocks have batch normalisation.
    activation : str, default="relu"
        A key of `ACTIVATIONS`.
    dropout : float, default=0.0
        Probability of dropping a neuron of a dense layer.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules._images import AuxCNN
    >>> from auxcst_sklearn.modules._images import ImageInput
    >>> network = AuxCNN(ImageInput((3, 8, 8)), 5, channels=[4, 6], kernel_size=[3, 3],
    ...                  pool=[2, 2], width=[16], head_layers=[0, 1])
    >>> network.layers
    ('conv1', 'conv2', 'output')
    >>> [tuple(r.shape) for r in network.forward_heads(torch.zeros(7, 3, 8, 8))]
    [(7, 5), (7, 5), (7, 5)]
    """

    def __init__(
        self,
        images: ImageInput,
        n_classes: int,
        *,
        channels: Sequence[int],
        kernel_size: Sequence[int],
        pool: Sequence[int],
        width: Sequence[int],
        head_layers: Collection[int],
        head_input: Literal["pool", "flatten"] = "pool",
        batch_norm: bool = True,
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.inputs = images
        self.hidden = nn.ModuleDict()
        shapes = [images.out_shape]
        for i, (n_maps, kernel, window) in enumerate(zip(channels, kernel_size, pool), start=1):
            block, shape = _convolution_block(
                shapes[-1], n_maps, kernel, window, ACTIVATIONS[activation], batch_norm
            )
            self.hidden[f"conv{i}"] = block
            shapes.append(shape)
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


def _convolution_block(
    shape: tuple[int, ...],
    n_maps: int,
    kernel_size: int,
    window: int,
    activation: type[nn.Module],
    batch_norm: bool,
) -> tuple[nn.Sequential, tuple[int, ...]]:
    """Build a block for inputs of one shape; return it and the shape of its output."""
    n_inputs, *size = shape
    windows = tuple(min(window, pixels) for pixels in size)
    convolution = nn.Conv2d(n_inputs, n_maps, kernel_size, padding="same", bias=not batch_norm)
    layer: list[nn.Module] = [convolution]
    if batch_norm:
        layer.append(BatchNorm(n_maps))
    layer.append(activation())
    if max(windows) > 1:
        layer.append(nn.MaxPool2d(windows))
    out_size = (pixels // w for pixels, w in zip(size, windows))
    return nn.Sequential(*layer), (n_maps, *out_size)
