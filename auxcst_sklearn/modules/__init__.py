"""What a user composes with torch modules: a residual network, random shifts, heads."""

from ._heads import CostHead
from ._images import RandomFlipShift, ResidualCNN
from ._layers import SeededModule
from ._mlp import CostSensitiveAutoencoder
from ._network import AuxNetwork
from .wrapping import find_hidden_layers

__all__ = [
    "AuxNetwork",
    "CostHead",
    "CostSensitiveAutoencoder",
    "RandomFlipShift",
    "ResidualCNN",
    "SeededModule",
    "find_hidden_layers",
]
__dir__ = __all__.copy  # without imported names
