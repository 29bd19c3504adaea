"""What a few runs of a module show, which is true of all modules that are made alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from ..._checks.calls import error_context
from .._heads import FunctionInput, n_window_means
from .._images import ImageLayer
from .._named_rows import MASK, NamedRows
from ._body import Example, check_rows_apart, close, random_rows
from ._listener import Call, describe
from ._tracing import Trace

# Heads that read all values of feature maps have at most this share of the multiplications of the
# module, and at most this many weights (8 MB). Means of windows bring larger heads below it.
HEADS_SHARE, HEADS_WEIGHTS = 0.2, 2**21


@dataclass(frozen=True)
class Architecture:
    """The hidden layers of a module without its output layer, and what their heads read.

    The output layer was at the positions `removed`; without it, the module returns `features`.
    `calls` return the `hidden_layers` that have heads. `runs` are the numbers of calls of their
    paths, and the outputs of the paths `overwritten` are changed by later layers. `heads` are
    arguments of the cost heads, without a function of the user that they read.
    """

    hidden_layers: tuple[str, ...]
    removed: tuple[str, ...]
    features: tuple[int, ...]
    calls: tuple[Call, ...]
    runs: dict[str, int]
    overwritten: tuple[str, ...]
    heads: tuple[dict[str, Any], ...]

    @classmethod
    def of(
        cls,
        trace: Trace,
        removed: Sequence[str],
        hidden_layers: Sequence[str],
        n_classes: int,
        head_input: str | Callable[[Tensor, Any], Tensor],
        head_gradient: float | None,
    ) -> Architecture:
        """What the run of a module shows that has lost its output layer."""
        calls = tuple(trace.find(name) for name in hidden_layers)
        # Four heads on a module of 10 million multiplications have 2 million weights, and each of
        # them reads 50,000 values for 10 classes.
        n_weights = min(HEADS_SHARE * trace.n_multiplications, HEADS_WEIGHTS)
        n_features = int(n_weights / max(1, len(calls)) / n_classes)  # of each head
        heads = [_head_reads(trace, c, head_input, head_gradient, n_features) for c in calls]
        output: Any = trace.output
        return cls(
            tuple(hidden_layers),
            tuple(removed),
            tuple(output.shape[1:]),
            calls,
            {path: trace.runs(path) for path, _ in calls},
            tuple({call[0] for call in calls if trace.was_overwritten(call)}),
            tuple(heads),
        )

    def without_heads(self) -> Architecture:
        """Return the architecture of a network that has an output only."""
        return replace(self, hidden_layers=(), calls=(), heads=())


def trace_of(body: nn.Module, example: Example, name: str) -> Trace:
    """The run of a module, whose class has some name, without its output layer."""
    replaced = (
        f"The last nn.Linear of {name} is replaced by an identity, so that its forward must "
        "neither read attributes of this layer nor compute with its outputs"
    )
    with error_context(replaced):
        return Trace(body, example)


def check_images_apart(
    body: nn.Module, inputs: ImageLayer, example: Example, trace: Trace, calls: Collection[Call]
) -> None:
    """Check that a module on one array keeps rows apart."""
    two = example.to(trace.dtype) if isinstance(example, Tensor) else None
    # Two equal rows could not show that a module mixes the rows of a batch.
    if two is None or torch.equal(two[0], two[-1]):
        two = random_rows(inputs.out_shape, trace.dtype, 2)
    check_rows_apart(body, two, [two[:1], two[1:]], calls)


def example_of(inputs: ImageLayer | NamedRows, rows: Tensor | None) -> Example:
    """What a module is tried on: some rows as it gets them, or without rows zeros of a shape."""
    if rows is None:
        assert isinstance(inputs, ImageLayer)
        return inputs.out_shape
    training = inputs.training
    example: Example = inputs.eval()(rows)
    inputs.train(training)
    return example


def _head_reads(
    trace: Trace,
    call: Call,
    head_input: str | Callable[[Tensor, Any], Tensor],
    gradient: float | None,
    n_features: int,
) -> dict[str, Any]:
    """Arguments of the head of a hidden layer: what it reads, and the gradient that it sends.

    "auto" reads all values of the feature maps of images, as the paper does, because their mean
    says next to nothing about the class in the first layers. Above `n_features`, it reads means of
    windows, as small as possible. Of sequences, of maps that are too large even so, and where a
    mask leaves the number of steps free, it reads the mean. Such a head sends no gradient into the
    module, which would otherwise learn features whose mean separates the classes. Maps of one
    position are vectors.
    """
    layer: Any = trace.tensor(call)
    shape, axis = tuple(layer.shape[1:]), trace.axis(call)
    reads = {"shape": shape, "axis": axis, "gradient": 1.0 if gradient is None else gradient}
    if callable(head_input):
        # A module of the caller is tried as a copy, which may change.
        tried = FunctionInput(head_input, shape, axis).eval()
        return {**reads, "in_features": _n_features(tried, layer, trace.given)}
    if head_input != "auto":
        return {**reads, "head_input": head_input}
    has_steps = isinstance(trace.given, dict) and MASK in trace.given
    if prod(shape) == shape[axis % (len(shape) + 1) - 1] and not has_steps:
        return {**reads, "head_input": "mean"}
    if axis == 1 and len(shape) > 2 and gradient != 0 and not has_steps:
        for window in range(1, max(shape[1:])):
            if n_window_means(shape, window) <= n_features:
                return {**reads, "head_input": "flatten", "window": window}
    if gradient is None and len(shape) > 1:
        reads["gradient"] = 0.0
    return {**reads, "head_input": "mean"}


@torch.no_grad()
def _n_features(head_input: FunctionInput, layer: Tensor, given: Any) -> int:
    """The number of features that a function of the caller returns, which keeps rows apart."""
    features: Any = head_input(layer, given)
    if not isinstance(features, Tensor) or features.dim() != 2:
        raise ValueError(
            f"head_input returns {describe(features)}; expected features (n_samples, n_features), "
            "a function of the output of a layer and of the inputs of the module."
        )
    first = {name: x[:1] for name, x in given.items()} if isinstance(given, dict) else given[:1]
    differs = not close(head_input(layer[:1], first), features[:1])
    if differs and close(head_input(layer, given), features):  # it is not random
        raise ValueError(
            f"head_input mixes the rows of a batch: of {len(features)} examples, the first one has "
            "other features alone; expected features that depend on their own example only, as by "
            "means over the axes from the second one on."
        )
    return features.shape[1]
