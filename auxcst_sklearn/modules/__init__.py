"""What a user composes with torch modules: random transforms, heads, and the layers of a module."""

from ._autoencoder import CostSensitiveAutoencoder
from ._heads import CostHead
from ._layers import SeededModule
from ._network import AuxNetwork
from ._transforms import ColorJitter, RandomFlipShift, RandomResizedCrop, RandomTransform
from .wrapping import find_hidden_layers

__all__ = [
    "AuxNetwork",
    "ColorJitter",
    "CostHead",
    "CostSensitiveAutoencoder",
    "RandomFlipShift",
    "RandomResizedCrop",
    "RandomTransform",
    "SeededModule",
    "find_hidden_layers",
]


def __dir__() -> list[str]:
    return __all__
