"""Networks and losses as numpy arrays and plain values: the content of an estimator's file."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from skorch.callbacks import Callback
from torch import Tensor, nn
from torch.nn.utils import parametrize

from ..losses import Loss
from ..modules._network import OF_EVERY_MODULE, OwnHook

# Format of the files that this version writes and reads. Increase it for a change of a state.
FORMAT = 4


@dataclass
class TensorState:
    """The values of a tensor, and if it is a parameter, whether it is trained."""

    values: np.ndarray
    trained: bool | None


@dataclass
class ObjectState:
    """A module, or a loss that contains tensors: its class and its attributes."""

    kind: Any
    attributes: Any


def check_format(number: Any) -> None:
    """Raise an error for files of another version."""
    if number != FORMAT:
        raise ValueError(
            f"The model was saved in format {number} by another version of auxcst_sklearn; this "
            f"one reads format {FORMAT}. Load it with the version that saved it, or fit it anew."
        )


def to_state(value: Any, states: dict[int, tuple[Any, Any]] | None = None) -> Any:
    """Modules, losses and tensors in a value as states; one that occurs twice has one state.

    `states` keep what they are states of: while it exists, no other object gets its id.
    """
    states = {} if states is None else states
    if id(value) in states:
        return states[id(value)][1]
    if isinstance(value, Tensor):
        states[id(value)] = value, _tensor_state(value)
        return states[id(value)][1]
    if _is_taken_apart(value):
        state = ObjectState(parametrize.type_before_parametrizations(value), None)
        states[id(value)] = value, state
        state.attributes = to_state(_attributes(value, state.kind), states)
        return state
    if type(value) in (dict, OrderedDict):
        items = [pair for pair in [*value.items()] if not isinstance(pair[1], OwnHook)]
        return type(value)((key, to_state(item, states)) for key, item in items)
    if type(value) in (list, tuple, torch.Size):
        cls = list if isinstance(value, list) else tuple
        return cls(to_state(item, states) for item in value)
    return value


def from_state(value: Any, values: dict[int, Any] | None = None) -> Any:
    """Restore the value from a state of `to_state`; tensors have their own memory."""
    values = {} if values is None else values
    if id(value) in values:
        return values[id(value)]
    if isinstance(value, TensorState):
        tensor = torch.from_numpy(np.array(value.values))
        trained = value.trained
        values[id(value)] = tensor if trained is None else nn.Parameter(tensor, trained)
    elif isinstance(value, ObjectState):
        restored = values[id(value)] = value.kind.__new__(value.kind)
        if isinstance(restored, nn.Module):
            nn.Module.__init__(restored)
            restored.__setstate__(from_state(value.attributes, values))
            _restore_class(restored)
        else:  # a frozen dataclass
            vars(restored).update(from_state(value.attributes, values))
    elif type(value) in (dict, OrderedDict):
        return type(value)((key, from_state(item, values)) for key, item in value.items())
    elif type(value) in (list, tuple):
        return type(value)(from_state(item, values) for item in value)
    return values.get(id(value), value)


def saved_arguments(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a net, from its attributes: those that differ from skorch's defaults."""
    usual = signature(NeuralNet.__init__).parameters
    saved = {
        name: value
        for name, value in attributes.items()
        if (name in usual and value is not usual[name].default)
        or ("__" in name and name[0] != "_")  # such as optimizer__betas
    }
    for name in ("module", "criterion", "callbacks"):
        saved.pop(name, None)
    return {**saved, "device": attributes["device"], "optimizer": attributes["optimizer"]}


def without_training_state(callbacks: list[Any]) -> list[Any]:
    """Copies without the state of a training, such as the optimizer of a schedule."""
    copies = []
    for entry in callbacks:
        *name, callback = entry if isinstance(entry, tuple) else (entry,)
        if isinstance(callback, Callback):
            fresh = object.__new__(type(callback))
            fresh.__dict__ = {k: v for k, v in vars(callback).items() if not k.endswith("_")}
            callback = fresh
        copies.append((*name, callback) if name else callback)
    return copies


def _is_taken_apart(value: Any) -> bool:
    if isinstance(value, nn.Module):  # some user-defined modules have their own method
        return type(value).__reduce_ex__ is object.__reduce_ex__ and (
            type(value).__reduce__ is object.__reduce__
        )
    return isinstance(value, Loss) and any(isinstance(v, Tensor) for v in vars(value).values())


def _restore_class(part: nn.Module) -> None:
    """The class with parametrized weights that torch makes for each module, and does not pickle."""
    if not parametrize.is_parametrized(part):
        return
    parametrizations: Any = part.parametrizations
    del part.parametrizations
    for name in parametrizations:
        part.register_buffer(name, torch.empty(0))
        parametrize.register_parametrization(part, name, nn.Identity(), unsafe=True)
    part.parametrizations = parametrizations


def _attributes(value: Any, cls: type) -> dict[str, Any]:
    """Attributes of a loss, or of a module, without those that every new module has."""
    if not isinstance(value, nn.Module):
        return vars(value)
    get: Any = cls.__getstate__  # that of a parametrized module's own class raises an error
    usual = dict(OF_EVERY_MODULE)
    attributes = {k: v for k, v in get(value).items() if k not in usual or v != usual[k]}
    if parametrize.is_parametrized(value):
        attributes.pop("_load_state_dict_pre_hooks", None)  # of weight_norm: for names of old files
    return attributes


def _tensor_state(tensor: Tensor) -> TensorState | Tensor:
    try:
        values = tensor.detach().cpu().numpy()
    except (TypeError, RuntimeError):  # bfloat16, sparse ...: torch's own method
        return tensor
    return TensorState(values, tensor.requires_grad if isinstance(tensor, nn.Parameter) else None)
