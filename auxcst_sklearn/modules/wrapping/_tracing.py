"""Finding the hidden layers of any module: run it once, and follow the data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import get_ident
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

# fmt: off
ACTIVATION_FUNCTIONS = {
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid",
    "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
}
# fmt: on

# A call in a run: the path of a submodule, "layer1.0", or of a function, "layer1.0.relu()", and
# which of the calls of this path, counted from 1.
Call = tuple[str, int]


class Listener(TorchFunctionMode):
    """Calls a function with the outputs of submodules and torch functions during a run.

    Hooks exist only within the context, and only for the thread that entered it: the module may run
    in other threads at the same time. `on_call` takes a call, its output, and the arguments of a
    function, or None for a submodule; `only` limits it to some paths, for speed.
    """

    def __init__(
        self,
        module: nn.Module,
        on_call: Callable[[Call, Any, tuple[Any, ...] | None], None],
        only: Collection[str] | None = None,
    ) -> None:
        super().__init__()
        self.module, self.on_call, self.only = module, on_call, only or ()
        # The submodule of a function is known only if all submodules are reported.
        self.functions = only is None or any(path.endswith("()") for path in only)
        self.counts: Counter[str] = Counter()
        self.running: list[Call] = []
        self.reporting = False

    def __enter__(self) -> Listener:
        self.thread = get_ident()
        self.handles = []
        for path, part in self.module.named_modules():
            if path and (self.functions or path in self.only):
                self.handles += [
                    part.register_forward_pre_hook(partial(self._on_entry, path)),
                    part.register_forward_hook(self._on_return),
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
            self._report(call, output, (args, kwargs))
        return output

    def _on_entry(self, path: str, part: nn.Module, args: Any) -> None:
        if get_ident() == self.thread:
            self.running.append(self._count(path))

    def _on_return(self, part: nn.Module, args: Any, output: Any) -> None:
        if get_ident() == self.thread:
            self._report(self.running.pop(), output, None)

    def _count(self, path: str) -> Call:
        self.counts[path] += 1
        return path, self.counts[path]

    def _report(self, call: Call, output: Any, inputs: tuple[Any, ...] | None) -> None:
        self.reporting = True  # computations of on_call are not part of the module
        self.on_call(call, output, inputs)
        self.reporting = False


@dataclass
class Step:
    """A torch function, in a run, whose result depends on the input of the module."""

    function: str
    parents: set[int]
    has_weights: bool
    within: Sequence[Call] = ()
    put_out_by: list[Call] = field(default_factory=list)

    @property
    def ends_layer(self) -> bool:
        """Whether an activation function or a join of branches returns a tensor here."""
        ends = self.function in ACTIVATION_FUNCTIONS or len(self.parents) > 1
        return ends and bool(self.put_out_by)


class Trace:
    """The run of a module on one example of zeros, or on given examples, in evaluation mode.

    A module that accepts no floats, such as one that starts with an embedding, gets integers;
    `dtype` is the accepted type. Lazy parameters get their shapes; nothing else changes. `output`
    is the output of the module, and `calls` holds that of each submodule and function, in order of
    time. A module that cannot compute such an example raises a ValueError.
    """

    def __init__(self, module: nn.Module, shape: Sequence[int], x: Tensor | None = None) -> None:
        self.module = module
        if x is not None:
            self._run(x.clone())
            return
        x = torch.zeros(1, *shape, dtype=torch.float32)
        try:
            self._run(x)
        except ValueError as error:
            try:
                self._run(x.long())
            except ValueError:
                raise error from error.__cause__

    def _run(self, x: Tensor) -> None:
        module, shape = self.module, x.shape[1:]
        self.dtype = x.dtype
        self.calls: dict[Call, Any] = {}
        self._versions: dict[Call, int] = {}
        self._steps = [Step("input", set(), has_weights=False)]
        self._step_of = {id(x): 0}
        self._kept = [x]  # while they exist, no other tensor gets their ids
        self._listener = Listener(module, self._record)
        training = {part: part.training for part in module.modules()}
        module.eval()
        try:
            with torch.no_grad(), self._listener:
                self.output = module(x)
        except Exception as error:
            raise ValueError(
                f"{type(module).__name__} cannot compute an example of shape {tuple(shape)}; "
                "check that X has the shape that it expects (flattened images need image_shape), "
                "and that in evaluation mode no layer needs several examples. "
                f"torch says: {error}"
            ) from error
        finally:
            for part, mode in training.items():
                part.training = mode

    def _record(self, call: Call, output: Any, inputs: tuple[Any, ...] | None) -> None:
        if inputs is not None:
            if output is None and inputs[0]:  # x[...] = y
                output = inputs[0][0]
            self._add_step(call, output, inputs)
        self.calls[call] = output
        if isinstance(output, Tensor):
            self._versions[call] = output._version
            if step := self.step_of(output):
                step.put_out_by.append(call)

    def _add_step(self, call: Call, output: Any, inputs: tuple[Any, ...]) -> None:
        taken = list(_tensors(inputs))
        parents = {self._step_of[id(x)] for x in taken if id(x) in self._step_of}
        if not parents:
            return
        weights = any(x.dim() > 1 and id(x) not in self._step_of for x in taken)
        function = call[0].rpartition(".")[2].removesuffix("()")
        for x in _tensors(output):
            self._step_of[id(x)] = len(self._steps)
            self._kept.append(x)
        self._steps.append(Step(function, parents, weights, tuple(self._listener.running)))

    def step_of(self, x: Tensor) -> Step | None:
        """The step that computed a tensor; None if the tensor does not depend on the example."""
        index = self._step_of.get(id(x))
        return None if index is None else self._steps[index]

    def was_overwritten(self, call: Call) -> bool:
        """Whether something later changed the output of a call in place."""
        return bool(self.calls[call]._version > self._versions[call])

    def runs(self, path: str) -> int:
        """Number of calls of a path."""
        return self._listener.counts[path]

    def name(self, call: Call) -> str:
        """Path of a call, with its number if the path runs more than once."""
        path, number = call
        return path if self.runs(path) == 1 else f"{path}:{number}"

    def find(self, name: str) -> Call:
        """The call with a name; its output must be usable as input of a head."""
        calls = {self.name(call): call for call in self.calls}
        if name not in calls:
            raise ValueError(f"hidden_layers names {name!r}, which {self._why_not(name)}")
        output = self.calls[calls[name]]
        if not isinstance(output, Tensor) or output.dim() < 2 or not output.is_floating_point():
            raise ValueError(
                f"hidden_layers names {name!r}, which puts out {describe(output)}; expected a "
                "tensor of floats with a row per example."
            )
        return calls[name]

    def _why_not(self, name: str) -> str:
        module, path = type(self.module).__name__, name.partition(":")[0]
        if runs := self.runs(path):
            calls = [self.name((path, number + 1)) for number in range(runs)]
            return f"runs {runs} time{'s' * (runs > 1)}; expected one of {calls}."
        if path in dict(self.module.named_modules()):
            return f"is a part of {module}, but does not run in its forward."
        parts = [self.name(call) for call in self.calls if not call[0].endswith("()")]
        return f"is no part of {module}; expected 'auto', or some of {parts}."

    def hidden_layers(self) -> list[Call]:
        """Calls whose outputs are the hidden layers, as `find_hidden_layers` defines them."""
        ends: list[Step] = []
        end, begun, before = None, False, 0
        for index in self._on_every_path():
            if any(step.has_weights for step in self._steps[before + 1 : index + 1]):
                ends += [] if end is None else [end]
                begun, end = True, None
            if begun and self._steps[index].ends_layer:
                end = self._steps[index]
            before = index
        return [self._largest_call(step, ends) for step in ends]

    def _on_every_path(self) -> list[int]:
        """Steps that are on every path from input to output."""
        last = self._step_of.get(id(self.output), 0)
        farthest = {last: last}  # of each step, the last one that needs its output
        for index in range(last, 0, -1):
            if index in farthest:
                for parent in self._steps[index].parents:
                    farthest.setdefault(parent, index)
        found, reach = [], 0
        for index in sorted(farthest):
            if index >= reach:
                found.append(index)
            reach = max(reach, farthest[index])
        return found

    def _largest_call(self, step: Step, ends: list[Step]) -> Call:
        """The largest submodule that returns only this layer; otherwise its function."""
        others = {call for end in ends if end is not step for call in end.within}
        calls = [call for call in step.put_out_by if call in step.within and call not in others]
        return calls[-1] if calls else step.put_out_by[0]


def find_hidden_layers(module: nn.Module, shape: Sequence[int]) -> list[str]:
    """Find the hidden layers of a module by running it on one example of zeros.

    Some steps of a run lie on every path from the input to the output; the branches of a residual
    or an inception block do not. Among those steps, all from one layer of weights up to the next
    (weights in branches included) belong to one hidden layer. Its output is the output of the last
    activation function, or of the last join of branches. So an activation after a layer of weights
    ends a hidden layer, and a residual block counts as one: its sum, or the activation that
    follows the sum.

    Parameters
    ----------
    module : nn.Module
        The module. It is run once, in evaluation mode.
    shape : sequence of int
        Shape of one example.

    Returns
    -------
    list of str
        Path of the largest submodule that returns the hidden layer and contains no other; if there
        is none, the function, as in ``"relu()"`` or ``"block.relu()"``. ``"relu:2"`` is the second
        call of a submodule that runs more than once.

    Raises
    ------
    ValueError
        If the module cannot compute an example of this shape.

    Examples
    --------
    >>> from torch import nn
    >>> from auxcst_sklearn.modules import find_hidden_layers
    >>> module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(),
    ...                        nn.Linear(8, 3))
    >>> find_hidden_layers(module, (4,))
    ['1', '3']
    """
    trace = Trace(module, shape)
    return [trace.name(call) for call in trace.hidden_layers()]


def _tensors(values: Any) -> Iterator[Tensor]:
    """All tensors in nested arguments."""
    if isinstance(values, Tensor):
        yield values
    elif isinstance(values, dict):
        yield from _tensors(tuple(values.values()))
    elif isinstance(values, (list, tuple)):
        for value in values:
            yield from _tensors(value)


def describe(value: Any) -> str:
    """Describe an object where a tensor was expected."""
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    return f"an object of type {type(value).__name__}"
