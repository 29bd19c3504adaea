"""What a user composes with torch modules: random shifts, heads, and the layers of a module."""

from ._images import RandomFlipShift
from ._layers import CostHead, SeededModule
from ._mlp import CostSensitiveAutoencoder
from ._network import AuxNetwork
from .wrapping import find_hidden_layers

__all__ = [
    "AuxNetwork",
    "CostHead",
    "CostSensitiveAutoencoder",
    "RandomFlipShift",
    "SeededModule",
    "find_hidden_layers",
]
__dir__ = __all__.copy  # without imported names
