"""The one training loop: skorch's, on rows in memory, for a network or a stack.

skorch's loop and callbacks, without their overhead per batch: batches are slices of tensors, and
callbacks are called for a batch only if they define a method for it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback, EpochTimer
from skorch.helper import predefined_split
from torch import Tensor, nn

from ..costs._statistics import CostScale, CostStatistics
from ..losses import LayerWiseLoss, Target
from ..modules._layers import SeededModule
from ..modules._network import AuxNetwork
from .batches import Batches, evaluation_size, shuffled
from .callbacks import (
    EarlyStopping,
    EndWhenStopped,
    Plateaus,
    ProgressTable,
    as_skorch_batch,
    check_schedule,
)
from .checkpoints import Checkpoints
from .distributed import ALONE, Processes, processes
from .rows import RowSets
from .runtime import InterruptWatch, multiplications_per_row, reports, thread_limit
from .schedule import INTERVAL, WeightAverage, one_cycle, set_rate

PREDICT_ROWS = 4096

# Entries of a skorch history that its callbacks read, but the user does not need.
SKORCH_ENTRIES = {"batches", "train_loss_best", "valid_loss_best", "valid_cost_best"}


class Plan(NamedTuple):
    """Length and schedule of a training.

    With `patience` None training runs to the end. `averaging` is the horizon, in epochs, of the
    average of the weights; 0 for the weights themselves. With `checkpoints` training resumes from
    the last one. Plateaus without held-out rows have the `constant_rate`, if there is one.
    """

    epochs: int
    schedule: str
    patience: int | None = None
    averaging: float = 0.0
    checkpoints: Checkpoints | None = None
    constant_rate: float | None = None


class _CallbackStop(Exception):  # noqa: N818
    """A callback ended the training; skorch raises KeyboardInterrupt for this, as for Ctrl-C."""


class TrainingLoop(NeuralNet):
    """A skorch net that trains an `AuxNetwork` on `Rows` with a `LayerWiseLoss`."""

    _default_callbacks: list[tuple[str, Callback]] = []
    callbacks_: list[tuple[str, Callback]]
    optimizer_: Any
    batch_size: int

    callbacks: list[Any]
    generators: list[torch.Generator]
    dropout_generators: list[torch.Generator]

    # State during a training only.
    _interrupts = InterruptWatch()
    _average: WeightAverage | None = None
    _trained: Sequence[nn.Parameter] = ()
    _rates: Iterator[float] | None = None
    _group: Processes = ALONE  # with which it is shared

    def __init__(
        self,
        module: AuxNetwork,
        objective: LayerWiseLoss,
        *,
        scale: CostScale,
        statistics: CostStatistics,
        user_callbacks: Sequence[Any] = (),
        **arguments: Any,
    ) -> None:
        callbacks = [*user_callbacks, *(arguments.pop("callbacks", None) or [])]
        super().__init__(module, objective, callbacks=callbacks, **arguments)
        self.scale = scale
        self.statistics = statistics
        self.user_callbacks = list(user_callbacks)

    @cached_property
    def multiplications_per_row(self) -> float:
        """Multiply-adds of a forward pass of one row."""
        return multiplications_per_row(self.module_)

    def thread_limit(self) -> AbstractContextManager[Any]:
        """Limit the threads of a training."""
        return thread_limit(self.batch_size * self.multiplications_per_row)

    @property
    def predict_rows(self) -> int:
        """Rows of a batch without a gradient."""
        return getattr(self, "iterator_valid__batch_size", PREDICT_ROWS)

    # Whether the module is a stack of networks, each with a set of rows.
    is_stack = False

    # Held-out values of the last epoch, used for early stopping of each network.
    stop_values: np.ndarray

    @property
    def n_networks(self) -> int:
        """Number of networks: 1, or more in a stack."""
        n_networks: int = self.module_.n_networks
        return n_networks

    def seed(self, seed: int) -> None:
        """Seed the generators of shuffling and of all modules that draw random numbers."""
        self.generators = [torch.Generator().manual_seed(seed)]
        on_device = torch.Generator(device=self.device).manual_seed(processes().seed(seed))
        self.dropout_generators = [on_device]
        for module in self.module_.modules():
            if isinstance(module, SeededModule):
                module.generator = on_device

    def initialize_for_prediction(self) -> None:
        """Initialize without the optimizer, which takes a second of imports."""
        self._initialize_virtual_params()
        self._initialize_module()
        self._initialize_criterion()
        self._initialize_history()
        self.callbacks_, self.optimizer_, self.initialized_ = [], None, True

    def weights(self) -> list[list[Tensor]]:
        """The tensors of the network; of each, in a stack."""
        return [list(self.module_.state_dict().values())]

    def fit_rows(self, rows: RowSets, held_out: RowSets | None, plan: Plan) -> None:
        """Train on rows; with a patience, stop early on held-out rows, if there are any.

        The weights are then those of the epoch with the smallest `stop_values`.
        """
        check_schedule(plan.schedule, self.callbacks_)
        self._prepare_optimizer()
        self._group = processes()
        try:
            self._group.copy_from_first(self.module_)
            self._train(rows, held_out, plan)
            self._group.copy_from_first(self.module_)
        finally:
            self._group = ALONE
        self.finish(rows)

    def _train(self, rows: RowSets, held_out: RowSets | None, plan: Plan) -> None:
        stop = None
        if held_out is not None and plan.patience is not None:
            self.train_split = predefined_split(held_out)
            kind = Plateaus if plan.schedule == "plateau" else EarlyStopping
            stop = kind(plan.patience)
        saved = plan.checkpoints.next_training() if plan.checkpoints else None
        epochs = saved.epochs_left(plan.epochs) if saved else plan.epochs
        n_steps = len(self.get_iterator(rows, training=True))
        if plan.schedule == "one_cycle":
            rates = one_cycle(plan.epochs * n_steps)
            self._rates = islice(rates, saved.n_finished * n_steps if saved else 0, None)
        if plan.schedule == "plateau" and plan.constant_rate and stop is None:
            set_rate(self.optimizer_, plan.constant_rate / self.lr)
        if plan.averaging:
            self._average = WeightAverage(
                list(self.module_.parameters()), plan.averaging * n_steps, min(n_steps, INTERVAL)
            )
        users = self.callbacks_
        progress = ProgressTable(epochs) if reports(self.verbose) else None
        last = [EpochTimer(), progress, stop and EndWhenStopped(stop), saved]
        self.callbacks_ = [*_named([stop]), *users, *_named(last)]
        try:
            with InterruptWatch() as self._interrupts:
                self._run_loop(rows, epochs)
            if self._average is not None:  # a callback may have ended an epoch
                self._average.put_in_place()
        finally:
            self.callbacks_, self.train_split = users, None
            if plan.schedule != "constant":
                set_rate(self.optimizer_, 1.0)
            self._trained, self._rates, self._average = (), None, None
            self._set_training(False)
        if stop is not None:
            stop.restore(self)

    def _prepare_optimizer(self) -> None:
        if self.optimizer_ is None:  # a loaded net
            self.initialize_callbacks()
            self._initialize_optimizer()
        for group in self.optimizer_.param_groups:  # schedules need it
            group.setdefault("initial_lr", group["lr"])

    @torch.enable_grad()
    def _run_loop(self, rows: RowSets, epochs: int) -> None:
        with suppress(_CallbackStop):
            self.notify("on_train_begin", X=rows, y=None)
            self.fit_loop(rows, None, epochs)
        with suppress(_CallbackStop):
            self.notify("on_train_end", X=rows, y=None)

    @torch.no_grad()
    def finish(self, rows: RowSets) -> None:
        """Raise an error if training diverged in its last step, which comes after the last loss."""
        x, _ = rows.sets[0][torch.arange(min(len(rows), self.batch_size))]
        outputs = self.module_.forward_heads(self.to_sets(x))
        check_finite([r.abs().sum().item() for r in outputs])

    def to_sets(self, x: Tensor) -> Tensor:
        """Rows in the form of the module's input: in a stack, the single set of all networks."""
        return x.unsqueeze(0) if self.is_stack else x

    def notify(self, method_name: str, **kwargs: Any) -> None:
        """Call the callbacks, and distinguish their request to stop from the user's interrupt."""
        try:
            super().notify(method_name, **kwargs)
        except KeyboardInterrupt as stop:
            if self._interrupts.seen:
                raise
            raise _CallbackStop from stop

    def _any_callback_defines(self, *methods: str) -> bool:
        return any(
            getattr(type(callback), method) is not getattr(Callback, method)
            for _, callback in self.callbacks_
            for method in methods
        )

    def get_iterator(self, dataset: RowSets, training: bool = False) -> Batches:
        """Batches of every set of rows, shuffled for training, large for validation."""
        sets, size, more = dataset.sets, self.batch_size, (self.is_stack, self._group)
        if training:
            return shuffled(sets, size, self.generators, *more)
        return Batches(sets, evaluation_size(max(size, self.predict_rows), sets), None, *more)

    def run_single_epoch(
        self, iterator: Batches | None, training: bool, prefix: str, step_fn: Any, **_: Any
    ) -> None:
        """Pass over the rows once and record the mean loss of every head."""
        if iterator is None:
            return
        self._set_training(training)
        if training and self._average is not None:
            self._average.set_aside()
        notify_batch = self._any_callback_defines("on_batch_begin", "on_batch_end")
        self.notify_gradient = self._any_callback_defines("on_grad_computed")
        self._trained = [p for group in self.optimizer_.param_groups for p in group["params"]]
        means = torch.empty(0)
        if not notify_batch:  # one for all: checkpoints refer to the last batch
            self.history.new_batch()
        batches = iter(iterator)
        for i in range(len(iterator)):
            batch = next(batches)
            if notify_batch:
                self.history.new_batch()
                self.notify("on_batch_begin", batch=as_skorch_batch(batch), training=training)
            step = step_fn(batch)
            if i == 0:  # one tensor for all: thousands of small ones fragment the memory
                means = step["means"].new_empty((len(iterator), *step["means"].shape))
            means[i] = step["means"]
            if notify_batch:
                step = {name: value.detach() for name, value in step.items()}
                self.history.record_batch(f"{prefix}_loss", step["loss"].item())
                self.history.record_batch(f"{prefix}_batch_size", len(batch[1].label))
                self.notify("on_batch_end", batch=as_skorch_batch(batch), training=training, **step)
            del batch  # before the next one is read
        if training:
            if self._group.size > 1:
                self._group.average_statistics(self.module_)
            if self._average is not None:
                self._average.put_in_place()
        of_epoch = iterator.epoch_means(means)
        self.record(prefix, of_epoch.reshape(len(of_epoch), -1))

    def record(self, prefix: str, means: np.ndarray) -> None:
        """Record the losses of every head and the cost of held-out rows: means over all networks.

        `means` (n_values, n_networks) are the losses of the heads, followed for held-out rows by
        the values of `held_out_means`.
        """
        check_finite(means)
        layers = self.module_.layers
        values, of_held_out = np.split(means, [len(layers)])
        if prefix == "valid":  # weighted means
            cost, weight, *refined = of_held_out
            values = values / weight
        weights = self.criterion_.head_weights.numpy(force=True).reshape(len(layers), -1)
        self._record_with_best(f"{prefix}_loss", float((weights * values).sum(axis=0).mean()))
        for layer, of_networks in zip(layers, values):
            self.history.record(f"{prefix}_loss_{layer}", float(of_networks.mean()))
        if prefix == "valid":
            cost = self.scale.to_currency(cost / weight)
            self._record_with_best("valid_cost", float(cost.mean()))
            self.stop_values = cost
            if refined:
                self.stop_values = np.min(refined, axis=0) / weight
                self.history.record("valid_refinement", float(self.stop_values.mean()))

    def _record_with_best(self, name: str, value: float) -> None:
        """Record a value, and whether it is the smallest so far, for skorch's checkpoints."""
        best = (record[name] for record in reversed(self.history) if record.get(f"{name}_best"))
        is_best = value < next(best, float("inf"))
        self.history.record(name, value)
        self.history.record(f"{name}_best", is_best)

    def records(self, start: int) -> list[dict[str, Any]]:
        """The records of the finished epochs from `start` on, for the user."""
        return [
            {key: value for key, value in record.items() if key not in SKORCH_ENTRIES}
            for record in self.history[start:]
            if "train_loss" in record
        ]

    def train_step(self, batch: tuple[Tensor, Target], **_: Any) -> dict[str, Any]:
        """One step of the optimizer."""
        x, target = batch
        if self._rates is not None:
            set_rate(self.optimizer_, next(self._rates))
        for parameter in self._trained:  # zero_grad without its bookkeeping
            parameter.grad = None
        loss, losses, output = self._evaluate(x, target)
        loss.backward()
        if self._group.size > 1:
            loss = self._group.average_gradients(self._trained, loss, len(target.label))
        if self.notify_gradient:
            parameters = list(self.module_.named_parameters())
            self.notify(
                "on_grad_computed",
                named_parameters=parameters,
                batch=as_skorch_batch(batch),
                training=True,
            )
        self.optimizer_.step()
        if self._average is not None:
            self._average.update()
        return {"loss": loss, "y_pred": output, "means": losses}

    def _evaluate(self, x: Tensor, target: Target) -> tuple[Tensor, Tensor, Tensor]:
        """The objective, the heads' losses, and the outputs."""
        outputs = self.module_.forward_heads(x)
        return *self.criterion_(outputs, target), outputs[-1]

    @torch.no_grad()
    def validation_step(self, batch: tuple[Tensor, Target], **_: Any) -> dict[str, Any]:
        """Means of the heads' losses, and what `held_out_means` computes."""
        x, target = batch
        loss, losses, output = self._evaluate(x, target)
        means = torch.cat([losses, self.held_out_means(output, target)])
        return {"loss": loss, "y_pred": output, "means": means}

    @abstractmethod
    def held_out_means(self, output: Tensor, target: Target) -> Tensor:
        """Means of the costs of predictions, of weights, and of losses at several temperatures."""


def check_finite(values: float | list[float] | np.ndarray) -> None:
    """Raise an error if training has diverged."""
    with np.errstate(over="ignore"):  # adaptive optimizers square the gradients
        squares = np.square(np.asarray(values, dtype=np.float32))
    if not np.isfinite(squares).all():
        raise ValueError(
            "The training loss became infinite or NaN, so the fit was stopped. Lower "
            "learning_rate (by a factor of 10, say), or scale the features of X, for example by "
            "a StandardScaler in front."
        )


def _named(callbacks: Sequence[Callback | None]) -> list[tuple[str, Callback]]:
    """Initialized callbacks as skorch lists them."""
    return [(type(c).__name__, c.initialize()) for c in callbacks if c is not None]
