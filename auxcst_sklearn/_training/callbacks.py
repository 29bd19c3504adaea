"""skorch callbacks: progress, early stopping, and what concerns the user's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from statistics import mean
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, LRScheduler
from torch import Tensor

from ..losses import Target
from .log import report

# On a plateau the rate is multiplied by this, so many times before the training ends.
LOWER, N_LOWERED = 0.25, 2
# A smaller improvement, relative to the value, is none: the fourth digit improves for ever.
LEAST = 2e-3


class ProgressTable(Callback):
    """A line per epoch: losses, held-out cost, and the time left without early stopping."""

    SHOWN = ("train_loss", "valid_loss", "valid_cost", "valid_refinement")

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.durations_: list[float] = []

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        record = net.history[-1]
        names = [name for name in self.SHOWN if name in record]
        if not self.durations_:
            header = "".join(f"{name:>18}" for name in names)
            report(f"epoch{header}{'time left':>12}", net.verbose)
        self.durations_.append(record["dur"])
        seconds = (self.epochs - len(self.durations_)) * mean(self.durations_)
        values = "".join(f"{record[name]:18.5g}" for name in names)
        left = timedelta(seconds=round(seconds))
        report(f"{record['epoch']:5d}{values}{left!s:>12}", net.verbose)


class EarlyStopping(Callback):
    """Keep the weights of each network at its least held-out value.

    A model of `sizes[i]` networks stops when the value of none of them has decreased for
    `patience` epochs. skorch's callback of the same name does this for one network. This is the
    first callback, so that it includes an epoch after which one of the user's ends the training.
    """

    best_: list[list[Tensor]] = []  # of each network; empty until the training begins
    counts: tuple[str, ...] = ("value_", "misses_")  # what a checkpoint holds beside the weights

    def __init__(self, patience: int, sizes: Sequence[int] = (1,)) -> None:
        self.patience = patience
        self.sizes = sizes

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.best_ = [[weight.clone() for weight in of_one] for of_one in net.weights()]
        self.value_ = np.full(net.n_networks, np.inf)
        self.misses_ = np.zeros(net.n_networks, dtype=int)

    @property
    def starts(self) -> np.ndarray:
        """The first network of each model."""
        starts: np.ndarray = np.r_[0, np.cumsum(self.sizes)[:-1]]
        return starts

    @property
    def running(self) -> np.ndarray:
        """Mask of the models that may still find better weights."""
        mask: np.ndarray = np.minimum.reduceat(self.misses_, self.starts) < self.patience
        return mask

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


class Plateaus(EarlyStopping):
    """Lower the rate of a model on each plateau, and stop it on the last one.

    On a plateau the mean held-out value of the networks has not decreased by `LEAST` of itself for
    `patience` epochs. torch's `ReduceLROnPlateau` does this for one network, without an end.
    """

    counts = (*EarlyStopping.counts, "least_", "waited_", "lowered_")

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        super().on_train_begin(net, **kwargs)
        self.least_ = np.full(len(self.sizes), np.inf)
        self.waited_, self.lowered_ = np.zeros((2, len(self.sizes)), dtype=int)

    @property
    def running(self) -> np.ndarray:
        """Mask of the models that have not reached their last plateau."""
        mask: np.ndarray = self.lowered_ <= N_LOWERED
        return mask

    def set_rates(self, net: Any) -> None:
        """Set the rates of the next epoch."""
        rates = LOWER ** np.minimum(self.lowered_, N_LOWERED).astype(float)
        net.set_rates(np.repeat(rates, self.sizes))

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        super().on_epoch_end(net, **kwargs)
        mean = np.add.reduceat(net.stop_values, self.starts) / np.asarray(self.sizes)
        margin = LEAST * np.abs(np.where(np.isfinite(self.least_), self.least_, 0))
        better = mean < self.least_ - margin
        self.least_[better] = mean[better]
        self.waited_ = np.where(better, 0, self.waited_ + 1)
        on_plateau = self.waited_ >= self.patience
        self.lowered_ = self.lowered_ + on_plateau
        self.waited_[on_plateau] = 0
        self.set_rates(net)


class EndWhenStopped(Callback):
    """End the training when all models have stopped, after the user's callbacks."""

    def __init__(self, stop: EarlyStopping) -> None:
        self.stop = stop

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if not self.stop.running.any():
            patience = self.stop.patience
            report(f"Stopped: no better weights were found for {patience} epochs.", net.verbose)
            raise KeyboardInterrupt  # skorch's way to end a training


def _copy(source: Sequence[Tensor], to: Sequence[Tensor]) -> None:
    for value, tensor in zip(source, to):
        tensor.copy_(value)


def without_training_state(callbacks: list[Any]) -> list[Any]:
    """Copies without the state of a training, such as the optimizer of a schedule."""
    copies = []
    for entry in callbacks:
        *name, callback = entry if isinstance(entry, tuple) else (entry,)
        if isinstance(callback, Callback):
            fresh = object.__new__(type(callback))
            fresh.__dict__ = {k: v for k, v in vars(callback).items() if not k.endswith("_")}
            callback = fresh
        copies.append((*name, callback) if name else callback)
    return copies


def as_skorch_batch(batch: tuple[Tensor, Target]) -> tuple[Tensor, Tensor]:
    """A batch as skorch's callbacks expect it: inputs and labels."""
    x, target = batch
    return x, target.label


def check_schedule(schedule: str, callbacks: list[tuple[str, Callback]]) -> None:
    """Raise an error for two schedules at once."""
    if schedule != "constant" and any(isinstance(c, LRScheduler) for _, c in callbacks):
        raise ValueError(
            f"callbacks hold a skorch LRScheduler, but schedule={schedule!r} sets the learning "
            "rate as well; expected one of them. Set schedule='constant' to use the callback."
        )
