"""Early stopping of every network of a training by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor


class EarlyStopping(Callback):
    """Keep the weights of each network at its least held-out cost, and end when all have stopped.

    A network stops when its cost has not fallen for `patience` epochs. skorch's callback of that
    name does this for one network.
    """

    best_: list[Tensor] = []  # empty until the training begins

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.best_ = [weight.clone() for weight in net.weights()]
        self.cost_ = np.full(net.n_networks, np.inf)
        self.misses_ = np.zeros(net.n_networks, dtype=int)

    @property
    def running(self) -> np.ndarray:
        """Mask of the networks that may still find better weights."""
        return self.misses_ < self.patience

    @torch.no_grad()
    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        cost = net.held_out_costs()
        better = self.running & (cost < self.cost_)
        self.cost_[better] = cost[better]
        self.misses_ = np.where(better, 0, self.misses_ + 1)
        index = torch.from_numpy(np.flatnonzero(better))
        for best, weight in zip(self.best_, net.weights()):
            best[index] = weight[index]
        if not self.running.any():
            if net.verbose:
                print(f"Stopped: valid_cost has not fallen for {self.patience} epochs.")
            raise KeyboardInterrupt  # skorch's way to end a training

    @torch.no_grad()
    def restore(self, net: NeuralNet) -> None:
        """Restore the weights of every network at its best epoch."""
        for best, weight in zip(self.best_, net.weights()):
            weight.copy_(best)
