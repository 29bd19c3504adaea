"""Any torch module as a network with cost heads: find and record its hidden layers."""

from ._architecture import example_of
from ._body import PREFIX, is_trained, make_body
from ._hidden_layers import find_hidden_layers
from ._tracing import Trace
from ._wrapped import MirroredNetwork, WrappedNetwork

__all__ = [
    "PREFIX",
    "MirroredNetwork",
    "Trace",
    "WrappedNetwork",
    "example_of",
    "find_hidden_layers",
    "is_trained",
    "make_body",
]
