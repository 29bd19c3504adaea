"""A fast path for predictions on few rows.

Validating one row and passing it through the modules takes longer than its arithmetic. Rows that
need only scaling are passed directly through the functions of the layers, with the same operations
on the same shapes as elsewhere, which gives the same bits. Unusual input returns None, and takes
the general path.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .._training.runtime import FEWEST_MULTIPLICATIONS, thread_limit
from ..modules import AuxMLP, CostHead, SeededDropout
from ..modules._cost_network import ClassAndCostNetwork
from ..modules._stacked import SharedDropout, StackedLinear, StackedMLP, multiply_each

MOST_ROWS = 16
# Fewer rows are padded; see `MIN_PRODUCT_ROWS` of the net, which takes a second to import.
FEWEST_ROWS = 4

Step = Callable[[Tensor], Tensor]
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def predict_few(
    model: Any, X: Any, kind: Literal["to_cost", "probabilities"]
) -> NDArray[np.float64] | None:
    """Costs in units, or probabilities, of few rows; None if they take the general path."""
    net = vars(model).get("net_")
    X = None if net is None else _plain(model, X)
    chain = None if X is None else _chain(net)
    if X is None or chain is None:
        return None
    n = len(X)
    rows = np.zeros((max(n, FEWEST_ROWS), X.shape[1]), np.float32)
    scaling = vars(model).get("_scaling")
    scales = scaling is not None and not scaling.in_network and scaling.moves
    if scales or X.dtype != np.float32:
        with np.errstate(over="ignore"):  # detected below
            rows[:n] = scaling.scaled(X) if scales else X
        if not np.isfinite(rows).all():
            return None
    else:
        rows[:n] = X
    alone = nullcontext() if torch.get_num_threads() == 1 else thread_limit(0)
    with torch.inference_mode(), alone:
        output = chain(net.to_sets(torch.from_numpy(rows)))
        estimate: Tensor = net.mean_of_networks(getattr(net, kind)(output))
        return estimate[:n].numpy().astype(np.float64)


def _plain(model: Any, X: Any) -> NDArray[Any] | None:
    """X as an array, if it is one of finite numbers, or a DataFrame of them with known names."""
    attributes = vars(model)
    names = attributes.get("feature_names_in_")
    if attributes.get("is_categorical_") is not None:
        return None
    values = X if names is None else _named_values(X, names)
    plain = (
        type(values) is np.ndarray
        and values.ndim == 2
        and 0 < len(values) <= MOST_ROWS
        and values.shape[1] == attributes.get("n_features_in_")
        and values.dtype in _FLOATS
        and values.flags.c_contiguous
        and bool(np.isfinite(values).all())
    )
    return values if plain else None


def _named_values(X: Any, names: NDArray[Any]) -> NDArray[Any] | None:
    """The values of a few rows of a pandas DataFrame with these columns."""
    is_pandas = type(X).__module__.partition(".")[0] == "pandas" and X.ndim == 2
    if not is_pandas or len(X) > MOST_ROWS or list(X.columns) != list(names):
        return None
    return np.ascontiguousarray(X.to_numpy())


def _chain(net: Any) -> Chain | None:
    """The chain of a net, which is stored with it; a pickle of the net has none."""
    chain, module = vars(net).get("_chain"), net.module_
    if chain is None or not chain.is_of(module):
        if type(module) not in (AuxMLP, StackedMLP, ClassAndCostNetwork):
            return None
        net._chain = chain = Chain(module)
    small = net.multiplications_per_row * MOST_ROWS < FEWEST_MULTIPLICATIONS
    on_cpu = net.device == "cpu" and not torch.is_autocast_enabled("cpu")
    return chain if chain.steps and small and on_cpu and not module.training else None


class Chain:
    """The functions of the layers of a module, for one thread or several at once.

    They use the parameters of the module itself, so that training changes both. `steps` is empty
    for a module that is not a chain of float32 layers, or has hooks.
    """

    def __init__(self, module: Any) -> None:
        self.module = module
        self.places = [
            (part._modules, name, inner)
            for part in module.modules()
            for name, inner in part._modules.items()
        ]
        hooked = any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
        self.steps = [] if hooked else list(_steps(module))

    def is_of(self, module: Any) -> bool:
        """Whether this chain matches the current state of the module."""
        if module is not self.module or module._forward_hooks or module._forward_pre_hooks:
            return False
        return all(
            inner is own.get(name) and not (inner._forward_hooks or inner._forward_pre_hooks)
            for own, name, inner in self.places
        )

    def __call__(self, x: Tensor) -> Tensor:
        """The output of the module."""
        for step in self.steps:
            x = step(x)
        return x


def _steps(part: Any) -> list[Step]:
    """The functions of a part; none if it does nothing at prediction."""
    if isinstance(part, ClassAndCostNetwork):
        return _beside([part.classes, part.costs])
    if type(part) in (AuxMLP, StackedMLP):
        if part.bf16:
            return []
        return [*_steps(part.inputs), *_all(part.hidden.values()), *_steps(part.output)]
    if isinstance(part, nn.Sequential):
        return _all(part)
    if isinstance(part, nn.Identity | SeededDropout | SharedDropout):
        return []
    if isinstance(part, StackedLinear):
        return [_StackedStep(part)]
    if isinstance(part, nn.SiLU | nn.ReLU):  # in place on the output of the layer before
        return [partial(F.silu if isinstance(part, nn.SiLU) else F.relu, inplace=True)]
    if type(part) in (nn.Linear, CostHead):
        return [_linear(part._parameters)]
    return [part.forward]


def _all(parts: Any) -> list[Step]:
    return [step for part in parts for step in _steps(part)]


def _beside(parts: list[Any]) -> list[Step]:
    """Two networks as one step, with concatenated outputs."""
    chains = [_steps(part) for part in parts]
    if not all(chains):
        return []

    def step(x: Tensor) -> Tensor:
        outputs = []
        for chain in chains:
            r = x
            for inner in chain:
                r = inner(r)
            outputs.append(r)
        return torch.cat(outputs, dim=-1)

    return [step]


def _linear(parameters: Any) -> Step:
    return lambda x: torch.addmm(parameters["bias"], x, parameters["weight"].t())


class _StackedStep:
    """A linear layer of each network, using views of its weights that are made once."""

    def __init__(self, layer: StackedLinear) -> None:
        self.layer, self.parameters = layer, layer._parameters
        self.views: tuple[Any, list[tuple[Tensor, Tensor]]] = (None, [])

    def __call__(self, x: Tensor) -> Tensor:
        weight, bias = self.parameters["weight"], self.parameters["bias"]
        made_of, views = self.views
        now = weight.data_ptr(), bias.data_ptr()  # type: ignore[union-attr]
        if made_of != now:
            views = self.layer.views()
            self.views = now, views  # in one assignment, because another thread may read it
        return multiply_each(x, views)
