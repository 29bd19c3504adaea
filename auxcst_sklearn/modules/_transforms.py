"""Random transforms of training images, with their own generator.

torch's global generator is not used, and the same seed gives the same images.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ._layers import SeededModule


class RandomTransform(SeededModule):
    """Base of transforms that draw random numbers.

    An estimator sets `generator`, on the device of the images, before it trains. Subclass it and
    draw from this generator, so that `random_state` determines the images.
    """

    def _uniform(self, x: Tensor, low: float, high: float) -> Tensor:
        """Draw a number between two limits for each image."""
        drawn = torch.rand(len(x), generator=self.generator, device=x.device, dtype=x.dtype)
        return low + (high - low) * drawn


class RandomFlipShift(RandomTransform):
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


class RandomResizedCrop(RandomTransform):
    """Cut a random part out of every image, and resize it to the size of the image.

    Parameters
    ----------
    scale : (float, float), default=(0.5, 1.0)
        Smallest and largest area of the part, as fractions of the area of the image.
    ratio : (float, float), default=(3 / 4, 4 / 3)
        Smallest and largest factor by which the aspect ratio of the part differs from that of the
        image.

    Raises
    ------
    ValueError
        If `scale` or `ratio` is not two positive numbers in order, or `scale` is above 1.

    Notes
    -----
    The names of the parameters are those of torchvision, whose transforms draw from torch's global
    generator.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from auxcst_sklearn.modules import RandomFlipShift, RandomResizedCrop
    >>> augmentation = nn.Sequential(RandomResizedCrop(scale=(0.3, 1)), RandomFlipShift())
    >>> augmentation(torch.ones(2, 3, 32, 32)).shape
    torch.Size([2, 3, 32, 32])
    """

    def __init__(
        self,
        scale: tuple[float, float] = (0.5, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
    ) -> None:
        super().__init__()
        if not _is_range(scale, 1):
            raise ValueError(f"scale={scale!r}; expected two fractions in order, (0.5, 1), say.")
        if not _is_range(ratio, math.inf):
            raise ValueError(f"ratio={ratio!r}; expected two factors in order, (3/4, 4/3), say.")
        self.scale = scale
        self.ratio = ratio

    def forward(self, x: Tensor) -> Tensor:
        """Transformed images (n_samples, n_channels, height, width)."""
        area = self._uniform(x, *self.scale)
        stretch = self._uniform(x, *(math.log(limit) for limit in self.ratio)).exp()
        width, height = (area * stretch).sqrt().clamp(max=1), (area / stretch).sqrt().clamp(max=1)
        left, top = ((1 - size) * self._uniform(x, -1, 1) for size in (width, height))
        theta = x.new_zeros(len(x), 2, 3)
        theta[:, 0, 0], theta[:, 0, 2], theta[:, 1, 1], theta[:, 1, 2] = width, left, height, top
        grid = F.affine_grid(theta, list(x.shape), align_corners=False)
        return F.grid_sample(x, grid, padding_mode="border", align_corners=False)

    def extra_repr(self) -> str:
        """Show the parameters."""
        return f"scale={self.scale}, ratio={self.ratio}"


class ColorJitter(RandomTransform):
    """Change brightness, contrast and saturation of every image at random.

    Parameters
    ----------
    brightness, contrast, saturation : float, default=0.2
        Each is multiplied by a random factor between 1 minus this number and 1 plus it. Images of
        one channel have no saturation.

    Raises
    ------
    ValueError
        If a parameter is no number from 0 to 1.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import ColorJitter
    >>> jitter = ColorJitter(brightness=0.5, contrast=0, saturation=0)
    >>> jitter.generator = torch.Generator().manual_seed(0)
    >>> jitter(torch.full((2, 3, 1, 1), 0.4))[:, 0, 0, 0]
    tensor([0.3985, 0.5073])
    """

    def __init__(
        self, brightness: float = 0.2, contrast: float = 0.2, saturation: float = 0.2
    ) -> None:
        super().__init__()
        for name, value in {
            "brightness": brightness,
            "contrast": contrast,
            "saturation": saturation,
        }.items():
            if not isinstance(value, int | float | np.number) or not 0 <= value <= 1:
                raise ValueError(f"{name}={value!r}; expected a number from 0 to 1.")
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation

    def forward(self, x: Tensor) -> Tensor:
        """Transformed images (n_samples, n_channels, height, width), in 0 ... 1."""
        brightness, contrast, saturation = (
            self._uniform(x, 1 - most, 1 + most).view(-1, 1, 1, 1)
            for most in (self.brightness, self.contrast, self.saturation)
        )
        x = x * brightness
        x = torch.lerp(x.mean((1, 2, 3), keepdim=True), x, contrast)
        return torch.lerp(x.mean(1, keepdim=True), x, saturation).clamp(0, 1)

    def extra_repr(self) -> str:
        """Show the parameters."""
        return (
            f"brightness={self.brightness}, contrast={self.contrast}, saturation={self.saturation}"
        )


def _is_range(value: Any, most: float) -> bool:
    """Whether a value is two positive, finite numbers in order, up to the largest allowed."""
    try:
        low, high = value
        return bool(0 < low <= high <= most and high < math.inf)
    except (TypeError, ValueError):  # no pair, or no numbers
        return False


TRANSFORMS: dict[str, RandomTransform] = {
    "flip": RandomFlipShift(max_shift=0),
    "shift": RandomFlipShift(flip=False),
    "flip_shift": RandomFlipShift(),
}


def get_transform(
    transform: str | Callable[[Tensor], Tensor] | None,
) -> Callable[[Tensor], Tensor] | None:
    """The transform of a name; a callable is copied, because its generator is set."""
    if not isinstance(transform, str):
        return deepcopy(transform)
    if transform not in TRANSFORMS:
        raise ValueError(
            f"No transform is called {transform!r}; expected one of "
            f"{', '.join(map(repr, TRANSFORMS))}, or a callable."
        )
    return deepcopy(TRANSFORMS[transform])
