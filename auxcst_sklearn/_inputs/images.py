"""X as images, or as arrays of any number of dimensions."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from math import isqrt, prod
from typing import Any

import numpy as np
from torch import Tensor

from .._checks.calls import warn
from .._checks.lazy_rows import PLAIN_ROWS, check_resolution, convert_rows, exceeds_float32
from ..modules._images import TRANSFORMS, ImageLayer
from .arrays import Preprocessor, bounds_of_features

# A larger share of values beyond FACTOR times the largest one of the training indicates pixels in
# another range. A few may be so large after a MinMaxScaler, where training pixels hardly differ.
SHARE, FACTOR = 0.05, 10


class ImagePreprocessor(Preprocessor):
    """X of any number of dimensions, as floats, or as uint8 or int64 that stays so in memory.

    With `convolved` a sample is an image whatever its number of dimensions. `shape` is the shape
    of a sample in the caller's order, after flattened rows are reshaped to `image_shape`.
    """

    dtypes = (np.float32, np.uint8)
    allow_nd = True
    largest = np.inf  # absolute value of the training images, if they were floats

    def __init__(
        self,
        image_shape: Any,
        channels_last: bool,
        augmentation: str | Callable[..., Any] | None,
        *,
        convolved: bool = False,
    ) -> None:
        self.image_shape, self.channels_last = image_shape, channels_last
        self.augmentation, self.convolved = augmentation, convolved

    def validate(self, estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
        # Scikit-learn compares only one dimension. A list has no shape before.
        shape = getattr(X, "shape", ())[1:]
        if not reset and shape and max(len(shape), len(self.fitted_shape)) > 1:
            Preprocessor.check(self, X)
        return super().validate(estimator, X, *y, reset=reset)

    def _convert(self, rows: Any, reset: bool) -> Any:
        if reset:
            self.shape = resolve_image_shape(rows.shape[1:], self.image_shape)
        if exceeds_float32(rows):  # they stay integers, for modules that take integers
            if reset:
                check_resolution(rows)
            rows = convert_rows(rows, partial(np.asarray, dtype=np.int64), np.int64)
        else:
            rows = super()._convert(rows, reset)
        if reset:
            self.dtype = _dtype_of(rows)
        if not reset and self.largest < np.inf:
            share = (abs(rows[:PLAIN_ROWS]) > FACTOR * self.largest).mean()
            if share > SHARE:
                warn(
                    f"{share:.0%} of the values of X are beyond {FACTOR * self.largest:.3g}, but "
                    f"{self.name} was fitted on values from {-self.largest:.3g} to "
                    f"{self.largest:.3g}. If both are pixels, divide X by what the training images "
                    "were divided by, such as 255."
                )
        return rows

    def check(self, X: Any) -> None:
        super().check(X)
        dtype = _dtype_of(X)
        if isinstance(X, Tensor) and X.is_floating_point() and self.dtype == "uint8":
            return  # Gradients need floats, here from 0 to 255.
        if dtype != self.dtype:
            raise ValueError(
                f"X is {dtype}, but {self.name} was fitted on {self.dtype}. It scales uint8 "
                "from 0 ... 255 to 0 ... 1 and takes floats as they are, so convert X to the dtype "
                f"and range of the training images, {self.dtype}."
            )

    def learn(self, X: Any, *, stream: bool, scaling: str = "none", n_bins: int = 0) -> None:
        """Learn the range of floats; warn of rows that were meant as images of another shape."""
        self.largest = _largest(X) if len(self.shape) > 1 and self.dtype == "float32" else np.inf
        if (
            self.dtype == "uint8"
            and len(self.shape) > 1
            and X[:PLAIN_ROWS].max() <= 1 >= _largest(X)
        ):
            warn(
                "X is uint8, and no value is above 1. It is divided by 255, as pixels are. If it "
                "contains indicators or masks, pass X.astype(numpy.float32), which is not divided."
            )
        remedy = likely_remedy(self.shape, self.channels_last)
        if not self.convolved or self.image_shape is not None or remedy is None:
            return
        shape = as_image(self.shape, self.channels_last)
        height, width, channels = shape if self.channels_last else (*shape[1:], shape[0])
        warn(
            f"X contains samples of shape {self.shape}, taken for images of {channels} "
            f"channel{'s' * (channels > 1)} of {height} x {width} pixels. If this is wrong, "
            f"pass {remedy}; if not, image_shape={shape} silences this warning."
        )

    def update(self, X: Any) -> None:
        self.largest = max(self.largest, _largest(X))

    def make_module(self) -> ImageLayer:
        shape = as_image(self.shape, self.channels_last) if self.convolved else self.shape
        augmentation: Any = self.augmentation
        if isinstance(augmentation, str):
            augmentation = TRANSFORMS[augmentation]
        augmentation = deepcopy(augmentation)  # Its generator is changed.
        return ImageLayer(shape, channels_last=self.channels_last, augmentation=augmentation)

    def attributes(self) -> dict[str, Any]:
        return {"image_shape_": self.make_module().out_shape} if self.convolved else {}

    @property
    def size_of_sample(self) -> tuple[str, int]:
        return "values", prod(self.shape)


def _dtype_of(X: Any) -> str:
    """Type of the pixels of an array or tensor: uint8, or floats."""
    return "uint8" if str(X.dtype).endswith("uint8") else "float32"


def _largest(X: Any) -> float:
    """Largest absolute value."""
    return float(np.abs(bounds_of_features(X)).max())


def resolve_image_shape(shape: tuple[int, ...], image_shape: Any) -> tuple[int, ...]:
    """Shape of a sample: its own, or `image_shape` for a flattened row."""
    if 0 in shape:
        raise ValueError(f"X contains samples of shape {shape}; expected at least one value each.")
    if image_shape is None:
        return shape
    expected = tuple(np.asarray(image_shape).tolist())
    if not expected or not all(isinstance(size, int) and size > 0 for size in expected):
        raise ValueError(
            f"image_shape={image_shape!r} must be positive integers, such as (3, 32, 32) for three "
            "channels of 32 x 32 pixels."
        )
    if shape not in (expected, (prod(expected),)):
        raise ValueError(
            f"X contains samples of shape {shape}; image_shape={image_shape!r} expects "
            f"{expected}, or flattened rows of {prod(expected)} values."
        )
    return expected


def as_image(shape: tuple[int, ...], channels_last: bool) -> tuple[int, ...]:
    """Shape of an image, also if given without channels (H, W), or as a row (W,)."""
    if len(shape) > 3:
        raise ValueError(
            f"X contains samples of {len(shape)} dimensions, {shape}; expected images (C, H, W) or "
            "(H, W), or flattened rows."
        )
    if len(shape) == 3:
        return shape
    height, width = (1, *shape)[-2:]
    return (height, width, 1) if channels_last else (1, height, width)


def likely_remedy(shape: tuple[int, ...], channels_last: bool) -> str | None:
    """The parameter that is probably missing for examples of a shape; None if none is."""
    if len(shape) == 3 and not channels_last and shape[-1] in (1, 3, 4) and shape[0] > 4:
        return "channels_last=True"
    if len(shape) == 3 and channels_last and shape[0] in (1, 3, 4) and shape[-1] > 4:
        return "channels_last=False"
    if len(shape) == 1 and shape[0] >= 64:
        for channels in (1, 3):
            side = isqrt(shape[0] // channels)
            if channels * side**2 == shape[0]:
                size = (side, side, channels) if channels_last else (channels, side, side)
                return f"image_shape={size}"
    return None
