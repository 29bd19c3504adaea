"""Torch modules: networks with K outputs and K auxiliary neurons per hidden layer."""

from ._autoencoder import CostSensitiveAutoencoder
from ._aux_cnn import AuxCNN
from ._aux_mlp import AuxMLP
from ._feature_input import Standardize, UnitRange
from ._heads import CostHead
from ._image_input import ImageInput
from ._layers import ACTIVATIONS, SeededDropout, SeededModule
from ._network import AuxNetwork, LayeredNetwork
from ._transforms import (
    TRANSFORMS,
    ColorJitter,
    RandomFlipShift,
    RandomResizedCrop,
    RandomTransform,
    get_transform,
)
from .wrapping import WrappedNetwork, find_hidden_layers

__all__ = [
    "ACTIVATIONS",
    "TRANSFORMS",
    "AuxCNN",
    "AuxMLP",
    "AuxNetwork",
    "ColorJitter",
    "CostHead",
    "CostSensitiveAutoencoder",
    "ImageInput",
    "LayeredNetwork",
    "RandomFlipShift",
    "RandomResizedCrop",
    "RandomTransform",
    "SeededDropout",
    "SeededModule",
    "Standardize",
    "UnitRange",
    "WrappedNetwork",
    "find_hidden_layers",
    "get_transform",
]


def __dir__() -> list[str]:
    return __all__
