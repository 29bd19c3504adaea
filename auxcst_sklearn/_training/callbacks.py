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
from .runtime import report
from .schedule import set_rate

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

    Training ends when the value of none of them has decreased for `patience` epochs. skorch's
    callback of the same name does this for one network. This is the first callback, so that it
    includes an epoch after which one of the user's ends the training.
    """

    best_: list[list[Tensor]] = []  # of each network; empty until the training begins
    counts: tuple[str, ...] = ("value_", "misses_")  # what a checkpoint holds beside the weights

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.best_ = [[weight.clone() for weight in of_one] for of_one in net.weights()]
        self.value_ = np.full(net.n_networks, np.inf)
        self.misses_ = np.zeros(net.n_networks, dtype=int)

    @property
    def running(self) -> bool:
        """Whether better weights may still be found."""
        return bool(self.misses_.min() < self.patience)

    @torch.no_grad()
    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        better = net.stop_values < self.value_
        self.value_[better] = net.stop_values[better]
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
    """Lower the rate on each plateau, and stop on the last one.

    On a plateau the mean held-out value of the networks has not decreased by `LEAST` of itself for
    `patience` epochs. torch's `ReduceLROnPlateau` does this without an end.
    """

    counts = (*EarlyStopping.counts, "least_", "waited_", "lowered_")

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        super().on_train_begin(net, **kwargs)
        self.least_, self.waited_, self.lowered_ = np.inf, 0, 0

    @property
    def running(self) -> bool:
        """Whether the last plateau has not been reached."""
        return self.lowered_ <= N_LOWERED

    def set_rate(self, net: NeuralNet) -> None:
        """Set the rate of the next epoch."""
        set_rate(net.optimizer_, LOWER ** min(self.lowered_, N_LOWERED))

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        super().on_epoch_end(net, **kwargs)
        mean = float(net.stop_values.mean())
        self.waited_ += 1
        if mean < self.least_ - LEAST * (abs(self.least_) if np.isfinite(self.least_) else 0):
            self.least_, self.waited_ = mean, 0
        if self.waited_ >= self.patience:
            self.lowered_, self.waited_ = self.lowered_ + 1, 0
        self.set_rate(net)


class EndWhenStopped(Callback):
    """End the training when it has stopped, after the user's callbacks."""

    def __init__(self, stop: EarlyStopping) -> None:
        self.stop = stop

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if not self.stop.running:
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
