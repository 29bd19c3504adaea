"""Parameters that the estimators share: constraints, and resolution of values."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from sklearn.utils._param_validation import Interval, Options, StrOptions

from .._training.runtime import processes
from ..losses import LOSSES, Loss
from ..modules._transforms import TRANSFORMS

# The automatic rate where nothing lowers it.
CONSTANT_RATE = 2e-3
# Beyond so many columns the automatic rate of plateaus is half of the usual one.
MANY_INPUTS = 256
# Beyond each of these numbers of rows, an epoch has more steps, and plateaus are an epoch shorter.
LONG_EPOCHS = 15_000, 50_000, 500_000
# Beyond so many rows, three networks do instead of five, and so do three folds of an ensemble.
MANY_ROWS = 50_000
N_FOLDS, FEW_FOLDS = 5, 3

OPTIMIZERS: dict[str, type[torch.optim.Optimizer]] = {
    "adagrad": torch.optim.Adagrad,
    "adam": torch.optim.Adam,
    "adamax": torch.optim.Adamax,
    "adamw": torch.optim.AdamW,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "rmsprop": torch.optim.RMSprop,
    "sgd": torch.optim.SGD,
}

ALPHA = Interval(Real, 0, None, closed="left")

CONSTRAINTS: dict[str, list[Any]] = {
    "loss": [StrOptions(set(LOSSES)), Loss],
    "cost_matrix": ["array-like", None],
    "classes": ["array-like", None],
    "decisions": ["array-like", None],
    "max_epochs": [Interval(Integral, 1, None, closed="left")],
    "batch_size": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
    "learning_rate": [Interval(Real, 0, None, closed="neither")],
    "schedule": [StrOptions({"constant", "one_cycle"})],
    "weight_decay": [Interval(Real, 0, None, closed="left")],
    "optimizer": [StrOptions(set(OPTIMIZERS)), type],
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
    "patience": [Interval(Integral, 1, None, closed="left")],
    "warm_start": ["boolean"],
    "device": [str],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "callbacks": [list, tuple, None],
    "net_params": [dict, None],
    "distributed": [StrOptions({"auto"}), Options(bool, {False})],
}

# Of the estimators with auxiliary heads.
AUX_CONSTRAINTS: dict[str, list[Any]] = {
    **CONSTRAINTS,
    "alpha": [ALPHA, "array-like"],
    "aux_loss": [StrOptions(set(LOSSES)), Loss, None],
    "n_networks": [Interval(Integral, 1, None, closed="left")],
    "temperature": [Interval(Real, 1e-6, None, closed="left"), StrOptions({"auto"})],
    "precision": [StrOptions({"float32", "bf16"})],
    "checkpoint_dir": [str, os.PathLike, None],
    "checkpoint_every": [Interval(Integral, 1, None, closed="left")],
}

# Of the estimators on images.
IMAGE_CONSTRAINTS: dict[str, list[Any]] = {
    **AUX_CONSTRAINTS,
    "image_shape": ["array-like", None],
    "channels_last": ["boolean"],
    "augmentation": [StrOptions(set(TRANSFORMS)), callable, None],
}

DESCRIPTIONS = """\
Base of the cost-sensitive networks; a subclass builds its torch module.

Descriptions that several networks share:

Parameters
----------
loss : str or Loss, default="bayes_risk"
    Loss of the output, by name or as an object; see :mod:`auxcst_sklearn.losses`. With
    "bayes_risk" and "cross_entropy" the output learns class probabilities, and costs are used
    only in the decision; with "one_sided", the loss of the paper, "smooth_one_sided",
    "softmin" and "squared" it learns the costs. For per-sample costs "bayes_risk" adds a cost
    network of the same shape, which doubles the fit time.
aux_loss : str or Loss, default=None
    Loss of the auxiliary heads; None for the same as `loss`.
batch_size : int or "auto", default="auto"
    Rows per step. "auto" is a 32nd of the training set, at least 16 and at most 128.
weight_decay : float, default=1e-2
    Weight decay of the optimizer.
optimizer : str or type, default="adamw"
    "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
    ``torch.optim.Optimizer``.
early_stopping : bool, default=True
    Whether to hold out rows, and keep the weights of the best epoch: the one with the least
    held-out loss at its best temperature, or, for losses without class probabilities, with the
    least held-out mean cost. With fewer than ten rows, none are held out.
validation_fraction : float, default=0.2
    Fraction of the rows that each network holds out. Several networks hold out different folds:
    the rows are split into `n_networks` folds, or into 1 / `validation_fraction` if that is
    more.
patience : int, default=10
    Number of epochs without improvement of any network after which training stops.
temperature : "auto" or float, default="auto"
    Divisor of the logits of the class probabilities; "auto" learns it from the held-out rows.
    Without held-out rows it is 1; losses without class probabilities have none.
warm_start : bool, default=False
    Whether another call to `fit` continues from the current weights, with the same network,
    loss and optimizer; changes of their parameters then have no effect. With one number of
    rows, it also holds out the same rows.
device : str, default="auto"
    Where to train: "cpu", "cuda", "mps" ...; "auto" uses a CUDA GPU if there is one. A training
    set that fills more than half of the free GPU memory stays in host memory.
