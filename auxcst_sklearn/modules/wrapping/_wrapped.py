"""Any torch module as a network with cost heads."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatchcase
from typing import Any, Literal

import torch
from torch import Tensor, nn

from .._heads import CostHead
from .._image_input import ImageInput
from .._layers import SeededModule
from .._network import AuxNetwork
from ._listener import Call, Listener
from ._randomness import SeededDraws
from ._row_check import check_rows_apart
from ._tracing import Trace, describe


class WrappedNetwork(SeededModule, AuxNetwork):
    """A module whose last layer is replaced by K cost outputs, with auxiliary heads.

    The module is modified: identities replace its output layer, and a softmax layer after it, so
    that the input of `output` is the last hidden layer. Pass a copy to keep the original.

    Parameters
    ----------
    images : ImageInput
        First layer; its `out_shape` is that of an example for the module.
    module : nn.Module
        Takes floats (n_samples, ...), or else int64, and ends with an ``nn.Linear``.
    n_classes : int
        Number K of costs that each head estimates.
    hidden_layers : sequence of str
        Names of the layers that get a head, in the order of the network, as returned by
        `find_hidden_layers`. A submodule given by its path may return any tensor with a row per
        example.
    head_input : {"pool", "flatten"}, default="pool"
        Input of a head on feature maps (n_samples, n_channels, ...): the mean of each, or every
        value.

    Raises
    ------
    TypeError
        If the module does not return a tensor.
    ValueError
        If it cannot compute such examples, mixes those of a batch, does not end with an
        ``nn.Linear``, or a hidden layer does not exist, does not run or does not return a tensor.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from auxcst_sklearn.modules._image_input import ImageInput
    >>> from auxcst_sklearn.modules.wrapping import WrappedNetwork
    >>> module = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 16),
    ...                        nn.ReLU(), nn.Linear(16, 1000))
    >>> network = WrappedNetwork(ImageInput((1, 8, 8)), module, 3, hidden_layers=["1"])
    >>> network.layers
    ('1', 'output')
    >>> [tuple(r.shape) for r in network.forward_heads(torch.zeros(5, 1, 8, 8))]
    [(5, 3), (5, 3)]
    """

    def __init__(
        self,
        images: ImageInput,
        module: nn.Module,
        n_classes: int,
        *,
        hidden_layers: Sequence[str],
        head_input: Literal["pool", "flatten"] = "pool",
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
            self.heads[f"hidden{i}"] = CostHead(shape, n_classes, head_input)

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, first hidden layer to output."""
        return (*self.hidden_layers, "output")

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        with self.hidden_precision(x), self._draws():
            output: Tensor = self.output(self.body(self._inputs(x)))
            return output

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head, in the order of `layers`."""
        x = self._inputs(x)
        heads = dict(zip(self._calls, self.heads.values()))
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
        self._check_run(features, read)
        return [*(read[call] for call in heads), self.output(features)]

    def _inputs(self, x: Tensor) -> Tensor:
        """Copy images, because the module may write to them and others use them."""
        images: Tensor = self.images(x.clone())
        return images

    def _draws(self) -> AbstractContextManager[Any]:
        if self.training and self.generator is not None:
            return SeededDraws(self.generator)
        return nullcontext()

    def _check_run(self, features: Any, read: dict[Call, Tensor]) -> None:
        """Check that the layers that ran when the network was built also run in training."""
        if not isinstance(features, Tensor):
            raise TypeError(
                f"{type(self.body).__name__} returns {describe(features)} in training, and a "
                "tensor else; expected a tensor in both. Switch its auxiliary outputs off."
            )
        for name, call in zip(self.hidden_layers, self._calls):
            if call not in read:
                raise RuntimeError(
                    f"hidden_layers names {name!r}, which did not run this time: the forward of "
                    f"{type(self.body).__name__} skips it. Leave it out of hidden_layers."
                )

    def freeze(self, names: Sequence[str]) -> None:
        """Freeze parts of the module; patterns such as ``"layer[12]"`` match paths.

        A part whose parameters are all frozen runs in evaluation mode, also in training: its
        normalisation keeps its statistics, and its dropout is off.

        Parameters
        ----------
        names : sequence of str
            Paths of parts, or patterns of paths, in the given module.

        Raises
        ------
        ValueError
            If a name matches nothing.
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
