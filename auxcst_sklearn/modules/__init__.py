"""Torch modules: networks with K cost outputs and K auxiliary cost neurons per hidden layer."""

from ._cnn import AuxCNN
from ._heads import CostHead
from ._images import ImageInput
from ._layers import ACTIVATIONS, SeededDropout
from ._mlp import AuxMLP
from ._network import AuxNetwork

__all__ = [
    "ACTIVATIONS",
    "AuxCNN",
    "AuxMLP",
    "AuxNetwork",
    "CostHead",
    "ImageInput",
    "SeededDropout",
]
