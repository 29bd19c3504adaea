"""Image input of the estimators: which arrays are images, and which properties are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from sklearn.utils._param_validation import StrOptions

from ..modules import TRANSFORMS, AuxNetwork, ImageInput, get_transform
from .base import BaseCostSensitiveNet
from .parameters import AUX_CONSTRAINTS


class BaseImageEstimator(BaseCostSensitiveNet):
    """X of any number of dimensions, as floats or as uint8 that stays uint8 in memory.

    `fit` sets `_input_shape` to the shape of one example, in the caller's order of dimensions and
    with flattened rows reshaped to `image_shape`.
    """

    image_shape: Sequence[int] | None
    channels_last: bool
    augmentation: str | Callable[..., Any] | None

    _parameter_constraints: dict[str, Any] = {
        **AUX_CONSTRAINTS,
        "image_shape": ["array-like", None],
        "channels_last": ["boolean"],
        "augmentation": [StrOptions(set(TRANSFORMS)), callable, None],
    }

    def _array_params(self) -> dict[str, Any]:
        return {**super()._array_params(), "allow_nd": True, "dtype": [np.float32, np.uint8]}

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        if not reset:
            self._check_same_shape(X)
        validated = super()._validate(X, y, reset=reset)
        X = validated[0] if isinstance(validated, tuple) else validated
        if reset:
            self._input_shape = resolve_image_shape(X.shape[1:], self.image_shape)
            self._fitted_shape, self._fitted_dtype = X.shape[1:], X.dtype.name
        self._check_same_shape(X)  # again, because a list has a shape only now
        self._check_same_dtype(X.dtype)
        return validated

    def _check_same_shape(self, X: Any) -> None:
        """Raise an error for images of another shape; scikit-learn compares only one dimension."""
        shape = tuple(getattr(X, "shape", ()))[1:]
        images = len(shape) > 1 or (len(shape) == 1 and len(self._fitted_shape) > 1)
        if images and shape != self._fitted_shape:
            raise ValueError(
                f"X holds examples of shape {shape}, but {type(self).__name__} was fitted on "
                f"examples of shape {self._fitted_shape}; expected the same."
            )

    def _check_same_dtype(self, dtype: np.dtype) -> None:
        if dtype != self._fitted_dtype:
            raise ValueError(
                f"X is {dtype}, but {type(self).__name__} was fitted on {self._fitted_dtype}. It "
                "scales uint8 from 0 ... 255 to 0 ... 1 and takes floats as they are, so convert "
                f"X to the dtype and range of the training images, {self._fitted_dtype}."
            )

    def _net_arguments(self, module: AuxNetwork) -> dict[str, Any]:
        """Predict about a million values at a time; the feature maps of more need gigabytes."""
        rows = max(1, 2**20 // prod(self._input_shape))
        return {**super()._net_arguments(module), "iterator_valid__batch_size": rows}

    def _make_input(self, shape: tuple[int, ...]) -> ImageInput:
        """First layer of the module, for examples of this shape."""
        return ImageInput(
            shape,
            channels_last=self.channels_last,
            augmentation=get_transform(self.augmentation),
        )


def resolve_image_shape(shape: tuple[int, ...], image_shape: Any) -> tuple[int, ...]:
    """Shape of an example: its own, or `image_shape` for a flattened row."""
    if 0 in shape:
        raise ValueError(f"X holds examples of shape {shape}; expected at least one value in each.")
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
            f"X holds examples of shape {shape}; image_shape={image_shape!r} expects "
            f"{expected}, or flattened rows of {prod(expected)} values."
        )
    return expected
