"""The one loop over epochs and steps, with skorch's callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice
from time import perf_counter
from typing import Any

import numpy as np
import torch
from skorch.callbacks import BatchScoring, Callback, EpochScoring, LRScheduler
from torch import Tensor

from ..losses import ProbabilisticLoss, Target
from .batches import Batch, Batches, Rows
from .checkpoints import Checkpoints
from .net import CostNet
from .plan import Plan
from .processes import processes, report, reports
from .schedule import INTERVAL, EarlyStopping, WeightAverage, early_stopping, one_cycle, set_rate
from .temperature import STOP_HEATS, prior

# Temperatures of the held-out loss of early stopping: a network still improves at separating the
# classes when it is already overconfident, which a temperature corrects.
STOP_TEMPERATURES = np.exp(STOP_HEATS)
AT_ONE = int(abs(STOP_HEATS).argmin())  # the position of temperature 1

# Values of an epoch that a line of progress has.
SHOWN = ("train_loss", "valid_loss", "valid_cost", "valid_refinement")


class CallbackStop(Exception):  # noqa: N818
    """A callback ended the training, by a KeyboardInterrupt as in skorch."""


@dataclass(eq=False, repr=False)
class Training:
    """A training of a net: skorch's loop, without its overhead for each batch.

    `rows` are the training rows of each network. The `held_out` rows of each are evaluated after
    each epoch, and are used for early stopping, if it is planned, and for the temperature.
    `fold_seed` is the seed that drew the held-out rows.

    Batches are slices of tensors, and callbacks are called for a batch only if they define a method
    for it.
    """

    net: CostNet
    plan: Plan
    rows: Sequence[Rows]
    held_out: Sequence[Rows] | None = None
    fold_seed: int | None = None

    def run(self, checkpoints: Checkpoints | None = None) -> None:
        """Train the net; stopped early, it has the weights of the best epoch.

        With `checkpoints` training resumes from the last one.
        """
        with self.net.thread_limit():
            self._begin(checkpoints)
            self._train()

    def _begin(self, checkpoints: Checkpoints | None) -> None:
        net, plan = self.net, self.plan
        net.prepare_optimizer()
        self.group = processes()
        self.group.copy_from_first(net.module_)
        self.parameters = [p for part in net.optimizer_.param_groups for p in part["params"]]
        self.notifies_batches = self._is_defined("on_batch_begin", "on_batch_end")
        self.notifies_gradients = self._is_defined("on_grad_computed")
        self.n_before = len(net.history)
        self.saved = checkpoints
        self.batches = net.training_batches(self.rows, self.group)
        self.evaluated: Batches | None = None  # of held-out rows
        self.stop: EarlyStopping | None = None
        if self.held_out is not None:
            self.evaluated = net.evaluation_batches(self.held_out, self.group)
            self.stop = early_stopping(net, plan) if plan.early_stopping else None
        self._check_callbacks()
        n_steps, n_finished = len(self.batches), checkpoints.n_finished if checkpoints else 0
        self.rates: Iterator[float] | None = None
        if plan.schedule == "one_cycle":
            self.rates = islice(one_cycle(plan.max_epochs * n_steps), n_finished * n_steps, None)
        self.average: WeightAverage | None = None
        if plan.ema_epochs:
            horizon, interval = plan.ema_epochs * n_steps, min(n_steps, INTERVAL)
            self.average = WeightAverage(list(net.module_.parameters()), horizon, interval)

    def _check_callbacks(self) -> None:
        """Raise an error for callbacks of skorch that do not agree with this training."""
        for _, callback in self.net.callbacks_:
            scoring = getattr(callback, "scoring", len)
            named = not callable(scoring) or type(scoring).__module__.startswith("sklearn.")
            if isinstance(callback, BatchScoring | EpochScoring) and named:
                raise ValueError(
                    f"callbacks hold skorch's {type(callback).__name__} with scoring={scoring!r}, "
                    "a scorer of scikit-learn, which needs labels in one array; expected a "
                    "function of the net, X and y. history_ has the cost of validation samples."
                )
            if self.stop is not None and getattr(callback, "load_best", False):
                raise ValueError(
                    f"callbacks contain skorch's {type(callback).__name__} with load_best=True, "
                    "but early_stopping=True loads the weights of its own best epoch; expected one "
                    "of them. Leave load_best out, or set early_stopping=False."
                )
            schedule = self.plan.schedule
            if schedule != "constant" and isinstance(callback, LRScheduler):
                raise ValueError(
                    f"callbacks hold a skorch LRScheduler, but schedule={schedule!r} sets the "
                    "learning rate as well; expected one of them. Set schedule='constant' to use "
                    "the callback."
                )

    def _train(self) -> None:
        """Train to the last epoch, or until early stopping or a callback ends it."""
        net, rows = self.net, self.rows
        try:
            with torch.enable_grad():
                with suppress(CallbackStop):
                    self._notify("on_train_begin", X=rows, y=None)
                    self._run_epochs()
                with suppress(CallbackStop):
                    self._notify("on_train_end", X=rows, y=None)
                if self.saved is not None:
                    self.saved.save_epoch(self, is_last=True)
            if self.average is not None:  # a callback may have ended an epoch
                self.average.put(in_place=True)
        finally:
            if self.plan.schedule != "constant":  # which a callback of the user may have changed
                set_rate(net.optimizer_, 1.0)  # for a training that continues
            net.module_.train(False)
        if self.stop is not None:
            self.stop.restore()
        self.group.copy_from_first(net.module_)
        with torch.no_grad():  # The last step, in which it may diverge, comes after the last loss.
            x, _ = rows[0][torch.arange(min(self.batches.sizes))]
            for output in net.module_.forward_heads(x.unsqueeze(0)):
                check_finite(output.abs().sum().item())

    def _run_epochs(self) -> None:
        n_epochs = self.plan.max_epochs
        datasets = {"dataset_train": self.rows, "dataset_valid": self.held_out}
        if self.saved is not None:
            n_epochs = self.saved.restore(self, n_epochs)
        for i in range(n_epochs):
            start = perf_counter()
            self._notify("on_epoch_begin", **datasets)
            self._train_epoch()
            if self.evaluated is not None:
                values, errors = self._validate(self.evaluated)
                if self.stop is not None:
                    self.stop.update(values, errors)
            self.net.history.record("dur", perf_counter() - start)
            self._notify("on_epoch_end", **datasets)
            last, left = self.net.history[-1], n_epochs - i - 1
            report_epoch(last, left, self.net.verbose, is_first=i == 0)
            if self.saved is not None:
                self.saved.save_epoch(self)
            if self.stop is not None and not self.stop.running:
                line = f"Stopped: no better weights were found for {self.stop.patience} epochs."
                report(line, self.net.verbose)
                break

    # ------------------------------------------------------------------ epochs

    def _train_epoch(self) -> None:
        """Train on all rows once, and record the losses."""
        if self.average is not None:
            # Training continues with the latest weights, not with their average, which replaces
            # them only between epochs.
            self.average.put(in_place=False)
        losses = self._pass_over(self.batches, "train", self._step)
        if self.group.size > 1:
            self.group.average_statistics(self.net.module_)
        if self.average is not None:
            self.average.put(in_place=True)
        check_finite(losses)
        self._record_losses("train", losses)

    def _validate(self, batches: Batches) -> tuple[np.ndarray, np.ndarray | None]:
        """Record losses and cost of held-out rows; return values for early stopping, and errors.

        The value of a network is its cost, without a standard error, unless the loss has
        probabilities: then it is the loss at the best temperature.
        """
        means = self._pass_over(batches, "valid", self._evaluate)
        # The last value is that of squared losses, which may be large.
        check_finite(means[:-1])
        layers, to_currency = self.net.module_.layers, self.net.statistics.to_currency
        losses, (cost, weight, *risks) = np.split(means, [len(layers)])  # weighted means
        self._record_losses("valid", losses / weight)
        cost = to_currency(cost / weight)
        self._record_with_best("valid_cost", float(cost.mean()))
        if not risks:
            return cost, None
        n_rows = sum(batches.sizes)
        *refined, squares = np.array(risks) / weight
        values = (refined + prior(STOP_HEATS, n_rows)[:, np.newaxis]).min(axis=0)
        variance = squares - refined[AT_ONE] ** 2
        self.net.history.record("valid_refinement", float(values.mean()))
        return values, np.sqrt(variance.clip(min=0) / n_rows)

    def _pass_over(
        self, batches: Batches, prefix: str, step: Callable[[Batch], dict[str, Tensor]]
    ) -> np.ndarray:
        """Take a step with each batch; the means of what the steps return, for each network."""
        net, training = self.net, prefix == "train"
        net.module_.train(training)
        means = torch.empty(0)
        # skorch's history records each batch, which takes longer than a step of a small network.
        # Without a callback that reads the records, an epoch has a single one.
        if not self.notifies_batches:  # one for all: checkpoints refer to the last batch
            net.history.new_batch()
        rest = iter(batches)
        for i in range(len(batches)):
            batch = next(rest)
            if self.notifies_batches:
                net.history.new_batch()
                self._notify("on_batch_begin", batch=_for_callbacks(batch), training=training)
            results = step(batch)
            if i == 0:  # one tensor for all: thousands of small ones fragment the memory
                means = results["means"].new_empty((len(batches), *results["means"].shape))
            means[i] = results["means"]
            if self.notifies_batches:
                results = {name: value.detach() for name, value in results.items()}
                net.history.record_batch(f"{prefix}_loss", results["loss"].item())
                net.history.record_batch(f"{prefix}_batch_size", len(batch[1].label))
                self._notify(
                    "on_batch_end", batch=_for_callbacks(batch), training=training, **results
                )
            del batch  # before the next one is read
        if len(net.history) == 1 and not means[0].isfinite().all():
            raise ValueError(
                f"The {prefix} loss of the first batch is not finite. If a loss or module of your "
                "own computes it, check their values for the first samples of X."
            )
        return batches.epoch_means(means)

    def _step(self, batch: Batch) -> dict[str, Tensor]:
        """One step of the optimizer."""
        (x, target), optimizer = batch, self.net.optimizer_
        if self.rates is not None:
            set_rate(optimizer, next(self.rates))
        for parameter in self.parameters:  # zero_grad without its bookkeeping
            parameter.grad = None
        outputs = self.net.module_.forward_heads(x)
        loss, losses = self.net.criterion_(outputs, target)
        # One backward pass through the sum of all heads' losses, as in equation 1 of the paper.
        loss.backward()
        if self.group.size > 1:
            loss = self.group.average_gradients(self.parameters, loss, len(target.label))
        if self.notifies_gradients:
            named = list(self.net.module_.named_parameters())
            keywords = {"batch": _for_callbacks(batch), "training": True}
            self._notify("on_grad_computed", named_parameters=named, **keywords)
        optimizer.step()
        if self.average is not None:
            self.average.update()
        return {"loss": loss, "y_pred": outputs[-1].flatten(0, 1), "means": losses}

    @torch.no_grad()
    def _evaluate(self, batch: Batch) -> dict[str, Tensor]:
        """Means of the heads' losses, and the values of held-out rows."""
        x, target = batch
        outputs = self.net.module_.forward_heads(x)
        loss, losses = self.net.criterion_(outputs, target)
        means = torch.cat([losses, held_out_means(self.net, outputs[-1], target)])
        return {"loss": loss, "y_pred": outputs[-1].flatten(0, 1), "means": means}

    def _record_losses(self, prefix: str, losses: np.ndarray) -> None:
        """Record the losses of every head (n_layers, n_networks): means over all networks."""
        weights = self.net.criterion_.alphas.numpy(force=True)
        self._record_with_best(f"{prefix}_loss", float((weights * losses).sum(axis=0).mean()))
        for layer, of_networks in zip(self.net.module_.layers, losses):
            self.net.history.record(f"{prefix}_loss_{layer}", float(of_networks.mean()))

    def _record_with_best(self, name: str, value: float) -> None:
        """Record a value, and whether it is the smallest so far, for skorch's checkpoints."""
        history = self.net.history
        best = (record[name] for record in reversed(history) if record.get(f"{name}_best"))
        is_best = value < next(best, float("inf"))
        history.record(name, value)
        history.record(f"{name}_best", is_best)

    # --------------------------------------------------------------- callbacks

    def _notify(self, method: str, **given: Any) -> None:
        """Call the callbacks; an interrupt within them ends the training, others end the fit."""
        try:
            self.net.notify(method, **given)
        except KeyboardInterrupt as stop:
            raise CallbackStop from stop

    def _is_defined(self, *methods: str) -> bool:
        """Whether any callback defines a method."""
        classes = {type(callback) for _, callback in self.net.callbacks_}
        return any(getattr(cls, m) is not getattr(Callback, m) for m in methods for cls in classes)


