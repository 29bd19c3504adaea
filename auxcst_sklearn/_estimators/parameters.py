"""Parameters that the networks share: fields of their constructors, with constraints and texts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, Options, StrOptions
from torch import Tensor

from .._training.schedule import OPTIMIZERS, SCHEDULES
from ..losses import LOSSES, Loss
from ..modules._images import TRANSFORMS

COUNT = Interval(Integral, 1, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@dataclass(eq=False, repr=False, kw_only=True)
class NetParameters:
    """Parameters of all networks.

    Parameters
    ----------
    loss : str or Loss, default="bayes_risk"
        Loss of the output, by name or as an object; see :mod:`auxcst_sklearn.losses`. With
        "bayes_risk" and "cross_entropy" the output learns class probabilities, and costs are used
        only in the decision; with "one_sided", the loss of the paper, "smooth_one_sided",
        "softmin" and "squared" it learns the costs. For per-sample costs "bayes_risk" adds a cost
        network of the same shape, which doubles the fit time.
    max_epochs : int, default=50
        Number of passes over the training set.
    learning_rate : float, default=1e-3
        Learning rate of the optimizer; with a schedule, its maximum.
    schedule : {"one_cycle", "constant"} or callable, default="one_cycle"
        How the learning rate changes over `max_epochs`: up during the first tenth and then down to
        zero, along cosines, or not at all; or by the torch scheduler that a function of the
        optimizer returns, after every epoch. `partial_fit` keeps the rate constant.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto" grows with the training set, from 16 to 128 rows.
    optimizer : str, type or callable, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", a subclass of
        ``torch.optim.Optimizer``, or a function of the parameters that returns an optimizer.
        `learning_rate` and `weight_decay` have no effect on the optimizer of a function.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    early_stopping : bool, default=True
        Whether to hold out rows, and keep the weights of the best epoch: the epoch with the least
        held-out loss at its best temperature, or, for losses without class probabilities, with the
        least held-out mean cost. With fewer than ten rows, none are held out.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    validation_fraction : float, default=0.2
        Fraction of the rows that each network holds out. Several networks hold out different
        folds: the rows are split into `n_networks` folds, or into 1 / `validation_fraction` if
        that is more.
    verbose : int or bool, default=0
        Whether to print a line per epoch, with the time left without early stopping.
    warm_start : bool, default=False
        Whether another call to `fit` continues from the current weights, with the same network,
        loss and optimizer; changes of their parameters then have no effect. With one number of
        rows, it also holds out the same rows.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ...; "auto" uses a CUDA GPU if there is one. A training
        set that fills more than half of the free GPU memory stays in host memory.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch: schedules, checkpoints, gradient clipping ... They
        receive rows in the form of the net, so that scores by name (`EpochScoring`) do not work.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
    distributed : {"auto"} or False, default="auto"
        Within an initialised ``torch.distributed`` group of several processes, "auto" distributes
        the training: each process calls `fit` with the same, complete data, and computes its part
        of every mini-batch. False for a separate model in each process.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(LOSSES)), Loss],
        "cost_matrix": ["array-like", None],
        "classes": ["array-like", None],
        "decisions": ["array-like", None],
        "max_epochs": [COUNT],
        "batch_size": [StrOptions({"auto"}), COUNT],
        "learning_rate": [POSITIVE],
        "schedule": [StrOptions(SCHEDULES - {"plateau"}), callable],
        "weight_decay": [NOT_NEGATIVE],
        "optimizer": [StrOptions(set(OPTIMIZERS)), callable],
        "early_stopping": ["boolean"],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "patience": [COUNT],
        "warm_start": ["boolean"],
        "device": [str],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
        "callbacks": [list, tuple, None],
        "net_params": [dict, None],
        "distributed": [StrOptions({"auto"}), Options(bool, {False})],
    }

    loss: str | Loss = "bayes_risk"
    cost_matrix: ArrayLike | None = None
    classes: ArrayLike | None = None
    decisions: ArrayLike | None = None
    max_epochs: int = 50
    learning_rate: float | Literal["auto"] = 1e-3
    schedule: str | Callable[..., Any] = "one_cycle"
    batch_size: int | Literal["auto"] = "auto"
    optimizer: str | Callable[..., Any] = "adamw"
    weight_decay: float = 1e-2
    early_stopping: bool | Literal["auto"] = True
    patience: int | Literal["auto"] = 10
    validation_fraction: float = 0.2
    random_state: int | np.random.RandomState | None = None
    verbose: int | bool = 0
    warm_start: bool = False
    device: str = "auto"
    callbacks: list[Any] | None = None
    net_params: dict[str, Any] | None = None
    distributed: Literal["auto", False] = "auto"


