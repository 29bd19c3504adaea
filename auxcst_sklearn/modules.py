"""Torch modules: networks with K cost outputs and K auxiliary cost neurons per hidden layer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor, nn

__all__ = ["ACTIVATIONS", "AuxMLP", "AuxNetwork", "SeededDropout"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "elu": nn.ELU,
    "gelu": nn.GELU,
    "leaky_relu": nn.LeakyReLU,
    "relu": nn.ReLU,
    "sigmoid": nn.Sigmoid,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}


class SeededDropout(nn.Module):
    """Dropout that draws from a generator of its own.

    torch's dropout draws from the global generator, so that two fits in two threads would share
    their random numbers.

    Parameters
    ----------
    p : float
        Probability of dropping an input.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.generator: torch.Generator | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Drop inputs at random and scale up the others, in training mode only."""
        if not self.training or self.p == 0:
            return x
        keep = torch.empty_like(x).bernoulli_(1 - self.p, generator=self.generator)
        return x * keep.div_(1 - self.p)

    def __getstate__(self) -> dict:
        return {**super().__getstate__(), "generator": None}

    def extra_repr(self) -> str:
        """Show the probability."""
        return f"p={self.p}"


class AuxNetwork(nn.Module):
    """A network whose hidden layers carry auxiliary cost heads.

    Subclasses set `output`, the main head, and `heads`, the auxiliary ones by the name of the
    layer they read, and yield in `stages` what each dressed layer and the last one puts out.
    `forward` gives the estimated costs alone; the auxiliary heads cost nothing at prediction.
    """

    output: nn.Linear
    heads: nn.ModuleDict

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers that have a head, first hidden layer to output."""
        return (*self.heads, "output")

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        raise TypeError(f"{type(self).__name__} must define forward.")

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head, in the order of `layers`."""
        raise TypeError(f"{type(self).__name__} must define forward_heads.")

    @torch.no_grad()
    def start_at(self, bias: Tensor, aux_bias: Tensor) -> None:
        """Set the biases of the output and of the auxiliary heads."""
        self.output.bias.copy_(bias)
        for head in self.heads.values():
            head.bias.copy_(aux_bias)


class AuxMLP(AuxNetwork):
    """A fully connected network with auxiliary cost heads.

    Parameters
    ----------
    n_features : int
        Number of inputs.
    n_classes : int
        Number of costs that each head estimates.
    width : sequence of int, of length depth
        Neurons of each hidden layer.
    dressed : collection of int
        Indices of the hidden layers that get a head, counted from 0.
    activation : str, default="relu"
        A key of `ACTIVATIONS`.
    dropout : float, default=0.0
        Probability of dropping a hidden neuron.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.modules import AuxMLP
    >>> network = AuxMLP(4, 3, width=[8, 8, 8], dressed=[0, 1])
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
        dressed: Collection[int],
        activation: str = "relu",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.hidden = nn.ModuleDict()
        for i, (fan_in, fan_out) in enumerate(zip([n_features, *width[:-1]], width), start=1):
            layer = [nn.Linear(fan_in, fan_out), ACTIVATIONS[activation]()]
            if dropout > 0:
                layer.append(SeededDropout(dropout))
            self.hidden[f"hidden{i}"] = nn.Sequential(*layer)
        # The heads are drawn last, so that the rest starts alike with and without them.
        self.output = nn.Linear(width[-1], n_classes)
        self.heads = nn.ModuleDict(
            {f"hidden{i + 1}": nn.Linear(width[i], n_classes) for i in sorted(dressed)}
        )

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        for layer in self.hidden.values():
            x = layer(x)
        return self.output(x)

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of every head, in the order of `layers`."""
        outputs = []
        for name, layer in self.hidden.items():
            x = layer(x)
            if name in self.heads:
                outputs.append(self.heads[name](x))
        outputs.append(self.output(x))
        return outputs
