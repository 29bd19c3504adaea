"""Any torch module as a network with cost heads: find its hidden layers, and read them."""

from ._tracing import find_hidden_layers
from ._wrapped import WrappedNetwork

__all__ = ["WrappedNetwork", "find_hidden_layers"]