@dataclass(eq=False, repr=False, kw_only=True)
class AuxParameters(NetParameters):
    """Parameters of the networks with auxiliary heads.

    Parameters
    ----------
    aux_loss : str or Loss, default=None
        Loss of the auxiliary heads. If None, it is `loss`.
    temperature : "auto" or float, default="auto"
        Divisor of the logits of the class probabilities; "auto" learns it from the held-out rows.
        Without held-out rows it is 1; losses without class probabilities have none.
    precision : {"float32", "bf16"}, default="float32"
        Number format of the hidden layers' arithmetic; weights, heads and losses are float32.
        "bf16" is faster on processors with instructions for it, and slower on others.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints of the training, from which another call to `fit` with the same data
        and parameters resumes after a crash; the result is the same. "{fit}" in its name is
        replaced by a name for each fit: use it if a search, or ``cv``, fits several models. If
        None, there are no checkpoints.
    checkpoint_every : int, default=1
        Number of epochs between checkpoints.

    Attributes
    ----------
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch: "epoch", "train_loss" (the total), "train_loss_output" and the like
        for each layer in `hidden_layers_` (each head's mean loss), "dur" (seconds), and with early
        stopping the same losses on the held-out rows as "valid_loss...", their mean cost,
        "valid_cost", and with class probabilities "valid_refinement", the loss at the best
        temperature. Numbers are means over the networks. Losses are in units of the mean cost
        above the smallest, "valid_cost" in currency.
    temperature_ : float
        Divisor of the logits of the class probabilities.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetParameters._parameter_constraints,
        "alpha": [NOT_NEGATIVE, "array-like"],
        "aux_loss": [StrOptions(set(LOSSES)), Loss, None],
        "n_networks": [COUNT],
        "temperature": [Interval(Real, 1e-6, None, closed="left"), StrOptions({"auto"})],
        "precision": [StrOptions({"float32", "bf16"})],
        "checkpoint_dir": [str, os.PathLike, None],
        "checkpoint_every": [COUNT],
    }

    aux_loss: str | Loss | None = None
    n_networks: int | Literal["auto"] = 1
    temperature: float | Literal["auto"] = "auto"
    precision: Literal["float32", "bf16"] = "float32"
    checkpoint_dir: str | os.PathLike[str] | None = None
    checkpoint_every: int = 1

    ema_epochs = 0.0  # which only some networks have as a parameter


@dataclass(eq=False, repr=False, kw_only=True)
class ImageParameters(AuxParameters):
    """Parameters of the networks that take images.

    Parameters
    ----------
    channels_last : bool, default=False
        Whether images are (H, W, C) rather than (C, H, W).
    augmentation : {"flip", "shift", "flip_shift"} or callable, default=None
        Random transforms of the training images, drawn again in every epoch: mirror left and right,
        shift by up to 4 pixels, both, or a callable that maps a float tensor (n_samples, C, H, W),
        on the device, to one of the same shape. See :mod:`auxcst_sklearn.modules`.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AuxParameters._parameter_constraints,
        "image_shape": ["array-like", None],
        "channels_last": ["boolean"],
        "augmentation": [StrOptions(set(TRANSFORMS)), callable, None],
    }

    image_shape: Sequence[int] | None = None
    channels_last: bool = False
    augmentation: str | Callable[[Tensor], Tensor] | None = None


# ------------------------------------------------------------------- values for each layer


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
    check_each(weights, name="alpha", interval=NOT_NEGATIVE)
    chosen = np.flatnonzero(weights).tolist()
    return chosen, [weights[i] for i in chosen]


# --------------------------------------------------------------- arguments of the skorch net

RESERVED_NET_PARAMS = {
    "batch_size",
    "callbacks",
    "compile",
    "criterion",
    "dataset",
    "device",
    "iterator_train",
    "iterator_valid",
    "lr",
    "max_epochs",
    "module",
    "optimizer",
    "statistics",
    "train_split",
    "user_callbacks",
    "verbose",
    "warm_start",
}
IGNORED_NET_PARAMS = ("dataset__", "iterator_train__")


def check_callbacks(callbacks: Any) -> list[Any]:
    """Raise an error for what is neither a skorch callback nor a pair of a name and one."""
    for entry in callbacks or []:
        *name, callback = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry,)
        if not all(isinstance(n, str) for n in name) or not hasattr(callback, "on_epoch_end"):
            raise TypeError(
                f"callbacks holds {entry!r}; expected skorch callbacks, or pairs of a name and one."
            )
    return list(callbacks or [])


def check_net_params(net_params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Raise an error for arguments that the estimator sets itself, or would ignore."""
    given = dict(net_params or {})
    if others := [name for name in given if not isinstance(name, str)]:
        raise TypeError(f"net_params has the keys {others}; expected names of skorch's arguments.")
    if reserved := sorted(
        n for n in given if n in RESERVED_NET_PARAMS or n.startswith(IGNORED_NET_PARAMS)
    ):
        raise ValueError(
            f"net_params holds {reserved}, which the estimator sets itself or ignores; use "
            "its parameters, such as learning_rate for lr."
        )
    return given
