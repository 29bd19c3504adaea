"""Saving the state of a training after epochs, and resuming from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback

from .checkpoints import TrainingFiles
from .early_stopping import EarlyStopping, Plateaus
from .log import report


class Checkpointing(Callback):
    """The last callback, which saves everything that the next epoch depends on."""

    def __init__(self, files: TrainingFiles) -> None:
        self.files = files
        self.state = files.load()
        self.n_saved = self.n_finished

    @property
    def n_finished(self) -> int:
        """Number of epochs that need not be trained again."""
        return 0 if self.state is None else self.state["epoch"]

    def epochs_left(self, epochs: int) -> int:
        """Number of epochs to train."""
        stopped = self.state is not None and self.state["stopped"]
        left = 0 if stopped else epochs - self.n_finished
        self.files.had_ended = left == 0
        return left

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        self.n_before = len(net.history)
        if self.state is not None:
            set_state(net, self.state)
            folder = self.files.folder
            report(f"Epochs 1 to {self.n_finished} are those of {folder}.", net.verbose)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        if (len(net.history) - self.n_before) % self.files.every == 0:
            self._save(net)

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self._save(net)

    def _save(self, net: NeuralNet) -> None:
        epoch = len(net.history) - self.n_before
        if epoch > self.n_saved:
            self.files.save(epoch, {"epoch": epoch, **get_state(net, self.n_before)})
            self.n_saved = epoch


def get_state(net: Any, n_before: int) -> dict[str, Any]:
    """The state to resume from, as tensors and plain values; epochs from `n_before` on."""
    stop, average = _stop_of(net), net._average
    return {
        "weights": net.module_.state_dict(),
        "optimizer": net.optimizer_.state_dict(),
        "generators": [g.get_state() for g in (*net.generators, *net.dropout_generators)],
        "histories": [_plain(part.history[n_before:]) for part in net.recorded_nets],
        "stop_values": torch.as_tensor(getattr(net, "stop_values", np.zeros(0))),
        "average": average and {"weights": average.average, "step": average.step},
        "stop": stop
        and {
            "best": [torch.stack(tensors) for tensors in zip(*stop.best_)],
            **{name: torch.from_numpy(getattr(stop, name)) for name in stop.counts},
        },
        "stopped": stop is not None and not stop.running.any(),
    }


@torch.no_grad()
def set_state(net: Any, state: dict[str, Any]) -> None:
    """Restore a state, when weights, optimizer and callbacks of the training exist."""
    net.module_.load_state_dict(state["weights"])
    net.optimizer_.load_state_dict(state["optimizer"])
    generators = (*net.generators, *net.dropout_generators)
    for generator, of_state in zip(generators, state["generators"], strict=True):
        generator.set_state(of_state)
    for part, records in zip(net.recorded_nets, state["histories"], strict=True):
        part.history.extend(records)
    if len(state["stop_values"]):
        net.stop_values = state["stop_values"].numpy()
    if net._average is not None:
        net._average.take_up(state["average"]["weights"], state["average"]["step"])
    if (stop := _stop_of(net)) is not None:
        stop.best_ = [*map(list, zip(*state["stop"]["best"]))]
        for name in stop.counts:
            setattr(stop, name, state["stop"][name].numpy())
        if isinstance(stop, Plateaus):
            stop.set_rates(net)


def _stop_of(net: Any) -> EarlyStopping | None:
    stops = [c for _, c in net.callbacks_ if isinstance(c, EarlyStopping)]
    return stops[0] if stops else None


def _plain(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records with plain numbers, and without records of batches."""
    return [
        {name: getattr(value, "item", lambda v=value: v)() for name, value in record.items()}
        for record in records
    ]
