"""The plan of a training: each automatic setting, decided once.

Only this file compares parameters of a training with "auto", and only this file knows which sizes
suit a device. A new default is an argument of `_given`, or one of the functions below, and for a
new setting a field of `Plan`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import torch

from .._checks.calls import warn
from ..costs._statistics import CostStatistics
from ..losses import LOSSES, ProbabilisticLoss
from .processes import processes

# With fewer samples, none are validation samples.
FEWEST_TO_VALIDATE = 10
# Beyond this number of samples, three networks or folds of an ensemble do instead of five.
MANY_ROWS = 50_000
N_FOLDS, FEW_FOLDS = 5, 3

# The rate where nothing lowers it, and the first rate of plateaus; with many inputs, such as
# pixels, the same rate changes the outputs of the first layer by more.
CONSTANT_RATE, PLATEAU_RATE = 2e-3, 8e-3
MANY_INPUTS = 256
# Of a module of the caller: rates of new layers, and of trained weights as a fraction of it; of
# encoders of sequences, whose features need a larger rate for new layers.
MODULE_RATE, PRETRAINED_LR_FACTOR = 1e-3, 0.1
ENCODER_RATE, ENCODER_LR_FACTOR = 5e-3, 0.02

# Largest batch without plateaus, which lower a higher rate; and with them, by the device: a GPU
# computes a step of thousands of samples as fast as one of a few.
LARGEST_BATCH = 128
LARGEST_OF_PLATEAUS, LARGEST_ON_GPU = 512, 4096
# Beyond each of these numbers of samples, an epoch has more steps, and plateaus are an epoch
# shorter.
LONG_EPOCHS = 15_000, 50_000, 500_000
# Rates as fractions of the first one: the next one after each plateau; the last one ends training.
RATES, RATES_OF_LONG_EPOCHS = (1, 1 / 4, 1 / 16), (1, 1 / 8)

# What a CPU predicts at once. Convolutions take longer with more than half a million values, and
# the activations of a transformer take thousands of times the memory of its tokens.
PREDICTED = {"samples": 2**12, "values": 2**19, "steps": 2**14, "words": 2**20}
FEWEST_PREDICTED = 256  # samples, however many networks
# A GPU computes more at once: until the largest output of a module fills this part of its memory,
# but at most this multiple of the batches of the training.
SHARE_OF_MEMORY, MORE_THAN_TRAINING = 1 / 20, 16

Scaling = Literal["none", "each", "as_needed"]

# What later calls of `partial_fit` do with the parameters of an estimator: some act at once, or are
# compared with the costs, and some have no effect on a stream. All others made the net, so that a
# change of them is an error.
AT_ONCE = {
    *("alpha", "batch_size", "callbacks", "classes", "combine_heads", "cost_matrix", "decisions"),
    *("distributed", "dropout", "learning_rate", "temperature", "verbose", "weight_decay"),
}
NOT_IN_STREAMS = {
    *("beta", "checkpoint_dir", "checkpoint_every", "corruption", "device", "early_stopping"),
    *("ema_epochs", "max_epochs", "patience", "pretrain_epochs", "pretrain_learning_rate"),
    *("random_state", "schedule", "validation_fraction", "warm_start"),
}


def parameters_of_net(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an estimator that made its net."""
    return {k: v for k, v in parameters.items() if k not in AT_ONCE | NOT_IN_STREAMS}


