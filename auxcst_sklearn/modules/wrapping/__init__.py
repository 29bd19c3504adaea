"""Any torch module as a network with cost heads: find and record its hidden layers."""

from ._tracing import find_hidden_layers
from ._wrapped import PREFIX, WrappedNetwork, is_trained, make_body

__all__ = ["PREFIX", "WrappedNetwork", "find_hidden_layers", "is_trained", "make_body"]
