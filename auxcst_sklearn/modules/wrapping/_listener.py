"""Hearing a module run: the outputs of its submodules and functions, recorded for heads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.overrides import TorchFunctionMode

from .._network import OwnHook

# A call in a run: the path of a submodule, "layer1.0", or of a function, "layer1.0.relu()", and
# which of the calls of this path, counted from 1.
Call = tuple[str, int]


class Listener(TorchFunctionMode):
    """Calls a function with the outputs of submodules and torch functions during a run.

    Hooks exist only within the context, and only for the thread that entered it: the module may run
    in other threads at the same time. `on_call` takes a call, its output, and a function with
    its arguments, or None for a submodule; `only` limits it to some paths, for speed. `runs` has
    the number of calls of each path.
    """

    def __init__(
        self,
        module: nn.Module,
        on_call: Callable[[Call, Any, tuple[Any, ...] | None], None],
        only: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        self.module, self.on_call, self.only = module, on_call, only
        # The submodule of a function is known only if the calls of all submodules are recorded.
        self.functions = only is None or any(path.endswith("()") for path in only)
        self.runs: Counter[str] = Counter()
        self.running: list[Call] = []
        self.reporting = False

    def __enter__(self) -> Listener:
        self.thread = get_ident()
        self.handles = []
        for path, part in self.module.named_modules():
            if path and (self.functions or path in (self.only or ())):
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

    def _on_return(self, part: nn.Module, args: Any, output: Any) -> None:
        if get_ident() == self.thread:
            self._report(self.running.pop(), output, None)

    def _count(self, path: str) -> Call:
        self.runs[path] += 1
        return path, self.runs[path]

    def _report(self, call: Call, output: Any, by: tuple[Any, ...] | None) -> None:
        if self.only is not None and call[0] not in self.only:
            return
        self.reporting = True  # computations of on_call are not part of the module
        self.on_call(call, output, by)
        self.reporting = False


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

    def __init__(self, runs: dict[str, int], overwritten: set[str]) -> None:
        self.runs, self.overwritten = runs, overwritten  # by path, in the trace
        self.is_new = True

    def record(
        self,
        module: nn.Module,
        forward: Callable[[], Tensor],
        calls: Collection[Call],
        training: bool,
    ) -> tuple[Tensor, dict[Call, Tensor]]:
        """What `forward` returns, and the outputs of those calls that it makes.

        A path may be skipped, as with LayerDrop. If it runs another number of times than in the
        trace, only its last call is known to be the same, as of a cell that is unrolled over fewer
        steps. Other calls are left out in training, if some were skipped. More calls in training
        are those of a branch that evaluation does not have, which is an error.
        """
        # The first training step clones every output, because only this step can show which of them
        # training overwrites in place.
        is_first = training and self.is_new
        outputs, recorded = dict[Call, Any](), dict[Call, Tensor]()

        def keep(call: Call, output: Any, _: Any) -> None:
            # The version is read now and compared after the run: a larger one means that a later
            # layer has written to the output.
            if (x := first_tensor(output)) is not None:
                kept = _keep(x, is_first or call[0] in self.overwritten)
                outputs[call] = x, version_of(x), kept

        with Listener(module, keep, {path for path, _ in calls}) as listener:
            returned = forward()
        for call in calls:
            path, number = call
            n, expected = listener.runs[path], self.runs[path]
            is_last = number == expected and not (training and n > expected)
            if n not in (0, expected) and not is_last:
                if training and n < expected:
                    continue
                raise ValueError(
                    f"The hidden layer '{path}:{number}' cannot be told from other calls: {path!r} "
                    f"ran {n} times, but {expected} times in evaluation before the training. Give "
                    "hidden_layers submodules that run nowhere else."
                )
            if (output := outputs.get((path, n if is_last else number))) is None:
                continue
            x, version, recorded[call] = output
            if training and version_of(x) != version and path not in self.overwritten:
                self._note_overwritten(path, was_cloned=is_first)
        if is_first:
            self.is_new = len(recorded) < len(calls)
        return returned, recorded

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