precision : {"float32", "bf16"}, default="float32"
    Number format of the hidden layers' arithmetic; weights, heads and losses are float32.
    "bf16" is faster on processors with instructions for it, and slower on others.
checkpoint_dir : str or path-like, default=None
    Folder for checkpoints of the training, from which another call to `fit` with the same data
    and parameters resumes after a crash; the result is the same. "{fit}" in its name is
    replaced by a name for each fit: use it if a search, or ``cv``, fits several models. None
    for no checkpoints.
checkpoint_every : int, default=1
    Number of epochs between checkpoints.
verbose : int or bool, default=0
    Whether to print a line per epoch, with the time left without early stopping.
callbacks : list of skorch callbacks, default=None
    Called during training, as in skorch: schedules, checkpoints, gradient clipping ... They
    receive rows in the form of the net, so that scores by name (`EpochScoring`) do not work.
net_params : dict, default=None
    Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
distributed : {"auto"} or False, default="auto"
    Within an initialised ``torch.distributed`` group of several processes, "auto" distributes
    the training: each process calls `fit` with the same, complete data, and computes its part
    of every mini-batch. False for a separate model in each process.
channels_last : bool, default=False
    Whether images are (H, W, C) rather than (C, H, W).
augmentation : {"flip", "shift", "flip_shift"} or callable, default=None
    Random transforms of the training images, drawn again in every epoch: mirror left and right,
    shift by up to 4 pixels, both, or a callable that maps a float tensor (n_samples, C, H, W),
    on the device, to one of the same shape. See :mod:`auxcst_sklearn.modules`.
max_epochs : int, default=50
    Number of passes over the training set.
schedule : {"one_cycle", "constant"}, default="one_cycle"
    How the learning rate changes over `max_epochs`: up during the first tenth and then down to
    zero, along cosines, or not at all. `partial_fit` keeps it constant.

Attributes
----------
hidden_layers_ : list of str
    Names of the layers that have an auxiliary head.
history_ : list of dict
    One record per epoch: "epoch", "train_loss" (the total), "train_loss_output" and the like
    for each layer in `hidden_layers_` (each head's mean loss), "dur" (seconds), and with early
    stopping the same losses on the held-out rows as "valid_loss...", their mean cost,
    "valid_cost", and with class probabilities "valid_refinement", the loss at the best
    temperature. Numbers are means over the networks. Losses are in units of the mean cost above
    the smallest, "valid_cost" in currency.
temperature_ : float
    Divisor of the logits of the class probabilities.
"""

RESERVED_NET_PARAMS = {
    "batch_size",
    "callbacks",
    "compile",
    "criterion",
    "dataset",
    "device",
    "iterator_train",
    "iterator_valid",
    "max_epochs",
    "module",
    "optimizer",
    "scale",
    "statistics",
    "train_split",
    "user_callbacks",
    "verbose",
    "warm_start",
}
IGNORED_NET_PARAMS = ("dataset__", "iterator_train__")


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw a seed."""
    return int(rng.randint(np.iinfo(np.int32).max))


@dataclass(frozen=True)
class Recipe:
    """The parameters of losses, networks and training, with values where an estimator has none."""

    loss: str | Loss
    max_epochs: int
    batch_size: int | str
    learning_rate: Any
    schedule: str
    weight_decay: float
    optimizer: str | type
    early_stopping: bool
    validation_fraction: float
    patience: int | str
    device: str
    verbose: int | bool
    callbacks: list[Any] | None
    net_params: dict[str, Any] | None
    distributed: Any
    warm_start: bool
    aux_loss: str | Loss | None = None
    n_networks: int | str = 1
    ema_epochs: float = 0.0
    temperature: float | str = 1.0
    combine_heads: bool = False
    precision: str = "float32"
    checkpoint_dir: str | os.PathLike[str] | None = None
    checkpoint_every: int = 1

    @classmethod
    def of(cls, estimator: Any) -> Recipe:
        """The parameters of an estimator."""
        given, names = estimator.get_params(deep=False), [field.name for field in fields(cls)]
        return cls(**{name: given[name] for name in names if name in given})


def check_callbacks(callbacks: Any) -> list[Any]:
    """Raise an error for what is neither a skorch callback nor a pair of a name and one."""
    for entry in callbacks or []:
        *name, callback = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry,)
        if not all(isinstance(n, str) for n in name) or not hasattr(callback, "on_epoch_end"):
            raise TypeError(
                f"callbacks holds {entry!r}; expected skorch callbacks, or pairs of a name and one."
            )
    return list(callbacks or [])


def check_net_params(net_params: dict[str, Any] | None) -> dict[str, Any]:
    """Raise an error for arguments that the estimator sets itself, or would ignore."""
    if others := [name for name in net_params or {} if not isinstance(name, str)]:
        raise TypeError(f"net_params has the keys {others}; expected names of skorch's arguments.")
    reserved = sorted(
        name
        for name in net_params or {}
        if name in RESERVED_NET_PARAMS or name.startswith(IGNORED_NET_PARAMS)
    )
    if reserved:
        raise ValueError(
            f"net_params holds {reserved}, which the estimator sets itself or ignores; use "
            "its parameters of that name, if it has them."
        )
    return net_params or {}


