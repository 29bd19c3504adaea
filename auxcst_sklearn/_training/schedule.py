"""The optimizer, the schedule of its rate, the average of the weights, and early stopping."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from inspect import signature
from math import cos, pi
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.swa_utils import get_ema_multi_avg_fn

from ..modules._network import Attributes, plain_attributes, set_attributes
from .plan import Plan

WARM_UP = 0.1
FIRST = 1 / 25
LAST = FIRST / 1e4

# After few steps the horizon is short, so that the average forgets the initial weights.
FIRST_STEPS = 10

# Largest number of steps between two updates; an update takes as long as an optimizer step.
INTERVAL = 4

# Smaller improvements, relative to the value, do not count: the last digits improve for ever.
LEAST = 2e-3


OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.__name__.lower(): cls
    for cls in (
        *(torch.optim.Adagrad, torch.optim.Adam, torch.optim.Adamax, torch.optim.AdamW),
        *(torch.optim.NAdam, torch.optim.RAdam, torch.optim.RMSprop, torch.optim.SGD),
    )
}
# Factor of the rate of a group of parameters, as skorch's `param_groups` pass it to the optimizer.
RATE_FACTOR = "rate_factor"


def optimizer_arguments(
    optimizer: Any, weight_decay: float, device: str, module: nn.Module, rate_of_body: float = 1.0
) -> dict[str, Any]:
    """The optimizer of a skorch net, in its fused version where there is one.

    The weights of a pretrained module have a rate of their own, `rate_of_body` of that of others.
    """
    cls = OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer
    if not (isinstance(cls, type) and issubclass(cls, Optimizer)):
        raise ValueError(
            f"optimizer={optimizer!r}; expected one of {sorted(OPTIMIZERS)}, or a subclass of "
            "torch.optim.Optimizer, whose arguments are in net_params={'optimizer__...': ...}."
        )
    accepted = signature(cls).parameters
    arguments: dict[str, Any] = {"optimizer": cls}
    if "weight_decay" in accepted:
        arguments["optimizer__weight_decay"] = float(weight_decay)
    # Fused versions and weight decay take no sparse gradients, as embeddings may have.
    sparse = [name for name, part in module.named_modules() if getattr(part, "sparse", False)]
    of_body = {} if rate_of_body == 1 else {RATE_FACTOR: rate_of_body}
    groups = [(f"*{name}.*", {"weight_decay": 0.0, **of_body}) for name in sparse]
    groups += [("*body.*", of_body)] if of_body else []
    if groups:
        arguments["optimizer__param_groups"] = groups
    if "fused" in accepted and not sparse and torch.device(device).type in ("cpu", "cuda"):
        arguments["optimizer__fused"] = True
    return arguments


def set_rate(optimizer: Optimizer, fraction: float) -> None:
    """Set the rate of the next step."""
    for group in optimizer.param_groups:
        group["lr"] = group["initial_lr"] * fraction


# -------------------------------------------------------------------------------- schedules


def one_cycle(n_steps: int) -> Iterator[float]:
    """Yield the rate of every step as a fraction of the peak: up for a tenth, then down.

    These are the rates of ``torch.optim.lr_scheduler.OneCycleLR``, whose bookkeeping takes as long
    as a small layer.
    """
    if n_steps == 1:
        yield 1.0
        return
    peak, end = WARM_UP * n_steps - 1, n_steps - 1
    for step in range(n_steps):
        if step <= peak:
            yield _between(FIRST, 1.0, step / peak if peak > 0 else 1.0)
        else:
            yield _between(1.0, LAST, (step - peak) / (end - peak))


def _between(start: float, end: float, fraction: float) -> float:
    return end + (start - end) / 2 * (1 + cos(pi * fraction))


# ------------------------------------------------------------------------------ the weights


class WeightAverage:
    """Exponential average of parameters, with a horizon in steps; see torch's `swa_utils`.

    The average after any epoch is as good as the end of a learning rate schedule, so that training
    can stop after any epoch. It replaces the parameters between epochs. With an `interval` of at
    most the steps of an epoch, it is updated in each.
    """

    def __init__(
        self, parameters: Sequence[nn.Parameter], horizon: float, interval: int = INTERVAL
    ) -> None:
        self.parameters = parameters
        self.average = [*map(torch.clone, map(torch.detach, parameters))]
        self.horizon, self.interval = horizon, interval
        self.step = 0
        self.in_place = False

    @torch.no_grad()
    def update(self) -> None:
        """Update the average after a step."""
        self.step += 1
        if self.step % self.interval == 0:
            decay = min(
                1 - self.interval / max(self.horizon, self.interval),
                self.step / (self.step + FIRST_STEPS * self.interval),
            )
            get_ema_multi_avg_fn(decay)(self.average, [*map(torch.detach, self.parameters)], None)

    def take_up(self, weights: Sequence[Tensor], step: int) -> None:
        """Continue from the trained weights, when the parameters hold the average."""
        self.average, self.step, self.in_place = list(weights), step, True

    def put(self, *, in_place: bool) -> None:
        """Set the parameters to the average, or to the trained weights."""
        for i, parameter in enumerate(self.parameters if self.in_place != in_place else ()):
            parameter.data, self.average[i] = self.average[i], parameter.data
        self.in_place = in_place


class EarlyStopping:
    """Keep the weights of each network at its least held-out value.

    Training ends when the value of none of them has decreased for `patience` epochs. skorch's
    callback of the same name does this for one network.
    """

    counts: tuple[str, ...] = ("value", "misses")  # A checkpoint contains these and the weights.

    def __init__(self, net: Any, patience: int) -> None:
        self.net, self.patience = net, patience
        self.best = deepcopy(net.module_.weights())
        self.attributes = self._attributes()
        self.value = np.full(len(self.best), np.inf)
        self.misses = np.zeros(len(self.best), dtype=int)

    @property
    def running(self) -> bool:
        """Whether better weights may still be found."""
        return bool(self.misses.min() < self.patience)

    @torch.no_grad()
    def update(self, values: np.ndarray, errors: np.ndarray | None = None) -> None:
        """Take the held-out values of the networks after an epoch, and their standard errors."""
        better = values < self.value
        self.value[better] = values[better]
        self.misses = np.where(better, 0, self.misses + 1)
        attributes = self._attributes()
        for i, weights in enumerate(self.net.module_.weights()):
            if better[i]:
                self.best[i] = [*map(torch.clone, weights)]
                self.attributes[i] = attributes[i]

    @torch.no_grad()
    def restore(self) -> None:
        """Restore the weights of every network at its best epoch, if one was evaluated."""
        for i, (best, weights) in enumerate(zip(self.best, self.net.module_.weights())):
            if np.isfinite(self.value[i]):
                for value, tensor in zip(best, weights):
                    tensor.copy_(value)
                for part, own in zip(self.net.module_.own_modules()[i], self.attributes[i]):
                    set_attributes(part, own)

    def _attributes(self) -> list[list[Attributes]]:
        return [[*map(plain_attributes, own)] for own in self.net.module_.own_modules()]


class Plateaus(EarlyStopping):
    """Lower the rate on each plateau, and stop on the last one.

    On a plateau the mean held-out value of the networks has not decreased by `LEAST` of itself for
    `patience` epochs. torch's `ReduceLROnPlateau` does this without an end. Where bins harm, the
    networks that see them lose them on a plateau instead, and the rate stays.
    """

    counts = (*EarlyStopping.counts, "least", "waited", "lowered")

    def __init__(self, net: Any, patience: int, rates: Sequence[float]) -> None:
        super().__init__(net, patience)
        self.rates = rates
        self.least, self.waited, self.lowered = np.inf, 0, 0

    @property
    def running(self) -> bool:
        """Whether the last plateau has not been reached."""
        return self.lowered < len(self.rates)

    def set_rate(self) -> None:
        """Set the rate of the next epoch."""
        set_rate(self.net.optimizer_, self.rates[min(self.lowered, len(self.rates) - 1)])

    def update(self, values: np.ndarray, errors: np.ndarray | None = None) -> None:
        super().update(values)
        mean = float(values.mean())
        self.waited += 1
        if mean < self.least - LEAST * (abs(self.least) if np.isfinite(self.least) else 0):
            self.least, self.waited = mean, 0
        if self.waited >= self.patience:
            self.waited = 0
            if errors is not None and self._drop_bins(values, errors):
                self.least = np.inf
            else:
                self.lowered += 1
        self.set_rate()

    def _drop_bins(self, values: np.ndarray, errors: np.ndarray) -> bool:
        """Whether networks lose their bins: their values are higher by two standard errors.

        Each still has its bins in the end if its best epoch had them.
        """
        masks = [mask for mask in self.net.module_.bin_masks if mask.any()]
        if not masks:
            return False
        sees = masks[0].flatten().numpy(force=True) > 0
        parts = sees, ~sees
        difference = values[sees].mean() - values[~sees].mean()
        noise = np.hypot(*(np.linalg.norm(errors[part]) / part.sum() for part in parts))
        harm = bool(difference > 2 * noise)
        for mask in masks if harm else ():
            mask.zero_()
        return harm


def early_stopping(net: Any, plan: Plan) -> EarlyStopping:
    """What ends a training early."""
    if plan.schedule == "plateau":
        return Plateaus(net, plan.patience, plan.plateau_rates)
    return EarlyStopping(net, plan.patience)
