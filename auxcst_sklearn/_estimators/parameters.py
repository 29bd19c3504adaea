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

from .._training.schedule import OPTIMIZERS
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
        Loss of the output: a name or an instance of :mod:`auxcst_sklearn.losses`. With "bayes_risk"
        and "cross_entropy" the output learns class probabilities. With "one_sided" (the paper),
        "smooth_one_sided", "softmin" and "squared" it learns the costs. If costs differ within a
        class, "bayes_risk" adds a second network, which doubles the time of a fit.
    max_epochs : int, default=50
        Maximum number of epochs, or their number without early stopping.
    learning_rate : float, default=1e-3
        Learning rate of the optimizer, or its maximum with a schedule.
    schedule : {"one_cycle", "constant"} or callable, default="one_cycle"
        How the learning rate changes. "one_cycle" increases it during the first tenth of
        `max_epochs` and then decreases it to zero. A function of the optimizer returns a torch
        scheduler, which steps after every epoch.
    batch_size : int or "auto", default="auto"
        Samples per step. If "auto", it grows with the training set, from 16 to 128.
    optimizer : str, type or callable, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", a subclass of
        ``torch.optim.Optimizer``, or a function of the parameters that returns an optimizer. The
        function ignores `learning_rate` and `weight_decay`.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    early_stopping : bool, default=True
        Whether to keep the weights of the epoch with the lowest loss on validation samples (lowest
        mean cost for losses without class probabilities). With fewer than ten samples, there are no
        validation samples.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    validation_fraction : float, default=0.2
        Fraction of the samples that are validation samples of a network. Each network has another
        fold, of `n_networks` folds, or of 1 / `validation_fraction` if that is more.
    random_state : int, RandomState instance or None, default=None
        Determines weights, shuffling, dropout, augmentation and validation samples. Pass an int for
        the same networks on every call.
    verbose : int or bool, default=0
        Whether to print a line per epoch.
    warm_start : bool, default=False
        Whether another call to `fit` continues from the current weights. Parameters of network,
        loss and optimizer then keep their values. If the number of samples is unchanged, so are the
        validation samples.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ... If "auto", a CUDA GPU is used if there is one.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
    distributed : {"auto"} or False, default="auto"
        If "auto", a training in an initialised ``torch.distributed`` group is distributed, and each
        process calls `fit` with the same, complete data. If False, each process has its own model.

    Attributes
    ----------
    training_ : Plan
        The settings of the last training, in which each "auto" is decided: `batch_size`,
        `learning_rate`, `n_networks` and others. `verbose` prints them.
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(LOSSES)), Loss],
        "cost_matrix": ["array-like", None],
        "classes": ["array-like", None],
        "decisions": ["array-like", None],
        "max_epochs": [COUNT],
        "batch_size": [StrOptions({"auto"}), COUNT],
        "learning_rate": [POSITIVE],
        "schedule": [StrOptions({"constant", "one_cycle"}), callable],
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
    learning_rate: float = 1e-3
    schedule: str | Callable[..., Any] = "one_cycle"
    batch_size: int | Literal["auto"] = "auto"
    optimizer: str | Callable[..., Any] = "adamw"
    weight_decay: float = 1e-2
    early_stopping: bool = True
    patience: int = 10
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
        Divisor of the logits of the class probabilities. If "auto", it is learnt from validation
        samples, or 1 without any.
    precision : {"float32", "bf16"}, default="float32"
        Arithmetic of the hidden layers. "bf16" is faster on processors that support it, and slower
        on others.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints. After a crash, `fit` with the same data and parameters resumes from
        it. "{fit}" in its name is replaced by a name for each fit, for searches. If None, there are
        no checkpoints.
    checkpoint_every : int, default=1
        Number of epochs between checkpoints.

    Attributes
    ----------
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch, with means over the networks: "epoch", "train_loss" (the total),
        "train_loss_output" and so on for each layer in `hidden_layers_`, "dur" (seconds). For
        validation samples: "valid_loss" and so on, "valid_cost" (mean cost in currency) and
        "valid_refinement" (loss at the best temperature).
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
    n_networks: int = 1
    temperature: float | Literal["auto"] = "auto"
    precision: Literal["float32", "bf16"] = "float32"
    checkpoint_dir: str | os.PathLike[str] | None = None
    checkpoint_every: int = 1


@dataclass(eq=False, repr=False, kw_only=True)
class ImageParameters(AuxParameters):
    """Parameters of the networks that take images.

    Parameters
    ----------
    channels_last : bool, default=False
        Whether images are (H, W, C) rather than (C, H, W).
    augmentation : {"flip", "shift", "flip_shift"} or callable, default=None
        Random transforms of the training images, drawn again in every epoch: mirror left and right,
        shift by up to an eighth of the smaller side, both, or a callable that maps a float tensor
        (n_samples, C, H, W) on the device to a tensor of the same shape.
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
    values = np.asarray(value).tolist()
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

IGNORED_NET_PARAMS = ("dataset__", "iterator_train__")


def check_net_params(net_params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Raise an error for arguments that the estimator sets itself, or would ignore."""
    given = dict(net_params or {})
    if wrong := [n for n in given if "__" not in n or n.startswith(IGNORED_NET_PARAMS)]:
        raise ValueError(
            f"net_params holds {wrong}, which the estimator sets itself or ignores; expected "
            "arguments of a part of the net, such as optimizer__betas, and for others the "
            "parameters of the estimator, such as learning_rate for lr."
        )
    return given