def held_out_means(net: CostNet, output: Tensor, target: Target) -> Tensor:
    """Means of costs of predictions, weights, losses at several temperatures, and squared losses.

    They are (n_values, n_networks), for the output of each network and the rows of its set.
    """
    loss, shape = net.criterion_.loss, output.shape[:2]
    output = output.flatten(0, 1)
    values = [net.paid(output, target)]
    values.append(torch.ones_like(values[0]))
    if isinstance(loss, ProbabilisticLoss):
        # The loss at its best temperature measures how well classes are separated. The plain loss
        # rises as soon as a network becomes overconfident, long before it stops to learn.
        heats = STOP_TEMPERATURES.tolist()
        risks = [loss(loss.with_temperature(output, t), target) for t in heats]
        values += [*risks, risks[AT_ONE].clamp(max=1e18).square()]  # which float32 has
    weighted = torch.stack(values) * (1 if target.weight is None else target.weight)
    return weighted.view(-1, *shape).mean(dim=-1)


def _for_callbacks(batch: Batch) -> tuple[Tensor, Tensor]:
    """A batch as skorch's callbacks expect it: inputs and labels of all sets of rows."""
    x, target = batch
    return x.flatten(0, 1), target.label


def report_epoch(record: dict[str, Any], n_left: int, verbose: int, *, is_first: bool) -> None:
    """A line of progress: losses, held-out cost, and the time that is left if no epoch is saved."""
    if not reports(verbose):
        return
    names = [name for name in SHOWN if name in record]
    if is_first:
        header = "".join(f"{name:>18}" for name in names)
        report(f"epoch{header}{'at most left':>14}", verbose)
    values = "".join(f"{record[name]:18.5g}" for name in names)
    left = timedelta(seconds=round(n_left * record["dur"]))
    report(f"{record['epoch']:5d}{values}{left!s:>14}", verbose)


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
