"""Any torch module as a network with cost heads: find and record its hidden layers."""

from ._tracing import find_hidden_layers
from ._wrapped import WrappedNetwork, is_trained

__all__ = ["WrappedNetwork", "find_hidden_layers", "is_trained"]
