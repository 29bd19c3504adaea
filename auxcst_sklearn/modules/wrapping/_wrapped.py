"""Any torch module as a network with cost heads, with random numbers of its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from torch.overrides import TorchFunctionMode

from .._heads import CostHead
from .._images import ImageLayer, RandomFlipShift
from .._layers import SeededModule
from .._named_rows import NamedRows
from .._network import AuxNetwork
from ._architecture import Architecture, check_images_apart, example_of, trace_of
from ._body import check_rows_apart, close, without_layers, without_output_layer
from ._listener import Recorder, describe, first_tensor, run

# Fewer input channels do not fill a vector register of AVX-512.
FEW_CHANNELS = 16
# Smaller weights may be gates that training opens.
NEAR_ZERO = 1e-4
# Dropouts take no generator; the others would, if their callers passed one.
_DROPOUTS = {
    F.dropout: False,
    F.dropout1d: True,
    F.dropout2d: True,
    F.dropout3d: True,
    torch.dropout: False,
}
_DRAWS = {
    *(torch.bernoulli, torch.multinomial, torch.normal),
    *(torch.rand, torch.randint, torch.randn, torch.randperm),
    *(torch.Tensor.bernoulli, torch.Tensor.bernoulli_, torch.Tensor.exponential_),
    *(torch.Tensor.normal_, torch.Tensor.random_, torch.Tensor.uniform_),
}
# Older releases of torch pass these no generator.
_DRAWS_LIKE = {torch.rand_like: torch.Tensor.uniform_, torch.randn_like: torch.Tensor.normal_}


class WrappedNetwork(SeededModule, AuxNetwork):
    """A module whose last layer is replaced by K cost outputs, with auxiliary heads.

    The module is modified: identities replace its output layer, and a softmax layer after it, so
    that the input of `output` is the last hidden layer. Pass a copy to keep the original. It takes
    floats, or else int64; or, from `NamedRows`, arrays by name. It is tried on some `rows`, unless
    it is `like` another network. A submodule named in `hidden_layers` may return any tensor with a
    row per example.
    """

    def __init__(
        self,
        inputs: ImageLayer | NamedRows,
        module: nn.Module,
        n_classes: int,
        *,
        hidden_layers: Sequence[str],
        head_input: str | Callable[[Tensor, Any], Tensor] = "auto",
        head_gradient: float | None = None,
        rows: Tensor | None = None,
        like: WrappedNetwork | None = None,
    ) -> None:
        super().__init__()
        self.inputs = inputs
        for part in module.modules():
            if isinstance(part, nn.TransformerEncoder):
                part.use_nested_tensor = False  # which heads cannot read
        example = example_of(inputs, rows)
        # The output layer becomes an identity, so that the module returns the last hidden layer,
        # which the new output layer reads.
        if like is None:
            self.body, removed = without_output_layer(module, example)
            trace = trace_of(self.body, example, type(module).__name__)
            budget = n_classes, head_input, head_gradient
            self.architecture = Architecture.of(trace, removed, hidden_layers, *budget)
        else:
            self.body = without_layers(module, like.architecture.removed, example, like.body)
            known = like.architecture
            self.architecture = known if hidden_layers else known.without_heads()
        self._stays_contiguous = any(map(_needs_contiguous_rows, self.body.modules()))
        self._order_memory()
        if like is None and isinstance(inputs, ImageLayer):
            check_images_apart(self.body, inputs, example, trace, self.architecture.calls)
            inputs.integers = not trace.dtype.is_floating_point
        # Heads are initialised last, so that the other weights are the same with and without heads.
        self.output = CostHead(self.architecture.features, n_classes, "flatten")
        given: Any = {"n_classes": n_classes, "head_input": head_input}
        heads = [CostHead(**{**given, **reads}) for reads in self.architecture.heads]
        self.heads = nn.ModuleDict({f"hidden{i}": head for i, head in enumerate(heads, start=1)})
        self.head_gradient = max([0.0, *(head.gradient for head in heads)])
        self._recorder = Recorder(self.architecture.runs, {*self.architecture.overwritten})
        if like is None and isinstance(inputs, NamedRows) and rows is not None:
            self._check_named_rows(inputs, rows)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._order_memory()

    def _order_memory(self) -> None:
        """Channels last in convolutions, which take two thirds of the time on a CPU.

        Rounding depends on the order, so that a loaded network needs the order of its training.
        """
        for layer in self.body.modules():
            if isinstance(layer, nn.Conv2d) and not self._stays_contiguous:
                layer.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def _check_named_rows(self, inputs: NamedRows, rows: Tensor) -> None:
        """Check that rows are apart; a module whose outputs depend on padding gets all of it.

        Any axis of the length of the mask may be positions, or features of the same number. So the
        module is tried with all of these axes cut, and then with the first ones.
        """
        alone = [row.unsqueeze(0) for row in rows]
        check_rows_apart(self.body, inputs(rows), [*map(inputs, alone)], self.architecture.calls)
        if not inputs.layout.masks:
            return
        every = inputs.layout
        training = self.training
        self.eval()
        for layout in dict.fromkeys((every, every.of_first_axes(every.length(rows.shape[1])))):
            inputs.layout = layout
            if self._may_be_cut(inputs, rows):
                break
        self.train(training)

    def _may_be_cut(self, inputs: NamedRows, rows: Tensor) -> bool:
        """Whether the outputs of rows stay the same if each is cut to its length."""
        # Rows of one token are also tried: a maximum over positions reads padding only in short
        # rows.
        rows, inputs.is_cut = torch.cat([rows, inputs.shorten(rows)]), False
        # Gates that start at zero would hide that a module reads padding, until training opens
        # them.
        with torch.no_grad(), torch.random.fork_rng(devices=[]), open_gates(self.body):
            try:
                full = self.forward_heads(rows)
                inputs.is_cut = True
                each = zip(*(self.forward_heads(row.unsqueeze(0)) for row in rows))
                inputs.is_cut = all(close(torch.cat(part), one) for part, one in zip(each, full))
            except Exception:  # Modules raise errors of any class for other lengths and weights.
                inputs.is_cut = False
        return inputs.is_cut

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, first hidden layer to output."""
        return (*self.architecture.hidden_layers, "output")

    def lengths(self, X: Any) -> Tensor | None:
        """Lengths of rows, by which a batch is cut; None if it is not."""
        return self.inputs.lengths(X) if isinstance(self.inputs, NamedRows) else None

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        with self.hidden_precision(x), self._draws():
            return self.output(self._run(self._own(x)))

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of those `among` some, in the order of `layers`.

        A head whose layer did not run, as with LayerDrop, returns its bias, without a gradient.
        """
        named = zip(self.architecture.hidden_layers, self.architecture.calls, self.heads.values())
        heads = {call: head for name, call, head in named if among is None or name in among}
        with self.hidden_precision(x), self._draws():
            own = self._own(x)
            features, layers = self._recorder.record(
                self.body, lambda: self._run(own), heads, self.training
            )
            outputs = [
                head(layers[call], own)
                if call in layers
                # The head of a skipped layer returns a constant without a gradient, so that the sum
                # of losses keeps its number of terms and the head learns nothing.
                else head.get_parameter("bias").detach().expand(len(features), -1)
                for call, head in heads.items()
            ]
            return [*outputs, self.output(features)]

    def _run(self, own: Any) -> Tensor:
        """The last hidden layer."""
        returned = run(self.body, own)
        if (features := first_tensor(returned)) is None:
            raise TypeError(
                f"{type(self.body).__name__} returns {describe(returned)} in training, and a "
                "tensor else; expected a tensor in both. Switch its auxiliary outputs off."
            )
        return features

    def _own(self, x: Tensor) -> Any:
        """Inputs of the module: copies, because it may write to them and others use them."""
        own = self.inputs(x.clone() if isinstance(self.inputs, ImageLayer) else x)
        return own.contiguous() if self._stays_contiguous and isinstance(own, Tensor) else own

    def _draws(self) -> AbstractContextManager[Any]:
        if self.training and self.generator is not None:
            return SeededDraws(self.generator)
        return nullcontext()

    def train(self, mode: bool = True) -> WrappedNetwork:
        """Switch between training and evaluation; frozen parts always evaluate."""
        super().train(mode)
        for layer in self.body.modules():
            # Otherwise the running statistics of a frozen normalisation would drift with the
            # batches.
            trained = [parameter.requires_grad for parameter in layer.parameters()]
            if trained and not any(trained):
                layer.eval()
        return self


class MirroredNetwork(WrappedNetwork):
    """A network on images; where training mirrors them, outputs are means over both images."""

    @property
    def mirrors(self) -> bool:
        """Whether outputs are means; in evaluation only."""
        augmentation = getattr(self.inputs, "augmentation", None)
        return not self.training and isinstance(augmentation, RandomFlipShift) and augmentation.flip

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        return self._mean(super().forward(x))

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of those `among` some, in the order of `layers`."""
        return [*map(self._mean, super().forward_heads(x, among))]

    def _own(self, x: Tensor) -> Any:
        own = super()._own(x)
        return torch.cat([own, own.flip(-1)]) if self.mirrors else own

    def _mean(self, outputs: Tensor) -> Tensor:
        if not self.mirrors:
            return outputs
        return outputs.view(2, -1, outputs.shape[-1]).mean(dim=0)


