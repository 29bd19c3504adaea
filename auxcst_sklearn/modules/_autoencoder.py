"""The cost-sensitive auto-encoder (CSAE) of one layer.

References
----------
Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive deep
learning", IJCAI 2016.

P. Vincent, H. Larochelle, Y. Bengio, P.-A. Manzagol, "Extracting and composing robust features
with denoising autoencoders", ICML 2008.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ..losses import SmoothOneSided, Target

COST_LOSS = SmoothOneSided(tau=1.0)  # the defaults of CSAEPretrainedMLP were chosen with it


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
