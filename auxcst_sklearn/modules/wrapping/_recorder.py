"""The outputs of hidden layers in a run, for heads that are computed after it."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointFunction

from ._listener import Call, Listener, first_tensor, number_in, version_of
from ._tracing import Trace


class Output(NamedTuple):
    """The output of a call, its version in that moment, and what is kept of it for a head."""

    layer: Tensor
    version: int | None
    kept: Tensor

    @property
    def was_overwritten(self) -> bool:
        """Whether something later changed the output in place."""
        return version_of(self.layer) != self.version


class Recorder:
    """Records the outputs of hidden layers, for heads that are computed after the run.

    In the call of a layer a head would learn nothing where gradients are off, and would be computed
    twice by a checkpoint. `names` are those of the calls in evaluation mode, which were traced;
    heads may send a `gradient` into them.
    Outputs that are overwritten later are cloned. Training may overwrite others than evaluation, as
    dropout in place does, so that all are cloned until all have run in one step.
    """

    def __init__(self, trace: Trace, names: Mapping[Call, str], *, gradient: bool) -> None:
        self.names, self.gradient = dict(names), gradient
        self.before = {path: trace.before(path) for path, _ in names}
        self.overwritten = {call[0] for call in names if trace.was_overwritten(call)}
        # A submodule that runs once is told by its path.
        self.with_context = any(
            path.endswith("()") or len(before) > 1 for path, before in self.before.items()
        )
        self.was_trained = False

    def record(
        self, module: nn.Module, run: Callable[[], Tensor], calls: Collection[Call], training: bool
    ) -> tuple[Tensor, dict[Call, Tensor]]:
        """What `run` returns, and the outputs of those calls that it makes."""
        is_first = training and not self.was_trained
        sends = self.gradient and torch.is_grad_enabled()
        outputs: defaultdict[str, list[Output | None]] = defaultdict(list)

        def keep(call: Call, output: Any, _: Any) -> None:
            if sends and not torch.is_grad_enabled() and _is_in_checkpoint():
                raise ValueError(
                    f"The hidden layer {self.names.get(call, call[0])!r} runs in a re-entrant "
                    "checkpoint, within which heads get no gradient. Set use_reentrant=False."
                )
            layer, clones = first_tensor(output), is_first or call[0] in self.overwritten
            outputs[call[0]].append(None if layer is None else _keep(layer, clones))

        with_context = is_first or self.with_context
        with Listener(module, keep, {path for path, _ in calls}, with_context) as listener:
            returned = run()
        found = dict[Call, Tensor]()
        for call in calls:
            number = self._number(call, listener)
            output = outputs[call[0]][number - 1] if number else None
            if output is None:
                continue
            found[call] = output.kept
            if training and output.was_overwritten and call[0] not in self.overwritten:
                if not is_first:
                    raise ValueError(
                        f"The output of the hidden layer {self.names[call]!r} was overwritten in "
                        "place in some steps of the training. Set inplace=False in what follows."
                    )
                self.overwritten.add(call[0])
        if is_first:
            self.was_trained = len(found) == len(self.names)
            self.with_context |= any(
                len(listener.before[path]) > len(before) for path, before in self.before.items()
            )
        return returned, found

    def _number(self, call: Call, listener: Listener) -> int | None:
        """The number of a call in a run."""
        expected = self.before[call[0]]
        try:
            return number_in(listener.before, call, expected if listener.with_context else [""])
        except LookupError as error:
            raise ValueError(
                f"The hidden layer {self.names[call]!r} cannot be told from other calls: its path "
                f"{error}, as in evaluation. Give the layer a module that runs nowhere else, or "
                "leave it out of hidden_layers."
            ) from error


def _keep(layer: Tensor, clones: bool) -> Output:
    """What a head reads: a copy of what later functions overwrite, with gradients of its own."""
    version = version_of(layer)
    if version is None:
        with torch.inference_mode(False):
            return Output(layer, version, layer.clone())
    if clones:
        return Output(layer, version, layer.clone())
    # A view of now takes its gradient in the same order as a head that is computed now.
    return Output(layer, version, layer.view_as(layer) if torch.is_grad_enabled() else layer)


def _is_in_checkpoint() -> bool:
    """Whether a re-entrant checkpoint, whose weights are trained without gradients here, runs."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code is not CheckpointFunction.forward.__code__:
        frame = frame.f_back
    return frame is not None
