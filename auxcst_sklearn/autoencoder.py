"""The cost-sensitive auto-encoder (CSAE), and the stack of sigmoid layers that it pretrains.

References
----------
Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive deep
learning", IJCAI 2016.

P. Vincent, H. Larochelle, Y. Bengio, P.-A. Manzagol, "Extracting and composing robust features
with denoising autoencoders", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from .losses import SmoothOneSided, Target
from .modules import AuxMLP

__all__ = ["CostSensitiveAutoencoder", "SigmoidStack", "UnitRange"]


class CostSensitiveAutoencoder(nn.Module):
    """Auto-encoder whose code also estimates costs.

    A corrupted input x gives the code ``h = sigmoid(W x + b)``. The code gives a reconstruction
    of the uncorrupted input, ``sigmoid(W^T h + b')`` with the weights of the encoder, and K linear
    cost estimates. The loss is ``(1 - beta)`` times the cross-entropy of the reconstruction,
    summed over the inputs, plus ``beta`` times the smooth one-sided loss of the costs, summed
    over the classes; both are averaged over the batch.

    Parameters
    ----------
    encoder : torch.nn.Linear
        The layer to train, W and b. It is shared, not copied.
    n_classes : int
        Number K of costs.
    beta : float
        Weight of the costs, in [0, 1]; 0 is a plain denoising auto-encoder.
    corruption : float
        Masking noise: the probability of setting an input to 0, in [0, 1).

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.autoencoder import CostSensitiveAutoencoder
    >>> autoencoder = CostSensitiveAutoencoder(
    ...     torch.nn.Linear(4, 8), n_classes=3, beta=0.1, corruption=0.25)
    >>> reconstruction, cost = autoencoder(torch.rand(5, 4))
    >>> reconstruction.shape, cost.shape
    (torch.Size([5, 4]), torch.Size([5, 3]))
    """

    def __init__(
        self, encoder: nn.Linear, n_classes: int, *, beta: float, corruption: float
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.decoder_bias = nn.Parameter(torch.zeros_like(encoder.weight[0]))
        self.cost_head = nn.Linear(encoder.out_features, n_classes, dtype=encoder.weight.dtype)
        self.beta = beta
        self.corruption = corruption

    def corrupt(self, x: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Set inputs to 0 at random; the others keep their size.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_inputs)
            Inputs in [0, 1].
        generator : torch.Generator, default=None
            What decides; None for torch's global one.

        Returns
        -------
        Tensor of shape (n_samples, n_inputs)
            Inputs, each of them 0 with probability `corruption`.
        """
        if self.corruption == 0:
            return x
        return x * torch.empty_like(x).bernoulli_(1 - self.corruption, generator=generator)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the reconstruction (n_samples, n_inputs) and costs (n_samples, n_classes)."""
        code = torch.sigmoid(self.encoder(x))
        return F.linear(code, self.encoder.weight.T, self.decoder_bias), self.cost_head(code)

    def losses(self, x: Tensor, target: Target, generator: torch.Generator | None = None) -> Tensor:
        """Mean loss of the reconstruction, and of the costs.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_inputs)
            Inputs in [0, 1].
        target : Target
            Costs, labels and weights of the examples.
        generator : torch.Generator, default=None
            What decides which inputs are set to 0; None for torch's global one.

        Returns
        -------
        Tensor of shape (2,)
            Both means.
        """
        logits, cost = self(self.corrupt(x, generator))
        entropy = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=-1)
        losses = torch.stack([entropy, SmoothOneSided()(cost, target.cost, target.label)])
        if target.weight is not None:
            losses = losses * target.weight
        return losses.mean(dim=-1)

    def total(self, losses: Tensor) -> Tensor:
        """The mixture that is minimised.

        Parameters
        ----------
        losses : Tensor of shape (2,)
            Those of `losses`.

        Returns
        -------
        Tensor of shape ()
            ``(1 - beta)`` times the first plus ``beta`` times the second.
        """
        reconstruction, cost = losses
        return (1 - self.beta) * reconstruction + self.beta * cost


class UnitRange(nn.Module):
    """Map every input from its range to [0, 1], and clip what lies outside.

    Parameters
    ----------
    low, high : array-like of shape (n_inputs,)
        The values that become 0 and 1. Where they are equal, ``low + 1`` becomes 1.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.autoencoder import UnitRange
    >>> UnitRange([0, 10], [2, 20])(torch.tensor([[1.0, 30.0]]))
    tensor([[0.5000, 1.0000]])
    """

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        super().__init__()
        low, high = (torch.as_tensor(bound, dtype=torch.float64) for bound in (low, high))
        span = torch.where(high > low, high - low, 1.0)
        self.register_buffer("low", low.float())
        self.register_buffer("factor", (1 / span).float())

    def forward(self, x: Tensor) -> Tensor:
        """Inputs in [0, 1]."""
        return ((x - self.low) * self.factor).clamp(0, 1)


class SigmoidStack(AuxMLP):
    """Sigmoid layers on inputs in [0, 1], and a cost output: what CSDNN fine-tunes.

    Parameters
    ----------
    input_range : array-like of shape (2, n_features)
        The values of each input that become 0 and 1.
    n_classes : int
        Number of costs.
    width : sequence of int, of length depth
        Neurons of each hidden layer.
    dropout : float, default=0.0
        Probability of dropping a hidden neuron.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.autoencoder import SigmoidStack
    >>> network = SigmoidStack([[0.0, 0.0], [1.0, 2.0]], 3, width=[8, 8])
    >>> network(torch.ones(5, 2)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self, input_range: ArrayLike, n_classes: int, *, width: Sequence[int], dropout: float = 0.0
    ) -> None:
        low, high = input_range
        super().__init__(
            len(low), n_classes, width=width, dressed=(), activation="sigmoid", dropout=dropout
        )
        self.unit_range = UnitRange(low, high)

    def code(self, x: Tensor, n_layers: int) -> Tensor:
        """Output of the first hidden layers.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_features)
            Examples.
        n_layers : int
            Number of layers; with 0 the inputs come back, mapped to [0, 1].

        Returns
        -------
        Tensor of shape (n_samples, n_outputs)
            Output of the last of these layers.
        """
        x = self.unit_range(x)
        for layer in list(self.hidden.values())[:n_layers]:
            x = layer(x)
        return x

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_samples, n_classes)."""
        return self.output(self.code(x, len(self.hidden)))

    def forward_heads(self, x: Tensor) -> list[Tensor]:
        """Outputs of the only head."""
        return [self(x)]