# Parameters that some of the networks do not have.
ABSENT: dict[str, Any] = {
    "combine_heads": False,
    "ema_epochs": 0.0,
    "head_gradient": "auto",
    "n_bins": 0,
    "n_networks": 1,
    "precision": "float32",
    "pretrained": False,
    "pretrained_lr_factor": 1.0,
    "standardize": False,
    "temperature": 1.0,
}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Sizes of the data of a training, and what limits the number of samples predicted at once."""

    n_samples: int
    n_inputs: int
    is_sparse: bool = False
    has_validation_set: bool = False
    unit: str = "samples"
    units_per_sample: int = 1


@dataclass(frozen=True, kw_only=True)
class NetworkFacts:
    """What is known of a network before it is built."""

    learns_temperature_alone: bool = False  # which needs validation samples
    module: str | None = None  # The type of the caller's module.
    is_instance: bool = False  # not a function that makes a module
    looks_trained: bool = False
    reads_masks: bool = False  # as encoders of sequences do


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The settings of a training, after "auto" has been decided.

    Attributes
    ----------
    device : str
        Device of the training.
    n_networks : int
        Number of averaged networks.
    batch_size : int
        Samples per step.
    learning_rate : float
        Learning rate of the optimizer, or its maximum with a schedule.
    pretrained_lr_factor : float
        Factor of this rate for the parameters of a pretrained module.
    schedule : str
        Name of the schedule.
    plateau_rates : tuple of float
        With plateaus, the rates as fractions of `learning_rate`.
    max_epochs : int
        Largest number of epochs; 1 for a call of `partial_fit`.
    ema_epochs : float
        Horizon, in epochs, of the average of the weights; 0 for none.
    validates : bool
        Whether some samples of `fit` are validation samples.
    early_stopping : bool
        Whether validation samples determine the best epoch.
    patience : int
        Epochs without improvement, if they do.
    temperature : float or None
        Temperature of the class probabilities; None if validation samples determine it.
    combine_heads : bool or None
        Whether the probabilities are a weighted average of the heads, if validation samples show
        that this is better; None if only heads that send a gradient are averaged.
    head_gradient : float or None
        Factor of the gradient that heads send into the hidden layers; None if it depends on what
        each head reads.
    scaling : {"none", "each", "as_needed"}
        Which columns are centred and scaled: none, each one, or those whose values need it.
    n_bins : int
        Largest number of quantile bins of a column.
    precision : {"float32", "bf16"}
        Arithmetic of the hidden layers.
    predict_rows : int
        Samples that are predicted at once on a CPU; a GPU takes more if its memory allows, unless
        `net_params` has their number.
    stream : bool
        Whether this is a call of `partial_fit`.
    """

    device: str
    n_networks: int
    batch_size: int
    learning_rate: float
    pretrained_lr_factor: float
    schedule: str
    plateau_rates: tuple[float, ...]
    max_epochs: int
    ema_epochs: float
    validates: bool
    early_stopping: bool
    patience: int
    temperature: float | None
    combine_heads: bool | None
    head_gradient: float | None
    scaling: Scaling
    n_bins: int
    precision: str
    predict_rows: int
    stream: bool


def make_plan(
    parameters: Mapping[str, Any],
    sizes: Sizes,
    statistics: CostStatistics,
    device: str,
    network: NetworkFacts | None = None,
    *,
    before: Plan | None = None,
    stream: bool = False,
) -> Plan:
    """The plan of a training with these parameters of an estimator.

    A training that continues keeps what its networks have from the training `before`.
    """
    network = NetworkFacts() if network is None else network
    p, n = SimpleNamespace(**{**ABSENT, **parameters}), sizes.n_samples
    pretrained = _is_pretrained(p, network, is_new=before is None)
    learns = p.temperature == "auto" and _has_probabilities(p.loss)
    has_rows = sizes.has_validation_set or n >= FEWEST_TO_VALIDATE
    # Long training makes small probabilities too small, on which extreme costs depend.
    stops = _given(p.early_stopping, pretrained or statistics.is_extreme, bool)
    stops = stops and has_rows and not stream
    validates = (stops or (learns and network.learns_temperature_alone)) and not stream
    validates = validates and has_rows and not sizes.has_validation_set
    is_validated = validates or (sizes.has_validation_set and not stream)
    n_networks = before.n_networks if before else _n_networks(p, n, network, pretrained, learns)
    rate, factor = _rates(p, sizes, network, pretrained, stops, before)
    learns_now = learns and is_validated
    return Plan(
        device=device,
        n_networks=n_networks,
        batch_size=_batch_size(p, n, stops, device, before if stream else None),
        learning_rate=rate,
        pretrained_lr_factor=factor,
        # Blocks of a stream are trained on at one rate, until a plateau.
        schedule="constant" if stream and p.schedule == "one_cycle" else p.schedule,
        plateau_rates=RATES_OF_LONG_EPOCHS if n > LONG_EPOCHS[0] else RATES,
        max_epochs=1 if stream else p.max_epochs,
        ema_epochs=0.0 if stream else float(p.ema_epochs),
        validates=validates,
        early_stopping=stops,
        # Epochs of many samples have more steps.
        patience=_given(p.patience, 4 - bisect_left(LONG_EPOCHS, n), int),
        # None, if samples or the training before determine it.
        temperature=_given(p.temperature, None if learns_now or before else 1.0),
        # Heads that train no new module are not averaged: their mean over a sequence says little.
        combine_heads=_given(p.combine_heads, True if pretrained else None, bool),
        # Heads that read a pretrained module leave its features as they are.
        head_gradient=_given(p.head_gradient, 0.0 if pretrained else None),
        scaling=before.scaling if before else _scaling(p.standardize, sizes.is_sparse),
        # The first network has no bins.
        n_bins=0 if sizes.is_sparse or n_networks == 1 else int(p.n_bins),
        precision=p.precision,
        predict_rows=before.predict_rows if before else _predict_rows(p, sizes, n_networks),
        stream=stream,
    )


# ---------------------------------------------------------------------------- each default


def _given(value: Any, default: Any, cls: type = float) -> Any:
    """The value of a parameter, or the default where it is "auto"."""
    return default if value == "auto" else cls(value)


