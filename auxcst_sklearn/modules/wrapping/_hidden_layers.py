"""The hidden layers of any module: steps that all data pass, or the blocks that it repeats."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from ._listener import Call
from ._tracing import JOINS, Step, Trace


def hidden_layers(trace: Trace) -> list[Call]:
    """Calls whose outputs are the hidden layers, as `find_hidden_layers` defines them."""
    lists, of_maps = _repeated_blocks(trace)
    if len(lists) == 1:
        return lists[0]
    last = trace.index_of(trace.output) or 0
    branches = [[*filter(None, _ends(trace, parent))] for parent in _branches(trace, last)]
    n_layers = sorted([0, 0, *map(len, branches)])
    if n_layers[-2] < 1 or n_layers[-1] < 2:  # such as a residual or inception block at the input
        branches = []
    numbers = [*sorted(chain(*branches)), *filter(None, _ends(trace, last)[:-1])]
    ends = [trace.steps[number] for number in numbers]
    calls = [_largest_call(step, ends) for step in ends]
    calls = [call for call in calls if _has_rows(trace, call)]
    for blocks in lists:
        if all(_has_no_layer(block, calls) for block in blocks):
            return lists[-1]  # of a decoder, all of whose blocks read the encoder
    blocks = [] if lists else max(of_maps, key=len, default=[])
    # As in InceptionTime, whose shortcuts pass several blocks.
    return blocks if any(_has_no_layer(block, calls) for block in blocks) else calls


def _ends(trace: Trace, last: int) -> list[int]:
    """Steps that end the hidden layers up to a step, 0 for none; the last may not be complete."""
    # Of Linear, ReLU, Dropout, Linear, ReLU the layers end at both ReLUs: weights begin a layer,
    # and the last activation or join before the next weights ends it.
    ends, begun, before = [0], False, 0
    for index in _on_every_path(trace, last):
        if any(step.has_weights for step in trace.steps[before + 1 : index + 1]):
            begun, ends = True, [*ends, 0]
        if begun and trace.steps[index].ends_layer:
            ends[-1] = index
        before = index
    return ends


def _branches(trace: Trace, last: int) -> list[int]:
    """Last steps of the branches that run from the input to the first join; none without one."""
    _, *path = _on_every_path(trace, last)
    join = trace.steps[path[0]] if path else None
    if join is None or join.function not in JOINS or len(join.sources) < 2:
        return []
    parents = {parent for parent in join.parents if trace.steps[parent].is_data}
    depends = any(_ancestors(trace, parent) & parents for parent in parents)  # as in a dense block
    return [] if depends else sorted(parents)


def _has_no_layer(block: Call, calls: list[Call]) -> bool:
    return not any(f"{path}.".startswith(f"{block[0]}.") for path, _ in calls)


def _on_every_path(trace: Trace, last: int) -> list[int]:
    """Steps that are on every path of data from the input to another step."""
    # Steps count from the input, 0, to the output. `farthest` has the last step that needs the
    # output of each. A step is on every path if no earlier step is needed beyond it: of a residual
    # block x + f(x), the sum is, and the steps of f are not, because x is needed beyond them.
    steps = trace.steps
    farthest = {last: last}  # of each step, the last one that needs its output
    for index in range(last, 0, -1):
        if index in farthest:
            data = [parent for parent in steps[index].parents if steps[parent].is_data]
            takes_raw = bool(steps[index].raw_inputs & trace.touched)
            for parent in data + [0] * (not data or takes_raw):
                farthest.setdefault(parent, index)
    common, reach = [], 0
    for index in sorted(farthest):
        if index >= reach:
            common.append(index)
        reach = max(reach, farthest[index])
    return common


def _largest_call(step: Step, ends: list[Step]) -> Call:
    """The largest submodule that returns only this layer; otherwise its function."""
    others = {call for end in ends if end is not step for call in end.within}
    calls = [call for call in step.put_out_by if call in step.within and call not in others]
    return calls[-1] if calls else step.put_out_by[0]


def _has_rows(trace: Trace, call: Call) -> bool:
    output = trace.tensor(call)
    return output is not None and output.dim() > 1 and len(output) == trace.n_rows


# ------------------------------------------------------------------------- repeated blocks


def _repeated_blocks(trace: Trace) -> tuple[list[list[Call]], list[list[Call]]]:
    """Calls of the blocks that a network repeats, on sequences and on maps, in order of time.

    Transformers repeat a block, and what follows (a pooler, a classifier) is not a hidden layer.
    """
    order = list(trace.calls)
    lists_of_calls: tuple[list[list[Call]], list[list[Call]]] = [], []
    for paths in _lists_of_blocks(trace.module):
        calls = [call for call in trace.calls if call[0] in paths]
        if len(calls) > 1 and _follow_each_other(trace, calls):
            x: Any = trace.tensor(calls[0])
            lists_of_calls[trace.axis(calls[0]) != x.dim() - 1].append(calls)
    for lists in lists_of_calls:
        lists.sort(key=lambda calls: order.index(calls[-1]))
    return lists_of_calls


def _lists_of_blocks(module: nn.Module) -> Iterator[list[str]]:
    """Paths of the blocks in each list of blocks alike; lists within the blocks are not searched.

    Blocks of one class that differ in their sizes are stages, whose own blocks are not layers.
    """
    done: list[str] = []
    for path, part in module.named_modules():
        if not isinstance(part, nn.ModuleList | nn.Sequential) or path.startswith(tuple(done)):
            continue
        blocks = [*part.children()]
        if not blocks or len({*map(type, blocks)}) > 1 or not any(blocks[0].children()):
            continue
        first, *others = (Counter(p.shape for p in block.parameters()) for block in blocks)
        # The first may have more, such as T5's table of relative positions, or other inputs.
        alike = all(sizes == others[0] for sizes in others)
        alike = alike and (len(others) != 1 or others[0] <= first)
        if alike or others:
            done.append(f"{path}." if path else "")
        if alike:
            yield [f"{path}.{name}".lstrip(".") for name, _ in part.named_children()]


def _follow_each_other(trace: Trace, calls: list[Call]) -> bool:
    """Whether calls return sequences or maps, each computed from the one before."""
    for call in calls:
        output = trace.tensor(call)
        if output is None or output.dim() < 3 or not _has_rows(trace, call):
            return False
    numbers = [trace.index_of(trace.tensor(call)) for call in calls]
    return all(
        number is not None and before in _ancestors(trace, number)
        for before, number in zip(numbers, numbers[1:])
    )


def _ancestors(trace: Trace, index: int) -> set[int]:
    ancestors, rest = set[int](), [index]
    while rest:
        parents = trace.steps[rest.pop()].parents - ancestors
        ancestors |= parents
        rest += parents
    return ancestors


def _as_tensor(values: Any) -> Tensor:
    """A tensor itself, or an array in the types that modules take."""
    x = torch.as_tensor(values)
    return x if values is x or not x.is_floating_point() else x.float()


def find_hidden_layers(
    module: nn.Module, example: Sequence[int] | ArrayLike | Tensor | Mapping[str, Any]
) -> list[str]:
    """Find the hidden layers of a module by running it once.

    Some steps of a run lie on every path from the input to the output; the branches of a residual
    or an inception block do not. Among those steps, all from one layer of weights up to the next
    (weights in branches included) belong to one hidden layer. Its output is the output of the last
    activation function, or of the last join of branches (not of parts of one tensor). So an
    activation after a layer of weights ends a hidden layer, and a residual block counts as one: its
    sum, or the activation that follows the sum. Masks, positions and lengths, which are computed
    from the input by comparisons or from integers, without weights, make no branches, nor do inputs
    that only multiply features, as an adjacency matrix does. A recurrent layer is a hidden layer.
    Where branches with hidden layers, one of them with several, run in parallel from the input to a
    join, as in LSTM-FCN or in two towers, the hidden layers of each branch come first.

    In a network on sequences (n_samples, n_steps, n_features) whose blocks repeat, as in a
    transformer, the blocks are the hidden layers: modules of one class and size in an
    ``nn.ModuleList`` or ``nn.Sequential``, each computed from the one before. In a network with
    several such lists, as with stages, the first rule finds the hidden layers; if it finds none in
    one of the lists, as with encoder and decoder, they are the blocks of the last list. Blocks on
    channels are the hidden layers if shortcuts pass some of them, as in InceptionTime.

    Parameters
    ----------
    module : nn.Module
        The module. It is run once, in evaluation mode.
    example : sequence of int, array, Tensor, or mapping of arrays
        Shape of one example, which is then one of zeros; or some rows: an array or a tensor, or the
        arrays that the module takes by name, such as the output of a tokenizer.

    Returns
    -------
    list of str
        Path of the largest submodule that returns the hidden layer and contains no other; if there
        is none, the function, as in ``"relu()"`` or ``"block.relu()"``. ``"relu:2"`` is the second
        call of a submodule that runs more than once. Layers whose outputs have no row per example
        are left out.

    Raises
    ------
    ValueError
        If the module cannot compute the example.

    Examples
    --------
    >>> from torch import nn
    >>> from auxcst_sklearn.modules import find_hidden_layers
    >>> module = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(),
    ...                        nn.Linear(8, 3))
    >>> find_hidden_layers(module, (4,))
    ['1', '3']
    """
    rows: Any = example
    if isinstance(rows, Mapping):
        rows = {name: _as_tensor(values) for name, values in rows.items()}
    elif hasattr(rows, "__array__"):
        rows = _as_tensor(rows)
    trace = Trace(module, rows)
    return [trace.name(call) for call in hidden_layers(trace)]
