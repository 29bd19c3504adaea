"""Torch modules to wrap, and what their tests compare."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from tests.factories import dense, small_net


class Residual(nn.Module):
    """A convolution, a residual block, a dense layer, with all kinds of dropout between them."""

    def __init__(self, n_maps=4):
        super().__init__()
        self.stem = nn.Conv2d(1, n_maps, 3, padding=1)
        self.bn = nn.BatchNorm2d(n_maps)
        self.relu = nn.ReLU(inplace=True)
        self.conv = nn.Conv2d(n_maps, n_maps, 3, padding=1)
        self.drop = nn.Dropout2d(0.1)
        self.dense = nn.Linear(4 * n_maps, 8)
        self.fc = nn.Linear(8, 1000)

    def forward(self, x):
        x = self.relu(self.bn(self.stem(x)))
        x = self.relu(x + self.conv(x))
        x = F.adaptive_avg_pool2d(self.drop(x), 2).flatten(1)
        x = F.dropout(torch.tanh(self.dense(x)), 0.1, self.training)
        return self.fc(x)


def mlp(n_features=4, width=8):
    return dense(n_features, width, width, 3)


class LazyMLP(nn.Sequential):
    """A class, whose name in parameters of tests is the same in every process."""

    def __init__(self):
        layers = nn.LazyLinear(32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.LazyLinear(2)
        super().__init__(*layers)


def mlp_for(input_shape, width=8):
    return mlp(*input_shape, width)


def net(module=Residual, **parameters):
    return small_net(module, **parameters)


def body(estimator):
    """Parameters and statistics of the wrapped module."""
    (network,) = estimator.net_.module_.networks
    return {name: value.numpy() for name, value in network.body.state_dict().items()}


def weights(estimator):
    return np.concatenate([p.detach().ravel() for p in estimator.net_.module_.parameters()])