def resolve_device(device: str) -> str:
    """The device of a process: "auto" is a GPU, else the CPU.

    In distributed training each process has its own GPU.
    """
    if device in ("auto", "cuda") and torch.cuda.is_available():
        return processes().gpu()
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(
            f"device={device!r}, but torch finds no such GPU; expected 'auto', which is a GPU if "
            "there is one, or 'cpu'."
        )
    return "cpu" if device == "auto" else device


def rows_by_memory(usual: int, batch_size: int, row_nbytes: int, free: int) -> int:
    """Samples of a batch without a gradient on a GPU with `free` bytes of memory.

    `row_nbytes` is the size of the largest output of a module for one sample. A power of two hardly
    ever changes with the free memory, so that repeated fits compute alike.
    """
    fitting = int(free * SHARE_OF_MEMORY) // max(1, row_nbytes)
    return max(usual, min(MORE_THAN_TRAINING * batch_size, 1 << max(0, fitting.bit_length() - 1)))


def n_folds_for(n_samples: int) -> int:
    """Number of networks of tables, and of predicted folds of an ensemble; of many samples, three.

    Each of the networks has one of the folds as validation samples.
    """
    return FEW_FOLDS if n_samples > MANY_ROWS else N_FOLDS


def resolve_n_networks(n_networks: int | str, n_samples: int) -> int:
    """Number of networks of a table."""
    return n_folds_for(n_samples) if n_networks == "auto" else int(n_networks)


def _n_networks(p: Any, n: int, network: NetworkFacts, pretrained: bool, learns: bool) -> int:
    if network.module is None or p.n_networks != "auto":
        return resolve_n_networks(p.n_networks, n)
    return 2 if learns and not pretrained else 1


def _has_probabilities(loss: Any) -> bool:
    return isinstance(LOSSES[loss] if isinstance(loss, str) else loss, ProbabilisticLoss)


def _is_pretrained(p: Any, network: NetworkFacts, *, is_new: bool) -> bool:
    if p.pretrained != "auto":
        return bool(p.pretrained)
    if network.is_instance and not network.looks_trained and p.head_gradient == "auto" and is_new:
        warn(
            f"The weights of module, a {network.module}, are taken for new ones: no norm or bias "
            "shows that they were trained. Set pretrained=True if they were, or pretrained=False "
            "if not."
        )
    return network.looks_trained


def _rates(
    p: Any, sizes: Sizes, network: NetworkFacts, pretrained: bool, stops: bool, before: Plan | None
) -> tuple[float, float]:
    """The rate of the optimizer, and its factor for the parameters of a pretrained module."""
    rate, factor = _default_rates(p, sizes, network, pretrained, stops)
    if p.learning_rate != "auto":
        rate = float(p.learning_rate)
        factor = PRETRAINED_LR_FACTOR if pretrained else 1.0
    factor = _given(p.pretrained_lr_factor, factor)
    return rate, before.pretrained_lr_factor if before else factor


def _default_rates(
    p: Any, sizes: Sizes, network: NetworkFacts, pretrained: bool, stops: bool
) -> tuple[float, float]:
    if network.module is not None:
        if pretrained and network.reads_masks:
            return ENCODER_RATE, ENCODER_LR_FACTOR
        return MODULE_RATE, PRETRAINED_LR_FACTOR if pretrained else 1.0
    # Without validation samples nothing would lower the high first rate of plateaus.
    if p.schedule != "plateau" or not stops:
        return CONSTANT_RATE, 1.0
    return PLATEAU_RATE if sizes.n_inputs <= MANY_INPUTS else PLATEAU_RATE / 2, 1.0


def _batch_size(p: Any, n: int, stops: bool, device: str, earlier: Plan | None) -> int:
    """Samples per step: more for many samples, so that an epoch has enough steps.

    The higher rate of plateaus suits larger batches: 256, and more where an epoch has 200 steps. On
    a GPU an epoch of more samples keeps its 200 steps, because each takes as long as any other.
    """
    if p.batch_size != "auto":
        return int(p.batch_size)
    largest = LARGEST_BATCH
    if p.schedule == "plateau" and stops:
        most = LARGEST_ON_GPU if device.startswith("cuda") else LARGEST_OF_PLATEAUS
        largest = int(np.clip(n // 200, 256, most))
    size = int(np.clip(n // 32, 16, largest))
    # The first block of a stream may be tiny, but then many small steps for later blocks take long.
    return max(size, earlier.batch_size) if earlier else size


def _scaling(standardize: Any, is_sparse: bool) -> Scaling:
    if standardize == "auto":
        return "none" if is_sparse else "as_needed"
    return "each" if standardize else "none"


def _predict_rows(p: Any, sizes: Sizes, n_networks: int) -> int:
    """Samples that are predicted at once: fewer of larger ones, and by more networks."""
    named = (p.net_params or {}).get("iterator_valid__batch_size")
    n = max(1, PREDICTED[sizes.unit] // sizes.units_per_sample) if named is None else int(named)
    return min(n, max(FEWEST_PREDICTED, n // n_networks))
