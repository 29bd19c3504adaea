"""Torch modules: networks with K cost outputs and K auxiliary cost neurons per hidden layer."""

from ._alexnet import AlexNet
from ._cnn import AuxCNN
from ._dressed import DressedNetwork
from ._heads import CostHead
from ._images import ImageInput
from ._inputs import Standardize
from ._layers import ACTIVATIONS, SeededDropout, SeededModule
from ._mlp import AuxMLP
from ._network import AuxNetwork
from ._stacked import StackedMLP, stack, unstack
from ._tracing import find_hidden_layers
from ._twin import TwinNetwork

__all__ = [
    "ACTIVATIONS",
    "AlexNet",
    "AuxCNN",
    "AuxMLP",
    "AuxNetwork",
    "CostHead",
    "DressedNetwork",
    "ImageInput",
    "SeededDropout",
    "SeededModule",
    "Standardize",
    "StackedMLP",
    "TwinNetwork",
    "find_hidden_layers",
    "stack",
    "unstack",
]
