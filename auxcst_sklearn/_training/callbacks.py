"""skorch callbacks: those of the training itself, and states of the user's."""

from __future__ import annotations

from datetime import timedelta
from statistics import mean
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, LRScheduler
from torch import Tensor

from ..losses import Target
from .log import report


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


class ProgressBar(Callback):
    """A bar of epochs with the time left, on a terminal."""

    bar_: Any = None

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        from tqdm.auto import tqdm

        self.bar_ = tqdm(total=self.epochs, unit="epoch", leave=False, disable=None)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.bar_.update()

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if self.bar_ is not None:  # None if a callback ended the training before it began
            self.bar_.close()


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
