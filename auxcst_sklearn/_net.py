"""Training in memory, by skorch.

skorch's loop and callbacks, without what costs time per batch: data are tensors that a batch
slices, and callbacks hear of batches only if they listen.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from copy import deepcopy
from functools import cached_property
from operator import mul
from pickle import PicklingError
from typing import Any

import numpy as np
import torch
from scipy import sparse
from skorch import NeuralNet
from skorch.callbacks import Callback, EarlyStopping, EpochTimer, LRScheduler, PrintLog
from skorch.helper import predefined_split
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._batches import Batches, Rows, Task, densify, epoch_means
from ._schedule import one_cycle, set_rate
from ._threads import multiplications_per_row, thread_limit
from .losses import Target
from .modules import SeededModule

PREDICT_ROWS = 4096

# A CPU multiplies fewer rows by other routines, which round differently. Rows are added, so that
# one alone gets the same estimates as among others.
FEWEST_ROWS = 4

# What skorch's callbacks read of a history, beside what tells the user how a training went.
OF_SKORCH = {"batches", "train_loss_best", "valid_loss_best", "valid_cost_best"}

_seed_lock = threading.Lock()


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Let torch's initialisers draw from `seed`, and leave the global generator as it was."""
    with _seed_lock, torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


class _CallbackStop(Exception):  # noqa: N818
    """A callback ended the training; skorch says so by KeyboardInterrupt, as the user does."""


class _Bar(Callback):
    """A bar of epochs with the time left, on a terminal."""

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs

    def on_train_begin(self, net: NeuralNet, **kwargs: Any) -> None:
        from tqdm.auto import tqdm

        self.bar_ = tqdm(total=self.epochs, unit="epoch", leave=False, disable=None)

    def on_epoch_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.bar_.update()

    def on_train_end(self, net: NeuralNet, **kwargs: Any) -> None:
        self.bar_.close()


def untrained(callbacks: list) -> list:
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


def copied(callbacks: list) -> list:
    """Copies of the callbacks; what cannot be copied is a logger or the like, and left out."""
    copies = []
    for callback in callbacks:
        with suppress(TypeError, PicklingError):
            copies.append(deepcopy(callback))
    return copies


def heard(batch: tuple[Tensor, Target]) -> tuple[Tensor, Tensor]:
    """A batch as skorch's callbacks expect it: inputs and labels."""
    x, target = batch
    return x, target.label


