"""Any torch module as a network with cost heads, with random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from fnmatch import fnmatchcase
from inspect import Parameter, signature
from itertools import chain
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.nn.parameter import is_lazy
from torch.overrides import TorchFunctionMode

from .._images import ImageInput
from .._layers import CostHead, SeededModule
from .._network import AuxNetwork
from ._tracing import Call, Listener, Trace, describe

# Of the names of arguments of a user's module, as in skorch.
PREFIX = "module__"

# Rounding differs between one row and several, relative to the largest value.
TOLERANCE = 1e-4

# Dropouts take no generator; the others would, if their callers passed one.
_DROPOUTS = {
    F.dropout: False,
    F.dropout1d: True,
    F.dropout2d: True,
    F.dropout3d: True,
    torch.dropout: False,
}
_DRAWS = {
    torch.bernoulli,
    torch.Tensor.bernoulli,
    torch.Tensor.bernoulli_,
    torch.Tensor.normal_,
    torch.Tensor.uniform_,
}


class WrappedNetwork(SeededModule, AuxNetwork):
    """A module whose last layer is replaced by K cost outputs, with auxiliary heads.

    The module is modified: identities replace its output layer, and a softmax layer after it, so
    that the input of `output` is the last hidden layer. Pass a copy to keep the original. It takes
    floats, or else int64. A submodule named in `hidden_layers` may return any tensor with a row per
    example.
    """

    def __init__(
        self,
        images: ImageInput,
        module: nn.Module,
        n_classes: int,
        *,
        hidden_layers: Sequence[str],
        head_input: Literal["mean", "flatten"] = "mean",
        head_gradient: float = 1.0,
    ) -> None:
        super().__init__()
        self.images = images
        self.body = without_output_layer(module, images.out_shape)
        trace = Trace(self.body, images.out_shape)
        self.hidden_layers = tuple(hidden_layers)
        self._calls = [trace.find(name) for name in hidden_layers]
        for part in self.body.modules():
            if isinstance(part, nn.Conv2d):  # channels last: two thirds of the time on a CPU
                part.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        check_rows_apart(self.body, images.out_shape, self._calls, trace.dtype)
        images.integers = not trace.dtype.is_floating_point
        self._overwritten = {call for call in self._calls if trace.was_overwritten(call)}
        # Heads are initialised last, so that the other weights are the same with and without heads.
        self.output = CostHead(trace.output.shape[1:], n_classes, "flatten")
        self.heads = nn.ModuleDict()
        for i, call in enumerate(self._calls, start=1):
            shape = trace.calls[call].shape[1:]
            self.heads[f"hidden{i}"] = CostHead(shape, n_classes, head_input, head_gradient)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, first hidden layer to output."""
        return (*self.hidden_layers, "output")

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        with self.hidden_precision(x), self._draws():
            return self.output(self.body(self._inputs(x)))

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of those `among` some, in the order of `layers`."""
        x = self._inputs(x)
        named = zip(self.hidden_layers, self._calls, self.heads.values())
        heads = {call: head for name, call, head in named if among is None or name in among}
        read = {}

        def read_head(call: Call, output: Tensor, _: Any) -> None:
            if call in heads:
                read[call] = heads[call](output.clone() if call in self._overwritten else output)

        with (
            self.hidden_precision(x),
            self._draws(),
            Listener(self.body, read_head, only={path for path, _ in heads}),
        ):
            features = self.body(x)
        self._check_run(features, heads.keys() - read.keys())
        return [*(read[call] for call in heads), self.output(features)]

    def _inputs(self, x: Tensor) -> Tensor:
        """Copy images, because the module may write to them and others use them."""
        return self.images(x.clone())

    def _draws(self) -> AbstractContextManager[Any]:
        if self.training and self.generator is not None:
            return SeededDraws(self.generator)
        return nullcontext()

    def _check_run(self, features: Any, missing: Collection[Call]) -> None:
        """Check that the layers that ran when the network was built also run in training."""
        if not isinstance(features, Tensor):
            raise TypeError(
                f"{type(self.body).__name__} returns {describe(features)} in training, and a "
                "tensor else; expected a tensor in both. Switch its auxiliary outputs off."
            )
        for name, call in zip(self.hidden_layers, self._calls):
            if call in missing:
                raise RuntimeError(
                    f"hidden_layers names {name!r}, which did not run this time: the forward of "
                    f"{type(self.body).__name__} skips it. Leave it out of hidden_layers."
                )

    def freeze(self, names: Sequence[str]) -> None:
        """Freeze parts of the module; patterns such as ``"layer[12]"`` match paths.

        A part whose parameters are all frozen runs in evaluation mode, also in training: its
        normalisation keeps its statistics, and its dropout is off.
        """
        parts = {path: part for path, part in self.body.named_modules() if path}
        for name in names:
            matching = [part for path, part in parts.items() if fnmatchcase(path, name)]
            if not matching:
                raise ValueError(
                    f"freeze names {name!r}, which no submodule of {type(self.body).__name__} "
                    f"matches; expected some of {list(parts)}, or patterns of them."
                )
            for part in matching:
                part.requires_grad_(False)

    def train(self, mode: bool = True) -> WrappedNetwork:
        """Switch between training and evaluation; frozen parts always evaluate."""
        super().train(mode)
        for part in self.body.modules():
            trained = [parameter.requires_grad for parameter in part.parameters()]
            if trained and not any(trained):
                part.eval()
        return self


def make_body(
    module: nn.Module | Callable[..., nn.Module],
    shape: tuple[int, ...],
    params: dict[str, Any],
) -> nn.Module:
    """Copy a module, or create one, for examples of some shape."""
    if isinstance(module, nn.Module):
        if params:
            kind = type(module).__name__
            raise ValueError(
                f"{sorted(PREFIX + name for name in params)} are arguments of a class or function, "
                f"but module is a {kind}; expected module={kind}, or no such arguments."
            )
        return deepcopy(module).to("cpu", torch.float32)
    required = [
        name
        for name, parameter in signature(module).parameters.items()
        if parameter.default is Parameter.empty
        and parameter.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    arguments = {**({"input_shape": shape} if "input_shape" in required else {}), **params}
    try:
        signature(module).bind(**arguments)
    except TypeError as error:
        raise TypeError(
            f"module={module!r} cannot be called with the arguments {list(arguments)}: {error}. It "
            f"gets input_shape, if it requires that, and those with the prefix {PREFIX}."
        ) from error
    body = module(**arguments)
    if not isinstance(body, nn.Module):
        raise TypeError(
            f"module={module!r} made an object of type {type(body).__name__}; expected an "
            "nn.Module."
        )
    if not any(map(is_lazy, chain(body.parameters(), body.buffers()))):
        body = deepcopy(body)  # parts of it may be the caller's, or those of another network
    return body.to("cpu", torch.float32)


def without_output_layer(module: nn.Module, shape: Sequence[int]) -> nn.Module:
    """Replace the output layer, and a softmax layer after it, by identities."""
    if isinstance(module, nn.Linear):
        return nn.Identity()
    trace = Trace(module, shape)
    if not isinstance(trace.output, Tensor):
        raise TypeError(
            f"{type(module).__name__} returns {describe(trace.output)}; expected a tensor. Wrap "
            "it in an nn.Module whose forward returns the output of its last nn.Linear alone."
        )
    softmax = last_part(trace, (nn.Softmax, nn.LogSoftmax))
    if softmax is not None:
        remove(module, softmax)
        trace = Trace(module, shape)
    linear = last_part(trace, nn.Linear)
    if linear is None or trace.output.dim() != 2 or trace.runs(linear) > 1:
        raise ValueError(
            f"{type(module).__name__} does not end with an nn.Linear that runs once and gives one "
            f"row per example; it returned {describe(trace.output)}. Leave out what follows the "
            "last nn.Linear in its forward (a functional softmax, say), or add an nn.Linear: it "
            "makes room for the cost outputs."
        )
    remove(module, linear)
    return module


def is_trained(module: nn.Module) -> bool:
    """Whether a module has running statistics, or, without any, weights that torch never draws.

    Those of new convolutions and linear layers are at most the root of 1 / (inputs of a neuron).
    """
    parts = list(module.modules())
    means = [getattr(part, "running_mean", None) for part in parts]
    if any(mean is not None for mean in means):
        return any(bool(mean.any()) for mean in means if mean is not None)
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    weights = [w for part in parts if isinstance(part, kinds) and not is_lazy(w := part.weight)]
    return any(bool(w.detach().abs().max() > 1.001 * w[0].numel() ** -0.5) for w in weights)


def remove(module: nn.Module, path: str) -> None:
    """Replace a submodule, at every position, by an identity."""
    removed = module.get_submodule(path)
    for alias, part in list(module.named_modules(remove_duplicate=False)):
        if part is removed:
            module.set_submodule(alias, nn.Identity())


def last_part(trace: Trace, kinds: type | tuple[type, ...]) -> str | None:
    """Path of the submodule of some kind whose output is that of the module."""
    parts = dict(trace.module.named_modules())
    for call, output in trace.calls.items():
        last = output is trace.output and not trace.was_overwritten(call)
        if last and isinstance(parts.get(call[0]), kinds):
            return call[0]
    return None


def check_rows_apart(
    module: nn.Module,
    shape: Sequence[int],
    calls: Collection[Call],
    dtype: torch.dtype = torch.float32,
) -> None:
    """Raise an error for a module whose output, or that of some calls, mixes rows.

    Sequence-first modules do, for example. Two rows of random numbers are run together and each
    alone, in evaluation mode. A module that cannot compute such rows, or draws random numbers, is
    not checked.
    """
    generator = torch.Generator().manual_seed(0)
    # Between 0 and 2, so that embeddings can use them as indices.
    x = (2 * torch.rand(2, *shape, generator=generator, dtype=torch.float32)).to(dtype)
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        with torch.random.fork_rng(devices=[]):
            traces = [Trace(module, shape, rows) for rows in (x, x, x[:1], x[1:])]
    except ValueError:
        return
    finally:
        for buffer, before in buffers:
            buffer.copy_(before)
    for call in (None, *calls):
        outputs: list[Any] = [t.output if call is None else t.calls.get(call) for t in traces]
        if not all(isinstance(output, Tensor) for output in outputs):
            continue
        found, repeated, *expected = outputs
        if not _close(found, repeated):
            continue
        if len(found) != len(x) or not _close(found, torch.cat(expected)):
            where = "" if call is None else f" in {traces[0].name(call)!r}"
            raise ValueError(
                f"{type(module).__name__} mixes the rows of a batch{where}: two examples of shape "
                f"{tuple(shape)} give {describe(found)}, which differs from the results for each "
                "alone; expected a row per example that depends only on this example. Sequence "
                "modules need batch_first=True, or a transposition in their forward."
            )


def _close(one: Tensor, other: Tensor) -> bool:
    if one.shape != other.shape:
        return False
    scale = other[other.isfinite()].abs().max() if other.isfinite().any() else 0.0
    return torch.allclose(one, other, rtol=0, atol=TOLERANCE * float(scale), equal_nan=True)


class SeededDraws(TorchFunctionMode):
    """Makes dropout, bernoulli, normal_ and uniform_ draw from a generator while a module runs.

    Otherwise they draw from torch's global generator, and two fits in two threads share their
    random numbers. Layers and functions for dropout are covered, and the stochastic depth of
    residual networks. The dropout inside torch's attention and recurrent layers, alpha dropout and
    RReLU are not, because their functions draw outside of Python.
    """

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self.generator = generator

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Compute a function, with the generator if it draws random numbers."""
        kwargs = kwargs or {}
        if function in _DROPOUTS:
            named = {"training" if name == "train" else name: v for name, v in kwargs.items()}
            return self._dropout(*args, **named, whole_maps=_DROPOUTS[function])
        own = kwargs.get("generator")
        if function in _DRAWS and own is None and args[0].device == self.generator.device:
            kwargs = {**kwargs, "generator": self.generator}
        return function(*args, **kwargs)

    def _dropout(
        self,
        input: Tensor,  # noqa: A002
        p: float = 0.5,
        training: bool = True,
        inplace: bool = False,
        *,
        whole_maps: bool,
    ) -> Tensor:
        if not training or p == 0:
            return input
        shape: tuple[int, ...] = input.shape
        if whole_maps:  # (n_samples, n_maps, ...)
            shape = (*shape[:2], *[1] * (len(shape) - 2))
        keep = input.new_empty(shape).bernoulli_(1 - p, generator=self.generator)
        if p < 1:
            keep /= 1 - p
        return input.mul_(keep) if inplace else input * keep
