"""The outputs of hidden layers in a run, for heads that are computed after it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import CheckpointFunction

from ._listener import Call, Listener, first_tensor, number_in, version_of
from ._tracing import Trace


class Recorder:
    """Records the outputs of hidden layers, for heads that are computed after the run.

    Within the run a head would learn nothing where gradients are off, and be computed again by a
    checkpoint. Outputs that are overwritten later are cloned: in training others than in
    evaluation, as by dropout in place, so that all are until all have run in one step.
    """

    def __init__(self, trace: Trace, calls: Collection[Call], *, sends_gradient: bool) -> None:
        # A call is identified by the submodule that returned before it, because its number differs
        # between training and evaluation where a path is skipped or repeated.
        self.before = {path: trace.before(path) for path, _ in calls}
        self.overwritten = {call[0] for call in calls if trace.was_overwritten(call)}
        self.sends_gradient, self.is_new = sends_gradient, True
        self.with_context = False  # which takes time, and is needed where numbers of calls differ

    def record(
        self, module: nn.Module, run: Callable[[], Tensor], calls: Collection[Call], training: bool
    ) -> tuple[Tensor, dict[Call, Tensor]]:
        """What `run` returns, and the outputs of those calls that it makes."""
        # The first training step clones every output, because only this step can show which of them
        # training overwrites in place.
        is_first = training and self.is_new
        sends = self.sends_gradient and torch.is_grad_enabled()
        outputs, found = dict[Any, Any](), dict[Call, Tensor]()

        def keep(call: Call, output: Any, _: Any) -> None:
            if sends and not torch.is_grad_enabled() and _is_in_checkpoint():
                raise ValueError(
                    f"The hidden layer {call[0]!r} runs in a re-entrant checkpoint, within which "
                    "heads get no gradient. Set use_reentrant=False."
                )
            # The version is read now and compared after the run: a larger one means that a later
            # layer has written to the output.
            if (x := first_tensor(output)) is not None:
                kept = _keep(x, is_first or call[0] in self.overwritten)
                outputs[call] = x, version_of(x), kept

        with_context = is_first or self.with_context or not training
        with Listener(module, keep, {path for path, _ in calls}, with_context) as listener:
            returned = run()
        before, expected = listener.before, self.before
        # A path that did not run at all was skipped, as with LayerDrop. Only a path that ran
        # another number of times has calls whose numbers have lost their meaning.
        differs = [path for path in expected if len(before[path]) not in (0, len(expected[path]))]
        self.with_context |= bool(training and differs)
        for call in calls:
            path, number = call[0], None if call[0] in differs else call[1]
            if listener.with_context:
                number = number_in(before, call, expected[path])
            if (output := outputs.get((path, number))) is None:
                continue
            x, version, found[call] = output
            if training and version_of(x) != version and path not in self.overwritten:
                if not is_first:
                    raise ValueError(
                        f"The output of the hidden layer {path!r} was overwritten in place in some "
                        "steps of the training. Set inplace=False in the layer that follows."
                    )
                # What was kept is a clone, so this step is right, and from now on the layer is
                # always cloned.
                self.overwritten.add(path)
        if is_first:
            self.is_new = len(found) < len(calls)
        return returned, found


def _keep(x: Tensor, clones: bool) -> Tensor:
    if x.is_inference():
        with torch.inference_mode(False):
            return x.clone()
    if clones or not torch.is_grad_enabled():
        return x.clone() if clones else x
    return x.view_as(x)  # which gets its gradient in the order of a head that is computed now


def _is_in_checkpoint() -> bool:
    """Whether a re-entrant checkpoint runs, whose weights are trained without gradients here."""
    frame: Any = sys._getframe()
    while frame is not None and frame.f_code is not CheckpointFunction.forward.__code__:
        frame = frame.f_back
    return frame is not None
