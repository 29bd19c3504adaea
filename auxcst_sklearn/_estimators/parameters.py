"""Parameters that networks share, with their constraints, and checks of their values."""

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
from ..costs._reading import CostFunction
from ..losses import LOSSES, Loss
from ..modules._heads import HEAD_INPUTS
from ..modules._images import TRANSFORMS

COUNT = Interval(Integral, 1, None, closed="left")
SHARE = Interval(Real, 0, 1, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


@dataclass(eq=False, repr=False, kw_only=True)
class NetParameters:
    """Parameters of all networks; each estimator describes them."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(LOSSES)), Loss],
        "cost_matrix": ["array-like", callable, None],
        "classes": ["array-like", None],
        "decisions": ["array-like", None],
        "max_epochs": [COUNT],
        "batch_size": [StrOptions({"auto"}), COUNT],
        "learning_rate": [POSITIVE],
        "schedule": [StrOptions({"constant", "one_cycle"})],
        "weight_decay": [NOT_NEGATIVE],
        "optimizer": [StrOptions(set(OPTIMIZERS)), type],
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
    cost_matrix: ArrayLike | CostFunction | None = None
    classes: ArrayLike | None = None
    decisions: ArrayLike | None = None
    max_epochs: int = 50
    learning_rate: float = 1e-3
    schedule: str = "one_cycle"
    batch_size: int | Literal["auto"] = "auto"
    optimizer: str | type = "adamw"
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
    """Parameters of the networks with auxiliary heads."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetParameters._parameter_constraints,
        "alpha": [NOT_NEGATIVE, "array-like", callable],
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
    """Parameters of the networks that take images."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **AuxParameters._parameter_constraints,
        "image_shape": ["array-like", None],
        "channels_last": ["boolean"],
        "augmentation": [StrOptions(set(TRANSFORMS)), callable, None],
        "head_input": [StrOptions({"auto", *HEAD_INPUTS}), callable],
    }

    image_shape: Sequence[int] | None = None
    channels_last: bool = False
    augmentation: str | Callable[[Tensor], Tensor] | None = None
    head_input: str | Callable[[Tensor, Any], Tensor] = "auto"


# ------------------------------------------------------------------- values for each layer


def per_layer(
    value: Any, n_layers: int, *, name: str, interval: Interval, layers: str = "hidden layer"
) -> list[Any]:
    """One value in the interval for each layer, from one number for all or a sequence."""
    values = np.asarray(value).tolist()
    if not isinstance(values, list):
        values = [values] * n_layers
    if len(values) != n_layers:
        raise ValueError(
            f"{name}={value!r} has {len(values)} values; expected one number, or {n_layers}: one "
            f"per {layers}."
        )
    check_each(values, name=name, interval=interval)
    return values


def check_each(values: Sequence[Any], *, name: str, interval: Interval) -> None:
    """Check every value of a sequence against the interval of a single number."""
    for value in values:
        if not interval.is_satisfied_by(value):
            raise ValueError(f"{name} contains {value!r}; expected each value to be {interval}.")


def alpha_of_layers(alpha: Any, n_layers: int, *, layers: str) -> list[float]:
    """The weight of each layer; those with a positive one get a head."""
    if callable(alpha):
        alpha = alpha(n_layers)
    return per_layer(alpha, n_layers, name="alpha", interval=NOT_NEGATIVE, layers=layers)


# --------------------------------------------------------------- arguments of the skorch net

IGNORED_NET_PARAMS = ("dataset__", "iterator_train__")
SET_BY_ESTIMATOR = ("optimizer__lr", "optimizer__weight_decay")


def check_net_params(net_params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Raise an error for arguments that the estimator sets itself, or would ignore."""
    arguments = dict(net_params or {})
    wrong = [
        name
        for name in arguments
        if "__" not in name or name in SET_BY_ESTIMATOR or name.startswith(IGNORED_NET_PARAMS)
    ]
    if wrong:
        raise ValueError(
            f"net_params contains {wrong}, which the estimator sets itself or ignores; expected "
            "arguments of a part of the net, such as optimizer__betas, and for others the "
            "parameters of the estimator, such as learning_rate and weight_decay."
        )
    if not COUNT.is_satisfied_by(n_rows := arguments.get("iterator_valid__batch_size", 1)):
        raise ValueError(f"net_params: iterator_valid__batch_size={n_rows!r}; expected 1 or more.")
    return arguments
