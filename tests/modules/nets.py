"""Networks of the test's own, and with heads."""

from __future__ import annotations

from torch import nn

from auxcst_sklearn.modules import find_hidden_layers
from auxcst_sklearn.modules._images import ImageLayer
from auxcst_sklearn.modules.wrapping import WrappedNetwork


class Net(nn.Module):
    """A module of given parts, with a function as its forward."""

    def __init__(self, forward, **parts):
        super().__init__()
        self.function = forward
        for name, part in parts.items():
            self.add_module(name, part)

    def forward(self, x):
        return self.function(self, x)


def dense(*sizes, n_classes=3, **others):
    """Linear layers "a", "b" and so on, and "fc" for the classes; some of them `others`."""
    layers = [nn.Linear(*pair) for pair in zip(sizes, sizes[1:])]
    return {**dict(zip("abc", layers)), "fc": nn.Linear(sizes[-1], n_classes), **others}


def dress(module, shape, hidden_layers=None, n_classes=3, **kwargs):
    """The module with heads, by default on all its hidden layers but the last."""
    if hidden_layers is None:
        hidden_layers = find_hidden_layers(module, shape)[:-1]
    inputs = ImageLayer(shape)
    return WrappedNetwork(inputs, module, n_classes, hidden_layers=hidden_layers, **kwargs)
