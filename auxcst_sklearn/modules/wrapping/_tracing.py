"""A run of any module: the data that pass through its functions and submodules."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ._listener import Call, Listener, describe, first_tensor, run, version_of

# fmt: off
ACTIVATION_FUNCTIONS = {
    "celu", "elu", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "logsigmoid", "mish", "prelu", "relu", "relu6", "rrelu", "selu", "sigmoid",
    "silu", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold",
}
# fmt: on
CHANNELS_FIRST = {
    *(f"conv{transposed}{d}d" for transposed in ("", "_transpose") for d in (1, 2, 3)),
    "batch_norm",
    "group_norm",
    "instance_norm",
}
RECURRENT = {"gru", "lstm", "rnn_relu", "rnn_tanh"}
CHANNELS_LAST = {*RECURRENT, "embedding", "linear", "multi_head_attention_forward"}
# Norms leave the axis where it is.
NORMS = {"layer_norm", "rms_norm"}
RESHAPES = {"reshape", "unflatten", "view"}
# Functions that may move axes although the shape stays; ``x.mT`` and its like call "get".
PERMUTATIONS = {"get", "moveaxis", "movedim", "permute", "swapaxes", "swapdims", "t", "transpose"}
# Joining parts of one tensor, as Swin does to halve its maps, does not make new data.
SELECTIONS = (
    "chunk contiguous flatten flip getitem index_select narrow pad roll select split squeeze "
    "unbind unsqueeze"
)
PARTS = RESHAPES | PERMUTATIONS | set(SELECTIONS.split())
JOINS = {"add", "cat", "concat", "concatenate", "hstack", "iadd", "stack", "sub", "vstack"}
# Inputs that only weigh features, such as adjacency matrices, make no path of their own.
WEIGHTINGS = {"baddbmm", "bmm", "div", "einsum", "imul", "matmul", "mm", "mul", "truediv"}


@dataclass
class Step:
    """A torch function, in a run, whose result depends on the input of the module.

    It `is_data` if weights are on the way from the input: masks and lengths are computed without.
    Floats that are computed without weights, or comparisons, are raw data;
    `raw_inputs` are the arrays from which the raw data that it takes are computed. `origin` is the
    step of whose result it returns parts, or itself; `sources` are the origins of its parents.
    """

    function: str
    parents: set[int]
    has_weights: bool
    is_data: bool
    raw_inputs: set[int] = field(default_factory=set)
    is_raw: bool = False
    within: Sequence[Call] = ()
    put_out_by: list[Call] = field(default_factory=list)
    sources: set[int] = field(default_factory=set)
    origin: int = 0

    @property
    def ends_layer(self) -> bool:
        """Whether an activation, a join of branches or a recurrent layer returns a tensor here."""
        joins = len(self.sources if self.function in JOINS else self.parents) > 1
        ends = self.function in ACTIVATION_FUNCTIONS or joins
        return (ends or self.function in RECURRENT) and bool(self.put_out_by)


class Trace:
    """The run of a module in evaluation mode: on given examples, or on one of zeros of a shape.

    A module that accepts no floats, such as one that starts with an embedding, gets integers;
    `dtype` is the accepted type. Lazy parameters get their shapes; nothing else changes. `given` is
    what the module got, `returned` what it returned, and `output` the tensor that is meant by it.
    `calls` contains what each submodule and function returned, in order of time; with `only` some
    paths, nothing else is noted. A module that cannot compute such an example raises a ValueError.
    """

    dtype = torch.float32
    n_multiplications = 0.0  # of linear layers and convolutions, for one example

    def __init__(
        self,
        module: nn.Module,
        example: Sequence[int] | Tensor | dict[str, Tensor],
        only: Collection[str] | None = None,
    ) -> None:
        self.module, self.only = module, only
        if isinstance(example, dict):
            self._run({name: x.clone() for name, x in example.items()})
            return
        x = example if isinstance(example, Tensor) else torch.zeros(1, *example)
        try:
            self._run(x.clone())
        except ValueError as error:
            try:
                self._run(x.long())
            except ValueError:
                raise error from error.__cause__

    def _run(self, x: Tensor | dict[str, Tensor]) -> None:
        module, given, self.given = self.module, _tensors(x), x
        self.dtype = given[0].dtype
        self.n_rows = len(given[0])
        self.calls: dict[Call, Any] = {}
        self.steps = [Step("input", set(), has_weights=False, is_data=False, is_raw=True)]
        self._versions: dict[Call, int | None] = {}
        self._step_of = {id(x): 0 for x in given}
        self._inputs = {id(x): {i} for i, x in enumerate(given)}
        self.touched = set[int]()  # inputs that weights or sums have touched
        self._axes: dict[int, int] = {}
        # Tensors are distinguished by their ids, for which `_step_of` has the number of a step.
        weights = [*module.parameters(), *(b for b in module.buffers() if b.is_floating_point())]
        self._weights = {*map(id, weights)}
        self._kept = [*given, *weights]  # while they exist, no other tensor gets their ids
        self._listener = Listener(module, self._record, self.only)
        training: dict[Any, bool] = {part: part.training for part in module.modules()}
        nested = [part for part in training if getattr(part, "use_nested_tensor", False)]
        for part in nested:  # which have no shape
            part.use_nested_tensor = False
        module.eval()
        try:
            with torch.no_grad(), self._listener:
                self.returned = run(module, x)
        except Exception as error:
            raise ValueError(_refusal(module, x, error)) from error
        finally:
            for part, mode in training.items():
                part.training = mode
            for part in nested:
                part.use_nested_tensor = True
        self.output = first_tensor(self.returned)

    def _record(self, call: Call, output: Any, by: tuple[Any, ...] | None) -> None:
        if by is not None:
            if output is None and by[1]:  # x[...] = y
                output = by[1][0]
            if self.only is None:
                self._add_step(call, output, *by)
        self.calls[call] = output
        if (meant := first_tensor(output)) is not None:
            self._versions[call] = version_of(meant)
            if (index := self.index_of(meant)) is not None:
                self.steps[index].put_out_by.append(call)

    def _add_step(self, call: Call, output: Any, function: Any, args: Any, kwargs: Any) -> None:
        taken = _tensors((args, kwargs))
        data = [x for x in taken if id(x) in self._step_of]
        is_weight = any(id(x) in self._weights for x in taken)
        if not data:
            if is_weight:  # such as its transpose
                self._keep(output, self._weights.add)
            return
        # A product with a matrix of weights makes data; adding a bias, or a scale of one value,
        # does not.
        weighs = any(x.dim() > 1 and id(x) in self._weights for x in taken)
        parents = {self._step_of[id(x)] for x in data}
        is_data = weighs or any(self.steps[parent].is_data for parent in parents)
        raw = [x for x in data if x.is_floating_point() and self.steps[self._step_of[id(x)]].is_raw]
        inputs = set[int]().union(*(self._inputs[id(x)] for x in data))
        raw_inputs = set[int]().union(*(self._inputs[id(x)] for x in raw))
        name = call[0].rpartition(".")[2].removesuffix("()")  # "layer1.0.relu()" is "relu"
        index = len(self.steps)
        self._keep(output, lambda key: self._step_of.__setitem__(key, index))
        self._keep(output, lambda key: self._inputs.__setitem__(key, inputs))
        if weighs or (is_data and name not in WEIGHTINGS):
            self.touched |= raw_inputs
        is_raw = len(raw) == len(data) and not is_data
        within = tuple(self._listener.running)
        step = Step(name, parents, weighs, is_data, raw_inputs, is_raw, within)
        step.sources = {self.steps[parent].origin for parent in parents}
        regroups = name in PARTS | JOINS and len(step.sources) == 1
        step.origin = step.sources.copy().pop() if regroups else index
        self.steps.append(step)
        if weighs and (name == "linear" or name.startswith("conv")):
            weight = next(x for x in taken if x.dim() > 1 and id(x) in self._weights)
            # Every position of an output channel takes all weights of the channel.
            self.n_multiplications += output.numel() * weight[0].numel() / self.n_rows
        for x in _tensors(output):
            if (axis := self._axis(x, name, function, args, kwargs, data)) is not None:
                self._axes[id(x)] = axis

    def _keep(self, output: Any, note: Callable[[int], Any]) -> None:
        for x in _tensors(output):
            note(id(x))
            self._kept.append(x)

    def _axis(self, output: Tensor, name: str, *by: Any) -> int | None:
        """The axis of the channels of an output, by weights or by the tensors it is made of."""
        function, args, kwargs, data = by
        axis = None
        if name == "matmul":  # by weights on the right or on the left
            if any(isinstance(x, nn.Parameter) for x in args[1:]):
                axis = output.dim() - 1
            elif args and isinstance(args[0], nn.Parameter):
                axis = max(output.dim() - 2, 1)
        elif output.dim() == 2 or name in CHANNELS_FIRST:
            axis = 1
        elif name == "einsum":
            axis = self._axis_of_einsum(output, *args)
        elif name in CHANNELS_LAST:
            axis = output.dim() - 1
        known = [(x, self._axes[id(x)]) for x in data if id(x) in self._axes]
        if axis is None and not known and name in NORMS:
            axis = output.dim() - 1
        if axis is not None or not known:
            return axis
        # The stream of a residual network is older than the branch that is added to it.
        x, axis = min(known, key=lambda pair: self._step_of[id(pair[0])])
        if len(_tensors((args, kwargs))) == 1 and args and args[0] is x:
            return moved_axis(lambda y: function(y, *args[1:], **kwargs), name, x, axis, output)
        return axis if x.dim() == output.dim() else None

    def _axis_of_einsum(self, output: Tensor, equation: Any, *operands: Any) -> int | None:
        """The axis of the only letter that weights alone contain, as o in "oi,nis->nos"."""
        letters, _, kept = str(equation).replace(" ", "").partition("->")
        of_weights, of_data = set[str](), set[str]()
        for part, x in zip(letters.split(","), operands):
            (of_weights if id(x) in self._weights else of_data).update(part)
        new = (of_weights - of_data) & {*kept}
        if len(new) != 1:
            return None
        before, _, after = kept.partition(new.pop())
        return len(before) if "." in after else output.dim() - 1 - len(after)

    def axis(self, call: Call) -> int:
        """The axis of the channels in the output of a call.

        Where the layers of weights before it leave that open, the next one decides.
        """
        output = self.tensor(call)
        if output is None or id(output) in self._axes or output.dim() == 2:
            return self._axes.get(id(output), 1)
        reached = {self.index_of(output)}
        for index, step in enumerate(self.steps):
            if step.parents & reached:
                reached.add(index)
                if step.has_weights:
                    is_last = step.function not in CHANNELS_FIRST and output.dim() == 3
                    return output.dim() - 1 if is_last else 1
        return 1

    def tensor(self, call: Call) -> Tensor | None:
        """The tensor that is meant by the output of a call; None if there is none."""
        return first_tensor(self.calls[call])

    def index_of(self, x: Tensor | None) -> int | None:
        """Number of the step that computed a tensor; None if it does not depend on the example."""
        return self._step_of.get(id(x))

    def was_overwritten(self, call: Call) -> bool:
        """Whether something later changed the output of a call in place."""
        output = self.tensor(call)
        return output is not None and version_of(output) != self._versions[call]

    def runs(self, path: str) -> int:
        """Number of calls of a path."""
        return self._listener.runs[path]

    def name(self, call: Call) -> str:
        """Path of a call, with its number if the path runs more than once."""
        path, number = call
        return path if self.runs(path) == 1 else f"{path}:{number}"

    def usable(self) -> list[str]:
        """Names of the calls, but the output layer, whose outputs are floats with a row each."""
        outputs = {call: self.tensor(call) for call in self.calls}
        rows = {c: x for c, x in outputs.items() if x is not None and x is not self.output}
        rows = {c: x for c, x in rows.items() if x.dim() > 1 and len(x) == self.n_rows}
        return [self.name(call) for call, x in rows.items() if x.is_floating_point()]

    def find(self, name: str) -> Call:
        """The call with a name; its output must be usable as input of a head."""
        calls = {self.name(call): call for call in self.calls}
        if name not in calls:
            raise ValueError(
                f"hidden_layers names {name!r}, which is not a layer that runs in the forward of "
                f"{type(self.module).__name__}; expected 'auto', or some of {self.usable()}."
            )
        output = self.tensor(calls[name])
        if output is None or output.dim() < 2 or not output.is_floating_point():
            raise ValueError(
                f"hidden_layers names {name!r}, which puts out "
                f"{describe(self.calls[calls[name]] if output is None else output)}; expected a "
                "tensor of floats with a row per example."
            )
        return calls[name]


def _refusal(module: nn.Module, x: Tensor | dict[str, Tensor], error: Exception) -> str:
    """Why a module cannot compute its example, and what to do."""
    if isinstance(x, dict):
        shape: Any = {name: tuple(part.shape[1:]) for name, part in x.items()}
        remedy = "that its forward takes these arrays, and no more, by their names"
    else:
        shape = tuple(x.shape[1:])
        remedy = (
            "that X has the shape that it expects (flattened images need image_shape, and series "
            "an axis for the channel, X[:, np.newaxis])"
        )
    return (
        f"{type(module).__name__} cannot compute an example of shape {shape}; check {remedy}, and "
        f"that in evaluation mode no layer needs several examples. torch says: {error}"
    )


def _tensors(values: Any) -> list[Tensor]:
    """All tensors in nested arguments."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        return _tensors((*values.values(),))
    if not isinstance(values, (list, tuple)):
        return []
    return [tensor for value in values for tensor in _tensors(value)]


def moved_axis(
    move: Callable[[Tensor], Any], name: str, x: Tensor, axis: int, output: Tensor
) -> Any:
    """Where a function of one tensor x puts its channels; None if that is not clear.

    Channels are numbered, and the function is applied to the numbers. So permutations, reshapes,
    selections and means are followed, whatever their arguments.
    """
    if output.shape == x.shape and name not in PERMUTATIONS:
        return axis
    channels = torch.arange(x.shape[axis], dtype=torch.float32)
    shape = [-1 if i == axis else 1 for i in range(x.dim())]
    try:
        moved = move(channels.view(shape).expand(x.shape).contiguous())
    except Exception:  # any that a function raises for numbers of another type
        moved = None
    if isinstance(moved, Tensor) and moved.shape == output.shape:
        for candidate in range(1, moved.dim()):
            others = moved.movedim(candidate, -1)
            if others.shape[-1] == len(channels) and bool((others == channels).all()):
                return candidate
    # Pooling with padding, upsampling or gates change the numbers, and move no axis.
    stays = output.dim() == x.dim() and name not in RESHAPES | PERMUTATIONS
    return axis if stays else None
