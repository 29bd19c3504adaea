"""Hearing a module run: the outputs of its submodules and functions, recorded for heads."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import CheckpointFunction

from .._network import OwnHook

# A call in a run: the path of a submodule, "layer1.0", or of a function, "layer1.0.relu()", and
# which of the calls of this path, counted from 1.
Call = tuple[str, int]


class Listener(TorchFunctionMode):
    """Calls a function with the outputs of submodules and torch functions during a run.

    Hooks exist only within the context, and only for the thread that entered it: the module may run
    in other threads at the same time. `on_call` takes a call, its output, and a function with
    its arguments, or None for a submodule; `only` limits it to some paths, for speed.

    `before` has, for each call of a path, the submodule that returned before it in the same
    forward, by which `number_in` finds the call in another run. The names of these submodules are
    empty unless all are recorded, `with_context`.
    """

    def __init__(
        self,
        module: nn.Module,
        on_call: Callable[[Call, Any, tuple[Any, ...] | None], None],
        only: Collection[str] | None = None,
        with_context: bool = False,
    ) -> None:
        super().__init__()
        self.module, self.on_call, self.only = module, on_call, only
        # The submodule of a function is known only if the calls of all submodules are recorded.
        self.functions = only is None or any(path.endswith("()") for path in only)
        self.with_context = with_context or self.functions
        self.before: defaultdict[str, list[str]] = defaultdict(list)
        self.running: list[Call] = []
        self.returned = [""]  # the last submodule that returned in each running forward
        self.reporting = False

    def __enter__(self) -> Listener:
        self.thread = get_ident()
        self.handles = []
        for path, part in self.module.named_modules():
            if path and (self.with_context or path in (self.only or ())):
                self.handles += [
                    part.register_forward_pre_hook(OwnHook(self._on_entry, path)),
                    part.register_forward_hook(OwnHook(self._on_return)),
                ]
        if self.functions:
            super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: object) -> None:
        if self.functions:
            super().__exit__(*error)  # type: ignore[no-untyped-call]
        for handle in self.handles:
            handle.remove()

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Compute a function, and report it."""
        output = function(*args, **(kwargs or {}))
        if not self.reporting:
            prefix = f"{self.running[-1][0]}." if self.running else ""
            call = self._count(f"{prefix}{function.__name__.strip('_')}()")
            self._report(call, output, (function, args, kwargs or {}))
        return output

    def _on_entry(self, path: str, part: nn.Module, args: Any) -> None:
        if get_ident() == self.thread:
            self.running.append(self._count(path))
            self.returned.append("")

    def _on_return(self, part: nn.Module, args: Any, output: Any) -> None:
        if get_ident() == self.thread:
            call = self.running.pop()
            self.returned.pop()
            self.returned[-1] = call[0] if self.with_context else ""
            self._report(call, output, None)

    def _count(self, path: str) -> Call:
        self.before[path].append(self.returned[-1])
        return path, len(self.before[path])

    def _report(self, call: Call, output: Any, by: tuple[Any, ...] | None) -> None:
        if self.only is not None and call[0] not in self.only:
            return
        self.reporting = True  # computations of on_call are not part of the module
        self.on_call(call, output, by)
        self.reporting = False


def number_in(run: Mapping[str, list[str]], call: Call, expected: list[str]) -> int | None:
    """The number that a call of an earlier run has in another `run`; None if it was skipped.

    In training branches may be added, or skipped at random: then a call is identified by the
    submodule before it, see `Listener.before`, of which `expected` has the path's calls in the
    earlier run. The last step of an unrolled cell is the last of any number of steps.
    """
    (path, number), found, before = call, run.get(call[0], []), expected[call[1] - 1]
    if found == expected or not found:
        return number if found else None
    alike = [i for i, other in enumerate(found, start=1) if other == before]
    n_expected, as_many = expected.count(before), len(found) == len(expected)
    if len(alike) == n_expected == 1:
        return alike[0]
    if before and not run.get(before) and not (as_many and {*found} <= {*expected}):
        return None  # The submodule was skipped, and so was the call.
    if as_many:
        return number
    is_last = (n_expected > 1 or before == path) and before not in expected[number:]
    if is_last and len(run.get(before, [])) >= len(alike):
        return alike[-1] if alike else len(found) if number == len(expected) else None
    raise ValueError(
        f"The hidden layer '{path}:{number}' cannot be told from other calls: {path!r} ran "
        f"{len(found)} times instead of {len(expected)}, as in evaluation. Use a module that runs "
        "nowhere else."
    )


def first_tensor(output: Any) -> Tensor | None:
    """The tensor that is meant by an output: itself, its logits, or the first of several."""
    if isinstance(output, Mapping):  # as of transformers; some have "prediction_logits"
        names = sorted(
            (n for n in output if str(n).endswith("logits")), key=lambda n: n != "logits"
        )
        output = output[names[0]] if names else None
    output = getattr(output, "logits", output)
    if isinstance(output, (list, tuple)):
        if isinstance(output, PackedSequence) or isinstance(next(iter(output), 0), PackedSequence):
            return None
        output = next((part for part in output if isinstance(part, Tensor)), None)
    return output if isinstance(output, Tensor) else None


def version_of(x: Tensor) -> int | None:
    """The number of changes of a tensor in place; None in inference mode, which counts none."""
    try:
        return x._version
    except RuntimeError:
        return None


def run(module: nn.Module, inputs: Tensor | dict[str, Tensor]) -> Any:
    """The output of a module, which takes arrays by name as keyword arguments."""
    return module(**inputs) if isinstance(inputs, dict) else module(inputs)


def describe(value: Any) -> str:
    """Describe an object where a tensor was expected."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"an object of type {type(value).__name__}"


class Recorder:
    """Records the outputs of hidden layers, for heads that are computed after the run.

    Within the run a head would learn nothing where gradients are off, and be computed again by a
    checkpoint. Outputs that are overwritten later are cloned: in training others than in
    evaluation, as by dropout in place, so that all are until all have run in one step.
    """

    def __init__(
        self, before: dict[str, list[str]], overwritten: set[str], *, sends_gradient: bool
    ) -> None:
        self.before, self.overwritten = before, overwritten  # by path, in the trace
        self.sends_gradient, self.is_new = sends_gradient, True
        self.with_context = False  # which takes time, and is needed where numbers of calls differ

    def record(
        self,
        module: nn.Module,
        forward: Callable[[], Tensor],
        calls: Collection[Call],
        training: bool,
    ) -> tuple[Tensor, dict[Call, Tensor]]:
        """What `forward` returns, and the outputs of those calls that it makes."""
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
            returned = forward()
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
                self._note_overwritten(path, was_cloned=is_first)
        if is_first:
            self.is_new = len(found) < len(calls)
        return returned, found

    def _note_overwritten(self, path: str, *, was_cloned: bool) -> None:
        if not was_cloned:
            raise ValueError(
                f"The output of the hidden layer {path!r} was overwritten in place in some steps "
                "of the training. Set inplace=False in the layer that follows."
            )
        # What was kept is a clone, so this step is right, and from now on the layer is always
        # cloned.
        self.overwritten.add(path)


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