def _needs_contiguous_rows(part: nn.Module) -> bool:
    """Whether a convolution must not compute with channels last.

    With them, oneDNN's gradient of a strided convolution of one pixel with few input channels
    writes beyond its memory: wrong weights, or a crash (oneDNN issue 6035).
    """
    if not isinstance(part, nn.Conv2d) or part.in_channels >= FEW_CHANNELS:
        return False
    return part.kernel_size == (1, 1) and max(part.stride) > 1


@contextmanager
def open_gates(module: nn.Module) -> Iterator[None]:
    """Random numbers for weights near zero, such as gates, which hide what training opens."""
    changed = []
    for parameter in module.parameters():
        if parameter.is_floating_point() and (near := parameter.abs() < NEAR_ZERO).any():
            changed.append((parameter, parameter.clone()))
            parameter.add_(near * torch.randn_like(parameter))
    try:
        yield
    finally:
        for parameter, value in changed:
            parameter.copy_(value)


class SeededDraws(TorchFunctionMode):
    """Makes dropout, bernoulli, rand, randn and others draw from a generator while a module runs.

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
        if kwargs.get("generator") is None and function in _DRAWS_LIKE:
            function, args, kwargs = _DRAWS_LIKE[function], (torch.empty_like(*args, **kwargs),), {}
        if kwargs.get("generator") is None and function in _DRAWS:
            given = first_tensor((*args, *kwargs.values()))
            made = torch.empty(0, device=kwargs.get("device")) if given is None else given
            if made.device == self.generator.device:
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
