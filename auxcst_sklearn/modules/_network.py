"""Networks with K outputs and auxiliary neurons on hidden layers; pairs, and several as one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ._heads import Head
from ._tables import FeatureInput

OF_EVERY_MODULE = vars(nn.Module())

# Attributes of modules that belong to their state, such as numbers of steps: by path and name,
# each with its dtype if it is a scalar of numpy. (0.5, "<f4") is np.float32(0.5).
Attributes = dict[str, dict[str, tuple[Any, str | None]]]
PLAIN = (bool, int, float, complex, str, type(None))


def plain_attributes(module: nn.Module) -> Attributes:
    """The attributes of all submodules that are numbers, strings, bools or None."""
    attributes: Attributes = {}
    for path, part in module.named_modules():
        own = {k: v for k, v in vars(part).items() if k not in OF_EVERY_MODULE}
        typed = {
            k: (v.item(), v.dtype.str) if isinstance(v, np.generic) else (v, None)
            for k, v in own.items()
        }
        attributes[path] = {k: (v, dtype) for k, (v, dtype) in typed.items() if type(v) in PLAIN}
    return attributes


def set_attributes(module: nn.Module, attributes: Attributes) -> None:
    """Set the attributes that `plain_attributes` returned."""
    for path, values in attributes.items():
        own = {k: v if of is None else np.dtype(of).type(v) for k, (v, of) in values.items()}
        vars(module.get_submodule(path)).update(own)


class OwnHook(partial[Any]):
    """A hook during a run of a module. Copies that another thread makes then do not contain it."""


def copy_of(module: nn.Module) -> Any:
    """A deep copy, also of a module that keeps tensors with a history, which torch refuses."""
    kept = [x for layer in module.modules() for x in (*vars(layer).values(), *layer.buffers(False))]
    others = [x for x in kept if isinstance(x, Tensor) and not x.is_leaf]
    replaced: dict[int, Any] = {id(x): x.detach().clone() for x in others}
    for layer in module.modules():
        for hooks in (vars(layer).get("_forward_hooks"), vars(layer).get("_forward_pre_hooks")):
            lasting = [(k, v) for k, v in [*(hooks or {}).items()] if not isinstance(v, OwnHook)]
            replaced[id(hooks)] = OrderedDict(lasting)
    replaced.pop(id(None), None)
    return deepcopy(module, replaced)


class AuxNetwork(nn.Module):
    """Networks of one architecture whose hidden layers have auxiliary cost heads.

    Subclasses set `output`, the main `Head`, and `heads`, the auxiliary ones by the name of their
    layer, and define `forward` and `forward_heads`. `forward` returns the outputs of the main head
    only, so auxiliary heads take no time at prediction.

    Parameters and outputs have the leading dimension `n_networks`. Inputs have the leading
    dimension `n_networks`, a set of rows for each network, or 1, the same rows for all networks.
    Modules on images and modules of users have no such dimension; a `SideBySide` contains several.
    """

    output: Head
    heads: Any  # An nn.ModuleDict, whose type says nothing about its modules.
    bf16: bool = False
    n_networks: int = 1
    even_rows: int = 1  # size of a batch whose rows are all rounded alike
    head_gradient: float = 1.0  # factor of the gradient that heads send into the hidden layers

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, first hidden layer to output."""
        return (*self.heads, "output")

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_networks, n_samples, n_classes)."""
        raise TypeError(f"{type(self).__name__} must define forward.")

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of those `among` some, in the order of `layers`."""
        raise TypeError(f"{type(self).__name__} must define forward_heads.")

    def lengths(self, X: Any) -> Tensor | None:
        """Lengths of rows, where a batch takes as long as its longest row; None elsewhere."""
        return None

    def set_precision(self, bf16: bool) -> None:
        """Set whether the hidden layers of all networks compute in bfloat16."""
        for layer in self.modules():
            if isinstance(layer, AuxNetwork):
                layer.bf16 = bf16

    def hidden_precision(self, x: Tensor) -> AbstractContextManager[Any]:
        """Autocast of the hidden layers to bfloat16 if `bf16`; weights and heads are float32."""
        if self.bf16:
            return torch.autocast(x.device.type, torch.bfloat16)
        return nullcontext()

    def rescale_heads(self, factor: float, shift: float, *, output: bool, hidden: bool) -> None:
        """Change the output r of all heads to ``factor * r + shift``."""
        for head in [self.output] * output + list(self.heads.values()) * hidden:
            head.rescale(factor, shift)

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of the output and of the auxiliary heads, the same for all networks."""
        self.output.start_at(bias)
        for head in self.heads.values():
            head.start_at(aux_bias)

    @property
    def bin_masks(self) -> list[Tensor]:
        """Which networks see bins of numbers, for each table that they read."""
        return [part.sees_bins for part in self.modules() if isinstance(part, FeatureInput)]

    def weights(self) -> list[list[Tensor]]:
        """The tensors of each network, as views: its parameters, and whether it sees bins."""
        return [*map(list, zip(*map(torch.detach, (*self.parameters(), *self.bin_masks))))]

    def own_modules(self) -> list[list[nn.Module]]:
        """The modules of each network that belong to no other."""
        return [[]] * self.n_networks


class SideBySide(AuxNetwork):
    """Networks of one architecture that are computed one by one, such as convolutions.

    Each module gets its set of rows, or the set that all share, without the first dimension.
    """

    networks: Any  # An nn.ModuleList, whose type says nothing about its modules.

    def __init__(self, networks: Sequence[AuxNetwork]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.n_networks = len(networks)
        self.head_gradient = networks[0].head_gradient

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, the same in all networks."""
        return self.networks[0].layers

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main heads, (n_networks, n_samples, n_classes)."""
        return torch.stack([network(own) for network, own in zip(self.networks, self._sets(x))])

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of some, each (n_networks, n_samples, n_classes)."""
        sets = zip(self.networks, self._sets(x))
        outputs = [network.forward_heads(own, among) for network, own in sets]
        return [*map(torch.stack, zip(*outputs))]

    def _sets(self, x: Tensor) -> Sequence[Tensor]:
        """The rows of each network."""
        if len(x) not in (1, self.n_networks):
            raise ValueError(
                f"The first dimension of the inputs is {len(x)}; expected {self.n_networks}, a set "
                "of samples for each network, or 1, as in module(x.unsqueeze(0)). The estimator's "
                "to_module() returns a module that takes samples as predict does."
            )
        return x.unbind() if len(x) > 1 else [x[0]] * self.n_networks

    def lengths(self, X: Any) -> Tensor | None:
        """Lengths of rows, the same for all networks."""
        return self.networks[0].lengths(X)

    def rescale_heads(self, factor: float, shift: float, *, output: bool, hidden: bool) -> None:
        """Rescale the heads of all networks."""
        for network in self.networks:
            network.rescale_heads(factor, shift, output=output, hidden=hidden)

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of all networks."""
        for network in self.networks:
            network.start_at(bias, aux_bias)

    def weights(self) -> list[list[Tensor]]:
        """The tensors of each network, all buffers included."""
        return [[*map(torch.detach, (*n.parameters(), *n.buffers()))] for n in self.networks]

    def own_modules(self) -> list[list[nn.Module]]:
        """Each network."""
        return [[network] for network in self.networks]


class ClassAndCostNetwork(AuxNetwork):
    """A network with heads, and a cost network without; the outputs are concatenated.

    `classes` has the heads and returns K logits; `costs` returns 2 K outputs.
    """

    def __init__(self, classes: AuxNetwork, costs: AuxNetwork) -> None:
        super().__init__()
        self.classes = classes
        self.costs = costs
        self.n_networks = classes.n_networks
        self.even_rows = classes.even_rows
        self.head_gradient = classes.head_gradient

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers of the class network that have a head, and of its output."""
        return self.classes.layers

    def lengths(self, X: Any) -> Tensor | None:
        """Lengths of rows, the same for both networks."""
        return self.classes.lengths(X)

    def rescale_heads(self, factor: float, shift: float, *, output: bool, hidden: bool) -> None:
        """Rescale the heads of the class network."""
        self.classes.rescale_heads(factor, shift, output=output, hidden=hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the class network, then of the cost network."""
        return torch.cat([self.classes(x), self.costs(x)], dim=-1)

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of the heads of the class network; the last with the cost outputs."""
        *hidden, output = self.classes.forward_heads(x, among)
        return [*hidden, torch.cat([output, self.costs(x)], dim=-1)]

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of the class network; the cost network starts at outputs of zero."""
        self.classes.start_at(bias, aux_bias)
        # Outputs of zero are factors of one: training starts from the mean costs of the classes.
        self.costs.rescale_heads(0.0, 0.0, output=True, hidden=False)

    def weights(self) -> list[list[Tensor]]:
        """The tensors of each pair."""
        return [[*one, *other] for one, other in zip(self.classes.weights(), self.costs.weights())]

    def own_modules(self) -> list[list[nn.Module]]:
        """The modules of each pair."""
        return [
            one + other for one, other in zip(self.classes.own_modules(), self.costs.own_modules())
        ]
