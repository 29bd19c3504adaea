"""skorch callbacks: those of a training itself, and what is kept of the user's."""

from __future__ import annotations

from contextlib import suppress
from copy import deepcopy
from pickle import PicklingError
from typing import Any

from skorch import NeuralNet
from skorch.callbacks import Callback, LRScheduler
from torch import Tensor

from ..losses import Target


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
        if self.bar_ is not None:  # None where a callback ended the training before it began
            self.bar_.close()


def without_training_state(callbacks: list) -> list:
    """Copies without what a training left in them, such as the optimizer of a schedule."""
    copies = []
    for entry in callbacks:
        *name, callback = entry if isinstance(entry, tuple) else (entry,)
        if isinstance(callback, Callback):
            fresh = object.__new__(type(callback))
            fresh.__dict__ = {k: v for k, v in vars(callback).items() if not k.endswith("_")}
            callback = fresh
        copies.append((*name, callback) if name else callback)
    return copies


def copies_of(callbacks: list) -> list:
    """Copies of the callbacks, without those that cannot be copied, such as loggers."""
    copies = []
    for callback in callbacks:
        with suppress(TypeError, PicklingError):
            copies.append(deepcopy(callback))
    return copies


def as_skorch_batch(batch: tuple[Tensor, Target]) -> tuple[Tensor, Tensor]:
    """A batch as skorch's callbacks expect it: inputs and labels."""
    x, target = batch
    return x, target.label


def check_schedule(schedule: str, callbacks: list[tuple[str, Callback]]) -> None:
    """Refuse two schedules at once."""
    if schedule != "constant" and any(isinstance(c, LRScheduler) for _, c in callbacks):
        raise ValueError(
            f"callbacks hold a skorch LRScheduler, but schedule={schedule!r} sets the learning "
            "rate as well; expected one of them. Set schedule='constant' to use the callback."
        )
