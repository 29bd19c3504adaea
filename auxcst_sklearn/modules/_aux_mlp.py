"""The fully connected network."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from torch import nn

from ._heads import CostHead
from ._layers import ACTIVATIONS, ScaledLinear, SeededDropout
from ._network import LayeredNetwork


class AuxMLP(LayeredNetwork):
    """A fully connected network with auxiliary cost heads.

    Parameters
    ----------
    n_features : int
        Number of inputs.
    n_classes : int
        Number of costs that each head estimates.
    width : sequence of int, of length depth
        Neurons of each hidden layer.
    head_layers : collection of int
        Indices of the hidden layers that get a head, counted from 0.
    activation : str, default="relu"
        A key of `ACTIVATIONS`.
    dropout : float, default=0.0
        Probability of dropping a hidden neuron.
    scaled : slice, default=None
        Inputs for which the first layer learns factors; see `ScaledLinear`. None for none.
    inputs : nn.Module, default=None
        First module, such as `Standardize` or `UnitRange`; None for unchanged inputs.

    Raises
    ------
    ValueError
        If there is no activation of that name, or a layer in `head_layers` does not exist.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules._aux_mlp import AuxMLP
    >>> network = AuxMLP(4, 3, width=[8, 8, 8], head_layers=[0, 1])
    >>> network.layers
    ('hidden1', 'hidden2', 'output')
    >>> [tuple(r.shape) for r in network.forward_heads(torch.zeros(5, 4))]
    [(5, 3), (5, 3), (5, 3)]
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        width: Sequence[int],
        head_layers: Collection[int],
        activation: str = "relu",
        dropout: float = 0.0,
        scaled: slice | None = None,
        inputs: nn.Module | None = None,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"activation={activation!r}; expected one of {', '.join(map(repr, ACTIVATIONS))}."
            )
        if not set(head_layers) <= set(range(len(width))):
            raise ValueError(
                f"head_layers={list(head_layers)} must be indices of hidden layers, of which "
                f"width={width} has {len(width)}: 0 to {len(width) - 1}."
            )
        self.inputs = nn.Identity() if inputs is None else inputs
        self.hidden = nn.ModuleDict()
        for i, (fan_in, fan_out) in enumerate(zip([n_features, *width[:-1]], width), start=1):
            if scaled is None or i > 1:
                linear = nn.Linear(fan_in, fan_out)
            else:
                linear = ScaledLinear(fan_in, fan_out, scaled)
            layer = [linear, ACTIVATIONS[activation]()]
            if dropout > 0:
                layer.append(SeededDropout(dropout))
            self.hidden[f"hidden{i}"] = nn.Sequential(*layer)
        # Heads are initialised last, so that the other weights are the same with and without heads.
        self.output: CostHead = CostHead(width[-1:], n_classes)
        self.heads = nn.ModuleDict(
            {f"hidden{i + 1}": CostHead(width[i : i + 1], n_classes) for i in sorted(head_layers)}
        )
