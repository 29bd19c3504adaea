"""Random flips and shifts of training images, with a generator of their own."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ._layers import SeededModule


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