class CostNet(NeuralNet):
    """A skorch net that trains an `AuxNetwork` on `Rows` with a `LayerWiseLoss`."""

    _default_callbacks = []

    compile_step: bool = False
    temperature: float = 1.0

    # What a training sets, and takes away when it ends.
    _trained: Sequence[nn.Parameter] = ()
    _rates: Iterator[float] | None = None
    _objective: Callable[[Tensor, Target], tuple[Tensor, Tensor, Tensor]] | None = None

    @cached_property
    def multiplications_per_row(self) -> float:
        """Multiply-adds of a forward pass of one row."""
        return multiplications_per_row(self.module_)

    def thread_limit(self) -> AbstractContextManager:
        """Limit the threads of a training."""
        return thread_limit(self.batch_size * self.multiplications_per_row)

    @property
    def predict_rows(self) -> int:
        """Rows of a batch of which no gradient is needed."""
        return getattr(self, "iterator_valid__batch_size", PREDICT_ROWS)

    def seed(self, seed: int) -> None:
        """Give shuffling, and all modules that draw random numbers, generators of their own."""
        self.generator = torch.Generator().manual_seed(seed)
        on_device = torch.Generator(device=self.device).manual_seed(seed)
        for module in self.module_.modules():
            if isinstance(module, SeededModule):
                module.generator = on_device

    def fit_task(self, task: Task, *, epochs: int, patience: int, schedule: str) -> None:
        """Train for some epochs, at a rate that is constant or one that follows a schedule.

        With held-out rows, stop when their cost no longer falls, and keep the weights of the
        epoch where it was smallest.
        """
        check_schedule(schedule, self.callbacks_)
        self.scale, self.statistics = task.scale, task.statistics
        self.criterion_.loss = task.loss or self.criterion_.loss
        if self.optimizer_ is None:  # a pickled net comes without it
            self.initialize_callbacks()
            self.initialize_optimizer()
        for group in self.optimizer_.param_groups:  # schedules look for it
            group.setdefault("initial_lr", group["lr"])
        train = task.train
        if task.valid is not None:
            self.train_split = predefined_split(task.valid)
        if schedule == "one_cycle":
            self._rates = one_cycle(epochs * len(self.get_iterator(train, training=True)))
        self._objective = torch.compile(self._evaluate) if self.compile_step else self._evaluate
        users = self.callbacks_
        self.callbacks_ = users + self._own_callbacks(
            epochs, None if task.valid is None else patience
        )
        try:
            with suppress(_CallbackStop), torch.enable_grad():
                self.notify("on_train_begin", X=train, y=None)
                self.fit_loop(train, None, epochs)
            with suppress(_CallbackStop):
                self.notify("on_train_end", X=train, y=None)
        finally:
            self.callbacks_, self.train_split = users, None
            if self._rates is not None:
                set_rate(self.optimizer_, 1.0)
            self._trained, self._objective, self._rates = (), None, None
            self._set_training(False)
        self.check_outputs(train)

    @torch.no_grad()
    def check_outputs(self, rows: Rows) -> None:
        """Stop a training that diverged in its last step, which comes after the last loss."""
        x, _ = rows[torch.arange(min(len(rows), self.batch_size))]
        check_finite([r.abs().sum().item() for r in self.module_.forward_heads(x)])

    def _own_callbacks(self, epochs: int, patience: int | None) -> list[tuple[str, Callback]]:
        own = [("timer", EpochTimer())]
        if self.verbose:
            own += [("log", PrintLog()), ("bar", _Bar(epochs))]
        if patience is not None:
            stop = EarlyStopping("valid_cost", patience=patience, threshold=0, load_best=True)
            own.append(("early_stopping", stop))
        return [(name, callback.initialize() or callback) for name, callback in own]

    def notify(self, method_name: str, **kwargs: Any) -> None:
        """Tell the callbacks, and tell their request to stop from the user's interrupt."""
        try:
            super().notify(method_name, **kwargs)
        except KeyboardInterrupt as stop:
            raise _CallbackStop from stop

    def _listens(self, *methods: str) -> bool:
        return any(
            getattr(type(callback), method) is not getattr(Callback, method)
            for _, callback in self.callbacks_
            for method in methods
        )

    def get_iterator(self, dataset: Rows, training: bool = False) -> Batches:
        """Batches of the rows, shuffled for training, large for validation."""
        if training:
            return Batches(dataset, self.batch_size, self.generator)
        return Batches(dataset, max(self.batch_size, self.predict_rows))

    def run_single_epoch(
        self, iterator: Batches | None, training: bool, prefix: str, step_fn: Any, **_: Any
    ) -> None:
        """Pass over the rows once and record the mean loss of every head."""
        if iterator is None:
            return
        self._set_training(training)
        notify_batch = self._listens("on_batch_begin", "on_batch_end")
        self.notify_gradient = self._listens("on_grad_computed")
        self._trained = [p for group in self.optimizer_.param_groups for p in group["params"]]
        means, sizes = [], []
        if not notify_batch:  # one for all: checkpoints name the last batch of the history
            self.history.new_batch()
        for batch in iterator:
            if notify_batch:
                self.history.new_batch()
                self.notify("on_batch_begin", batch=heard(batch), training=training)
            step = step_fn(batch)
            means.append(step["means"])
            sizes.append(len(batch[0]))
            if notify_batch:
                step = {name: value.detach() for name, value in step.items()}
                self.history.record_batch(f"{prefix}_loss", step["loss"].item())
                self.history.record_batch(f"{prefix}_batch_size", len(batch[0]))
                self.notify("on_batch_end", batch=heard(batch), training=training, **step)
        self.record(prefix, epoch_means(means, sizes).tolist())

    def record(self, prefix: str, means: list[float]) -> None:
        """Note the mean loss of every head, and of held-out rows what their predictions cost."""
        check_finite(means)
        layers = self.module_.layers
        losses = dict(zip(layers, means))
        weights = self.criterion_.head_weights.tolist()
        self._record_with_best(f"{prefix}_loss", sum(map(mul, weights, means)))
        for layer, loss in losses.items():
            self.history.record(f"{prefix}_loss_{layer}", loss)
        if prefix == "valid":
            cost, weight = means[len(layers) :]
            self._record_with_best("valid_cost", self.scale.to_currency(cost / weight))

    def _record_with_best(self, name: str, value: float) -> None:
        """Record a value, and whether it is the smallest so far, as skorch's checkpoints ask."""
        best = (record[name] for record in reversed(self.history) if record.get(f"{name}_best"))
        is_best = value < next(best, float("inf"))
        self.history.record(name, value)
        self.history.record(f"{name}_best", is_best)

    def records(self, start: int) -> list[dict[str, Any]]:
        """What the user is told of each epoch from `start` on."""
        return [
            {key: value for key, value in record.items() if key not in OF_SKORCH}
            for record in self.history[start:]
        ]

    def train_step(self, batch: tuple[Tensor, Target], **_: Any) -> dict[str, Any]:
        """One step of the optimizer."""
        x, target = batch
        if self._rates is not None:
            set_rate(self.optimizer_, next(self._rates))
        for parameter in self._trained:  # what zero_grad does, without its bookkeeping
            parameter.grad = None
        loss, losses, output = self._objective(x, target)
        loss.backward()
        if self.notify_gradient:
            parameters = list(self.module_.named_parameters())
            self.notify(
                "on_grad_computed",
                named_parameters=parameters,
                batch=heard(batch),
                training=True,
            )
        self.optimizer_.step()
        return {"loss": loss, "y_pred": output, "means": losses}

    def _evaluate(self, x: Tensor, target: Target) -> tuple[Tensor, Tensor, Tensor]:
        """What is minimised, the heads' losses, and the outputs."""
        outputs = self.module_.forward_heads(x)
        return *self.criterion_(outputs, target), outputs[-1]

    @torch.no_grad()
    def validation_step(self, batch: tuple[Tensor, Target], **_: Any) -> dict[str, Any]:
        """Means of the heads' losses, then of the predictions' weighted costs and the weights."""
        x, target = batch
        loss, losses, output = self._evaluate(x, target)
        means = torch.cat([losses, self.decision_cost(output, target)])
        return {"loss": loss, "y_pred": output, "means": means}

    def decision_cost(self, output: Tensor, target: Target) -> Tensor:
        """Means of the predictions' weighted costs, and of the weights."""
        choice = self.estimated_cost(output).argmin(dim=1)
        cost = target.cost.gather(1, choice.unsqueeze(1)).squeeze(1)
        weight = torch.ones_like(cost) if target.weight is None else target.weight
        return torch.stack([(weight * cost).mean(), weight.mean()])

    def estimated_cost(self, output: Tensor) -> Tensor:
        """What the output layer says of the costs, as sure of the classes as it may be."""
        loss = self.criterion_.loss
        if self.temperature != 1:
            output = loss.soften(output, self.temperature)
        return loss.estimate(output, self.statistics)

    @torch.no_grad()
    def estimate(
        self, X: np.ndarray | sparse.csr_matrix, *, every_head: bool = False
    ) -> list[np.ndarray]:
        """Estimated costs (n, K) in currency: of the output, or of every head."""
        size = self.predict_rows
        with thread_limit(min(size, X.shape[0]) * self.multiplications_per_row):
            batches = [
                self._estimate_batch(X[start : start + size], every_head)
                for start in range(0, X.shape[0], size)
            ]
        return [
            self.scale.to_currency(np.concatenate(head).astype(np.float64))
            for head in zip(*batches)
        ]

    def _estimate_batch(
        self, X: np.ndarray | sparse.csr_matrix, every_head: bool
    ) -> list[np.ndarray]:
        x = densify(X).to(self.device)
        n = len(x)
        if n < FEWEST_ROWS:
            x = F.pad(x, (0, 0) * (x.dim() - 1) + (0, FEWEST_ROWS - n))
        outputs = self.module_.forward_heads(x) if every_head else [self.module_(x)]
        *hidden, output = outputs
        estimates = [self.criterion_.aux_loss.estimate(r, self.statistics) for r in hidden]
        estimates.append(self.estimated_cost(output))
        return [r[:n].cpu().numpy() for r in estimates]

    @contextmanager
    def unchanged_on_error(self) -> Iterator[None]:
        """Give the net its weights, optimizer state and history back when training fails."""
        n_epochs = len(self.history)
        weights = deepcopy(self.module_.state_dict())
        optimizer = self.optimizer_ and deepcopy(self.optimizer_.state_dict())
        units = getattr(self, "scale", None), getattr(self, "statistics", None)
        loss = self.criterion_.loss
        try:
            yield
        except BaseException:
            del self.history[n_epochs:]
            self.module_.load_state_dict(weights)
            self.scale, self.statistics = units
            self.criterion_.loss = loss
            if optimizer is None:
                self.optimizer_ = None
            else:
                self.optimizer_.load_state_dict(optimizer)
            raise

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what only training needs: a pickle is hardly larger than the weights."""
        slim = object.__new__(type(self))
        slim.__dict__ = {
            **self.__dict__,
            "module": None,
            "callbacks": untrained(self.callbacks or []),
            "callbacks_": [],
            "optimizer_": None,
            "generator": None,
            "_rates": None,
            "_objective": None,
            "_trained": (),
        }
        return super(CostNet, slim).__getstate__()


def check_schedule(schedule: str, callbacks: list[tuple[str, Callback]]) -> None:
    """Refuse two schedules at once."""
    if schedule != "constant" and any(isinstance(c, LRScheduler) for _, c in callbacks):
        raise ValueError(
            f"callbacks hold a skorch LRScheduler, but schedule={schedule!r} sets the learning "
            "rate as well; expected one of them. Set schedule='constant' to use the callback."
        )


def check_finite(values: float | list[float]) -> None:
    """Stop a training that has diverged."""
    with np.errstate(over="ignore"):  # adaptive optimizers square what they are given
        squares = np.square(np.asarray(values, dtype=np.float32))
    if not np.isfinite(squares).all():
        raise ValueError(
            "The training loss became infinite or NaN, so the fit was stopped. Lower "
            "learning_rate (by a factor of 10, say), or scale the features of X, for example by "
            "a StandardScaler in front."
        )
