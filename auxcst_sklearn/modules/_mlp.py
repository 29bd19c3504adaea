"""Fully connected networks, and the auto-encoder (CSAE) that pretrains one of their layers.

References
----------
Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive deep
learning", IJCAI 2016.

P. Vincent, H. Larochelle, Y. Bengio, P.-A. Manzagol, "Extracting and composing robust features
with denoising autoencoders", ICML 2008.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..losses import SmoothOneSided, Target
from ._layers import ACTIVATIONS, BatchedHead, BatchedLinear, Generators, SeededDropout
from ._network import AuxNetwork

COST_LOSS = SmoothOneSided(tau=1.0)  # the defaults of CSAEPretrainedMLP were chosen with it


class AuxMLP(AuxNetwork):
    """Fully connected networks with auxiliary cost heads, computed at once.

    Inputs are (n_networks, n_samples, n_features), or (1, n_samples, n_features) for all networks,
    and outputs (n_networks, n_samples, n_classes). `head_layers` counts hidden layers from 0; the
    first layer learns factors for the inputs `scaled`. Each network draws its weights from one of
    the `generators`.
    """

    even_rows = 16
    hidden: Any  # An nn.ModuleDict of sequences, whose type says nothing about their layers.

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
        generators: Generators = (None,),
    ) -> None:
        super().__init__()
        self.n_networks = len(generators)
        self.inputs = nn.Identity() if inputs is None else inputs
        self.hidden = nn.ModuleDict()
        for i, (fan_in, fan_out) in enumerate(zip([n_features, *width[:-1]], width), start=1):
            linear = BatchedLinear(fan_in, fan_out, generators, scaled if i == 1 else None)
            self.hidden[f"hidden{i}"] = nn.Sequential(linear, ACTIVATIONS[activation]())
        self.set_dropout(dropout)
        # Heads are initialised last, so that the other weights are the same with and without heads.
        self.output: BatchedHead = BatchedHead(width[-1], n_classes, generators)
        self.heads = nn.ModuleDict()
        for i in sorted(head_layers):
            self.heads[f"hidden{i + 1}"] = BatchedHead(width[i], n_classes, generators)

    def set_dropout(self, p: float) -> None:
        """Set the dropout after each hidden layer."""
        for name, layer in self.hidden.items():
            dropout = [SeededDropout(p)] if p > 0 else []
            self.hidden[name] = nn.Sequential(*islice(layer.children(), 2), *dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs of the main head, (n_networks, n_samples, n_classes)."""
        return self.output(self._run(x, heads={})[0])

    def forward_heads(self, x: Tensor, among: Collection[str] | None = None) -> list[Tensor]:
        """Outputs of every head, or of some, and of the output."""
        heads = {n: self.heads[n] for n in self.heads if among is None or n in among}
        x, outputs = self._run(x, heads)
        return [*outputs, self.output(x)]

    def _run(
        self, x: Tensor, heads: Mapping[str, nn.Module], n_layers: int | None = None
    ) -> tuple[Tensor, list[Tensor]]:
        """Output of the last hidden layer, and of the heads of all layers."""
        # Fully connected layers multiply (n_out, n_in) by (n_in, n_samples), so samples are the
        # last axis until the heads.
        x, outputs = self.inputs(x).expand(self.n_networks, -1, -1).mT, []
        with self.hidden_precision(x):
            for name, layer in list(self.hidden.items())[:n_layers]:
                x = layer(x)
                if name in heads:
                    outputs.append(heads[name](x))
        return x, outputs

    def code(self, x: Tensor, n_layers: int) -> Tensor:
        """Output of the first `n_layers` hidden layers, (n_networks, n_samples, ...)."""
        return self._run(x, heads={}, n_layers=n_layers)[0].mT.contiguous()


class CostSensitiveAutoencoder(nn.Module):
    """Auto-encoder whose code also estimates costs.

    The code of a corrupted input x is ``h = sigmoid(W x + b)``. It gives a reconstruction of the
    uncorrupted input, ``sigmoid(W^T h + b')`` with the weights of the encoder, and K linear cost
    estimates. The loss is ``(1 - beta)`` times the cross-entropy of the reconstruction, summed over
    the inputs, plus ``beta`` times the smooth one-sided loss of the costs (tau = 1), summed over
    the classes; both are averaged over the batch.

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
    >>> from auxcst_sklearn.modules import CostSensitiveAutoencoder
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
        """Inputs (n_samples, n_inputs), each set to 0 with probability `corruption`."""
        if self.corruption == 0:
            return x
        return x * torch.empty_like(x).bernoulli_(1 - self.corruption, generator=generator)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of the reconstruction (n_samples, n_inputs) and costs (n_samples, n_classes)."""
        code = torch.sigmoid(self.encoder(x))
        # The decoder shares the weights of the encoder, so that only the encoder remains after
        # pretraining.
        return F.linear(code, self.encoder.weight.T, self.decoder_bias), self.cost_head(code)

    def losses(self, x: Tensor, target: Target, generator: torch.Generator | None = None) -> Tensor:
        """Mean loss of the reconstruction, and of the costs.

        Parameters
        ----------
        x : Tensor of shape (n_samples, n_inputs)
            Inputs in [0, 1].
        target : Target
            Costs, labels and weights of the samples.
        generator : torch.Generator, default=None
            Source of the noise; None for torch's global one.

        Returns
        -------
        Tensor of shape (2,)
            Both means.
        """
        logits, cost = self(self.corrupt(x, generator))
        entropy = F.binary_cross_entropy_with_logits(logits, x, reduction="none").sum(dim=-1)
        losses = torch.stack([entropy, COST_LOSS(cost, target)])
        if target.weight is not None:
            losses = losses * target.weight
        return losses.mean(dim=-1)

    def total(self, losses: Tensor) -> Tensor:
        """The objective: ``1 - beta`` times the first of `losses`, ``beta`` times the second."""
        reconstruction, cost = losses.unbind()
        return (1 - self.beta) * reconstruction + self.beta * cost
