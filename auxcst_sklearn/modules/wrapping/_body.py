"""The caller's module: a copy, its output layer, whether it is trained, and keeps rows apart."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from inspect import Parameter, signature
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from ..._checks.calls import warn
from .._network import copy_of
from ._listener import Call, describe
from ._tracing import Trace

# Of the names of arguments of a user's module, as in skorch.
PREFIX = "module__"

# Rounding differs between one row and several, relative to the largest value.
TOLERANCE = 1e-4
# Rows of random numbers, on which a module is run with and without its output layer.
N_TRIED = 16

# Layers of which torch draws the biases within known bounds.
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)

# What a module is run on: the shape of an example, or rows, perhaps of arrays by name.
Example = Sequence[int] | Tensor | dict[str, Tensor]


def make_body(
    module: nn.Module | Callable[..., nn.Module], shape: Any, params: dict[str, Any]
) -> nn.Module:
    """Copy a module, or create one, for examples of some shape; None for arrays by name."""
    if isinstance(module, nn.Module):
        if params:
            cls = type(module).__name__
            raise ValueError(
                f"{sorted(PREFIX + name for name in params)} are arguments of a class or function, "
                f"but module is a {cls}; expected module={cls}, or no such arguments."
            )
        return copy_of(module).to("cpu", torch.float32)
    required = [
        name
        for name, parameter in signature(module).parameters.items()
        if parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    is_wanted = "input_shape" in required and shape is not None
    arguments = {**({"input_shape": shape} if is_wanted else {}), **params}
    body = module(**arguments)
    if not isinstance(body, nn.Module):
        raise TypeError(
            f"module={module!r} made an object of type {type(body).__name__}; expected an "
            "nn.Module."
        )
    # The caller or another network may hold its parts.
    return copy_of(body).to("cpu", torch.float32)


def is_trained(module: nn.Module) -> bool:
    """Whether a module has weights of norms, or biases, that no new module has.

    In new modules they are 0, or the same number for all channels; biases may also be smaller than
    the root of 1 / (inputs of a neuron), as torch draws them. Other weights say nothing: they may
    have any distribution. Nor do running means: a constructor may have run the module.
    """
    for layer in module.modules():
        weight, bias = getattr(layer, "weight", None), getattr(layer, "bias", None)
        if not isinstance(weight, Tensor) or is_lazy(weight):
            continue
        if weight.dim() < 2 and "norm" in type(layer).__name__.lower():
            if _varies(weight) or (isinstance(bias, Tensor) and bool(bias.any())):
                return True
        elif isinstance(bias, Tensor) and isinstance(layer, LAYERS):
            largest_drawn = 1.001 * weight[0].numel() ** -0.5
            if _varies(bias) and bool(bias.abs().max() > largest_drawn):
                return True
    return False


def _varies(values: Tensor) -> bool:
    return bool(values.min() < values.max())


# ------------------------------------------------------------------------ the output layer


def without_output_layer(module: nn.Module, example: Example) -> tuple[nn.Module, list[str]]:
    """Replace the output layer, and a softmax layer after it, by identities, at some positions.

    The output layer is the last ``nn.Linear`` of whose rows the output is a selection or a mean.
    """
    if isinstance(module, nn.Linear):
        return nn.Identity(), [""]
    trace, removed = Trace(module, example), list[str]()
    if trace.output is None:
        raise TypeError(
            f"{type(module).__name__} returns {describe(trace.returned)}; expected a tensor, an "
            "object with logits, or a tuple whose first tensor is meant. Wrap it in an nn.Module "
            "whose forward returns the output of its last nn.Linear."
        )
    if (softmax := _last_part(trace, (nn.Softmax, nn.LogSoftmax))) is not None:
        if trace.runs(softmax) > 1:
            raise ValueError(
                f"{type(module).__name__} ends with the softmax {softmax!r}, which is left out "
                f"here, but runs {trace.runs(softmax)} times; expected a softmax of its own at the "
                "end, or none."
            )
        removed += _remove(module, softmax)
        trace = Trace(module, example)
    if trace.output is not None and trace.output.dim() == 2:
        linear = _last_part(trace, nn.Linear)
        if linear is not None and trace.runs(linear) == 1:
            return module, removed + _remove(module, linear)
        has_rows = isinstance(example, Tensor | dict)
        rows = example if has_rows else random_rows(example, trace.dtype, N_TRIED)
        if positions := _remove_selected(module, trace, rows):
            return module, removed + positions
    raise ValueError(
        f"{type(module).__name__} does not end with an nn.Linear that gives one row per example; "
        f"it returned {describe(trace.output)}. Leave out what follows the last nn.Linear in its "
        "forward (a functional softmax, say), or add an nn.Linear: it makes room for the cost "
        "outputs."
    )


def _remove_selected(module: nn.Module, trace: Trace, rows: Example) -> list[str]:
    """Remove the last linear layer that can as well be applied to the rows that are selected.

    Returns its positions; none without such a layer.
    """
    parts = dict(module.named_modules())
    linears = [path for path, _ in trace.calls if isinstance(parts.get(path), nn.Linear)]
    expected = Trace(module, rows).output
    for path in dict.fromkeys(reversed(linears)):
        linear = parts[path]
        # As in the last token of a language model: Linear(x)[:, -1] equals Linear(x[:, -1]), so
        # that the layer can be taken away, and applied to what the rest of the module selects.
        positions = _remove(module, path)
        try:
            output = Trace(module, rows).output
            with torch.no_grad():
                if output is not None and output.dim() == 2 and close(linear(output), expected):
                    return positions
        except (RuntimeError, ValueError):  # the rest of the module needs this layer
            pass
        for position in positions:
            module.set_submodule(position, linear)
    return []


def random_rows(shape: Any, dtype: torch.dtype, n_rows: int) -> Tensor:
    """Rows of random numbers."""
    generator = torch.Generator().manual_seed(0)
    # Between 0 and 2, so that embeddings can use them as indices.
    return (2 * torch.rand(n_rows, *shape, generator=generator)).to(dtype)


def _remove(module: nn.Module, path: str) -> list[str]:
    """Replace a submodule, at every position, by an identity; return the positions."""
    removed = module.get_submodule(path)
    parts = list(module.named_modules(remove_duplicate=False))
    positions = [alias for alias, part in parts if part is removed]
    for alias in positions:
        module.set_submodule(alias, nn.Identity())
    return positions


def without_layers(
    module: nn.Module, positions: Sequence[str], example: Example, like: nn.Module
) -> nn.Module:
    """Replace the layers at the positions that another module, of one architecture, has lost."""
    if any(map(is_lazy, chain(module.parameters(), module.buffers()))):
        Trace(module, example)  # gives them shapes
    if isinstance(module, nn.Linear):  # which is the output layer itself
        module = nn.Identity()
    with suppress(AttributeError):  # of a module without such a position, which is another one
        for position in filter(None, positions):
            module.set_submodule(position, nn.Identity())
    shapes, expected = ([p.shape for p in one.parameters()] for one in (module, like))
    if shapes != expected:  # A random factory may make other ones.
        raise ValueError(
            "module made networks of different layers or sizes; expected networks that differ "
            "only in their weights. Set n_networks=1, or make them alike."
        )
    return module


def _last_part(trace: Trace, kinds: type | tuple[type, ...]) -> str | None:
    """Path of the submodule of some kind whose output the module returns."""
    parts = dict(trace.module.named_modules())
    for call, output in trace.calls.items():
        last = output is trace.output and not trace.was_overwritten(call)
        if last and isinstance(parts.get(call[0]), kinds):
            return call[0]
    return None


# ---------------------------------------------------------------------------- rows apart


def check_rows_apart(
    module: nn.Module, together: Example, alone: Sequence[Example], calls: Collection[Call]
) -> None:
    """Raise an error for a module whose output, or the output of some calls, mixes rows.

    Sequence-first modules do, for example. Rows are run together and each alone, in evaluation
    mode. A module that cannot compute them, or draws random numbers, is not checked.
    """
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        with torch.random.fork_rng(devices=[]):
            paths = {path for path, _ in calls}
            traces = [Trace(module, rows, paths) for rows in (together, together, *alone)]
    except ValueError:
        return
    finally:
        for buffer, before in buffers:
            buffer.copy_(before)
    for call in (None, *calls):
        outputs: list[Any] = [
            t.output if call is None else t.tensor(call) if call in t.calls else None
            for t in traces
        ]
        if not all(isinstance(output, Tensor) for output in outputs):
            continue
        found, repeated, *expected = outputs
        if not close(found, repeated):
            if call is None:
                warn(
                    f"{type(module).__name__} draws random numbers in evaluation mode: the same "
                    "samples get different outputs, so that predictions are random. Pass "
                    "training=self.training to torch.nn.functional.dropout, or use nn.Dropout."
                )
            continue
        n = len(alone)
        if len(found) == n and any(part.shape[1:] != found.shape[1:] for part in expected):
            continue  # sequences of other lengths
        if len(found) != n or not close(found, torch.cat(expected)):
            where = "" if call is None else f" in {traces[0].name(call)!r}"
            raise ValueError(
                f"{type(module).__name__} mixes the rows of a batch{where}: {n} examples together "
                f"give {describe(found)}, which differs from the results for each alone; expected "
                "a row per example that depends only on this example. Sequence modules need "
                "batch_first=True, or a transposition in their forward."
            )


def close(one: Tensor, other: Any) -> bool:
    """Whether two tensors differ by no more than rounding."""
    if not isinstance(other, Tensor) or one.shape != other.shape:
        return False
    scale = other[other.isfinite()].abs().max() if other.isfinite().any() else 0.0
    return torch.allclose(one, other, rtol=0, atol=TOLERANCE * float(scale), equal_nan=True)