def per_layer(value: Any, n_layers: int, *, name: str, layers: str) -> list[Any]:
    """One value for each layer, from one number for all or a sequence."""
    try:
        values = np.asarray(value).tolist()
    except ValueError:  # some values are lists: checked one by one later
        values = list(value)
    if not isinstance(values, list):
        return [values] * n_layers
    if len(values) != n_layers:
        raise ValueError(
            f"{name}={value!r} has {len(values)} values; expected one number, or {n_layers}: one "
            f"per {layers}."
        )
    return values


def check_each(values: Sequence[Any], *, name: str, interval: Interval) -> None:
    """Check every value of a sequence against the interval of a single number."""
    for value in values:
        if not interval.is_satisfied_by(value):
            raise ValueError(f"{name} holds {value!r}; expected each value to be {interval}.")


def layers_with_head(alpha: Any, n_layers: int, *, layers: str) -> tuple[list[int], list[float]]:
    """Indices of the layers that get a head, those with alpha > 0, and the alphas of the heads."""
    weights = per_layer(alpha, n_layers, name="alpha", layers=layers)
    check_each(weights, name="alpha", interval=ALPHA)
    chosen = [i for i, weight in enumerate(weights) if weight > 0]
    return chosen, [weights[i] for i in chosen]


def resolve_device(device: str) -> str:
    """Check that torch sees the device; "auto" is a GPU, else the CPU.

    In distributed training each process has its own GPU.
    """
    if device in ("auto", "cuda") and torch.cuda.is_available():
        return processes().gpu()
    if device == "auto":
        return "cpu"
    try:
        kind = torch.device(device).type
    except RuntimeError as error:
        raise ValueError(
            f"device={device!r} is not a device of torch; expected 'auto', 'cpu', 'cuda', "
            "'cuda:1', 'mps' ..."
        ) from error
    available: dict[str, Callable[[], bool]] = {
        "cpu": lambda: True,
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "xpu": torch.xpu.is_available,
    }
    if not available.get(kind, lambda: False)():
        raise ValueError(
            f"device={device!r}, but torch sees no such device here; use device='auto' or 'cpu'."
        )
    return device


def optimizer_arguments(optimizer: str | type, weight_decay: float, device: str) -> dict[str, Any]:
    """The optimizer of a skorch net, in its fused version where there is one."""
    cls = OPTIMIZERS[optimizer] if isinstance(optimizer, str) else optimizer
    unfit = (torch.optim.LBFGS, torch.optim.SparseAdam)
    if not issubclass(cls, torch.optim.Optimizer) or issubclass(cls, unfit):
        raise ValueError(
            f"optimizer={optimizer!r} is not an optimizer that steps once per batch of dense "
            f"gradients; expected one of {sorted(OPTIMIZERS)}, or a subclass of "
            "torch.optim.Optimizer (but not LBFGS, which needs a closure, or SparseAdam)."
        )
    accepted = signature(cls).parameters
    arguments: dict[str, Any] = {"optimizer": cls}
    if "weight_decay" in accepted:
        arguments["optimizer__weight_decay"] = float(weight_decay)
    if "fused" in accepted and torch.device(device).type in ("cpu", "cuda"):
        arguments["optimizer__fused"] = True
    return arguments


def resolve_learning_rate(learning_rate: float | str, schedule: str, n_inputs: int) -> float:
    """The first learning rate; that of "auto" for plateaus falls, and suits larger batches.

    With many inputs, such as pixels, the same rate changes the first layer's outputs by more.
    """
    if learning_rate != "auto":
        return float(learning_rate)
    if schedule != "plateau":
        return CONSTANT_RATE
    return 8e-3 if n_inputs <= MANY_INPUTS else 4e-3


def constant_rate(learning_rate: float | str) -> float | None:
    """The rate of plateaus without held-out rows; None for the first one."""
    return CONSTANT_RATE if learning_rate == "auto" else None


def resolve_batch_size(batch_size: int | str, n_samples: int, schedule: str = "constant") -> int:
    """Number of rows per step; "auto" is a 32nd of all rows, 16 to 128: enough steps per epoch.

    The higher rate of "plateau" suits larger batches: 256, and more where an epoch has 200 steps.
    """
    if batch_size != "auto":
        return int(batch_size)
    largest = int(np.clip(n_samples // 200, 256, 512)) if schedule == "plateau" else 128
    return int(np.clip(n_samples // 32, 16, largest))


def resolve_n_networks(n_networks: int | str, n_samples: int) -> int:
    """Number of networks; with many rows, three do."""
    if n_networks != "auto":
        return int(n_networks)
    return FEW_FOLDS if n_samples > MANY_ROWS else N_FOLDS


def resolve_patience(patience: int | str, n_samples: int) -> int:
    """Number of epochs without improvement; "auto" is four, and one where epochs are longest."""
    return 4 - bisect_left(LONG_EPOCHS, n_samples) if patience == "auto" else int(patience)
