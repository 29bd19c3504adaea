"""Nets in files older than format 1: torch modules, pickled within the pickle by skorch."""

from __future__ import annotations

import io
import pickle
from collections import OrderedDict
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from ..losses import Loss
from ..modules._feature_input import FeatureInput, StackedFeatureInput
from .state import FORMAT, saved_arguments

# Everything that a module, its tensors and a loss consist of.
_FUNCTIONS = {
    ("torch._utils", "_rebuild_tensor_v2"),
    ("torch._utils", "_rebuild_parameter"),
    ("torch", "Size"),
    ("torch", "device"),
    ("builtins", "set"),
}


class OlderUnpickler(pickle.Unpickler):
    """Reads modules, losses and tensors, and runs no code that a file asks for."""

    def find_class(self, module: str, name: str) -> Any:
        """A class or function that a module consists of."""
        if (module, name) == ("torch.storage", "_load_from_bytes"):
            return _load_storage
        found = super().find_class(module, name)
        if (module, name) in _FUNCTIONS or found is OrderedDict:
            return found
        if isinstance(found, type) and issubclass(found, (nn.Module, Loss)):
            return found
        if getattr(F, name, None) is found:
            return found
        raise pickle.UnpicklingError(
            f"The file was saved by an earlier state of auxcst_sklearn 0.1.0, and asks for "
            f"{module}.{name}, which is not read for safety. Load it with that state and save it "
            "with this one, or fit the model anew."
        )


def _load_storage(data: bytes) -> Any:
    return torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)


def read_older(state: dict[str, Any]) -> dict[str, Any]:
    """The state of a net as saved by `CostNet`, except its module and objective."""
    parts = OlderUnpickler(io.BytesIO(state["__cuda_dependent_attributes__"])).load()
    _add_bins(parts["module_"])
    return {
        "format": FORMAT,
        "module": parts["module_"],
        "objective": parts["criterion_"],
        "arguments": saved_arguments(state),
        "history": state["history_"],
        "temperature": state.get("temperature", 1.0),
        **{name: state[name] for name in ("callbacks", "scale", "statistics")},
    }


def _add_bins(module: nn.Module) -> None:
    """Set the attributes of bins on modules without bins."""
    for part in module.modules():
        if isinstance(part, FeatureInput) and not hasattr(part, "bins"):
            part.bins = None
            part.register_buffer("sees_bins", torch.ones(()))
        elif isinstance(part, StackedFeatureInput) and not hasattr(part, "sees_bins"):
            part.register_buffer("sees_bins", torch.ones(len(part.get_parameter("table")), 1, 1))
