"""Independent early stopping of every model of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor


class EarlyStopping(Callback):
    """Keep the weights of each network at its least held-out value.

    A model of `sizes[i]` networks stops when the value of none of them has decreased for
    `patience` epochs. skorch's callback of the same name does this for one network. This is the
    first callback, so that it includes an epoch after which one of the user's ends the training.
    """

    best_: list[list[Tensor]] = []  # of each network; empty until the training begins

    def __init__(self, patience: int, sizes: Sequence[int] = (1,)) -> None:
        self.patience = patience
        self.sizes = sizes

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.best_ = [[weight.clone() for weight in of_one] for of_one in net.weights()]
        self.value_ = np.full(net.n_networks, np.inf)
        self.misses_ = np.zeros(net.n_networks, dtype=int)

    @property
    def running(self) -> np.ndarray:
        """Mask of the models that may still find better weights."""
        starts = np.r_[0, np.cumsum(self.sizes)[:-1]]
        return np.minimum.reduceat(self.misses_, starts) < self.patience

    @torch.no_grad()
    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        value = net.stop_values
        better = np.repeat(self.running, self.sizes) & (value < self.value_)
        self.value_[better] = value[better]
        self.misses_ = np.where(better, 0, self.misses_ + 1)
        for i, weights in enumerate(net.weights()):
            if better[i]:
                _copy(weights, self.best_[i])

    @torch.no_grad()
    def restore(self, net: NeuralNet) -> None:
        """Restore the weights of every network at its best epoch, if one was evaluated."""
        for i, (best, weights) in enumerate(zip(self.best_, net.weights())):
            if np.isfinite(self.value_[i]):
                _copy(best, weights)


class EndWhenStopped(Callback):
    """End the training when all models have stopped, after the user's callbacks."""

    def __init__(self, stop: EarlyStopping) -> None:
        self.stop = stop

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if not self.stop.running.any():
            if net.verbose:
                print(f"Stopped: no better weights were found for {self.stop.patience} epochs.")
            raise KeyboardInterrupt  # skorch's way to end a training


def _copy(source: Sequence[Tensor], to: Sequence[Tensor]) -> None:
    for value, tensor in zip(source, to):
        tensor.copy_(value)
