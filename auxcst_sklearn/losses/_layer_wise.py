"""The training objective over all heads."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ._loss import Loss, Target


class LayerWiseLoss(nn.Module):
    """The training objective: sum over hidden layers of alpha_i L_i, plus the loss of the output.

    Parameters
    ----------
    loss : Loss
        Loss of the output layer.
    aux_loss : Loss
        Loss of the auxiliary heads.
    alpha : sequence of float, of length n_heads
        Weight of each auxiliary head.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import LayerWiseLoss, OneSided, Target
    >>> objective = LayerWiseLoss(OneSided(), OneSided(), alpha=[0.5])
    >>> target = Target(cost=torch.tensor([[0.0, 1.0]]), label=torch.tensor([0]))
    >>> hidden, output = torch.tensor([[1.0, 1.0]]), torch.tensor([[0.2, 1.0]])
    >>> objective([hidden, output], target)
    (tensor(0.7000), tensor([1.0000, 0.2000]))
    """

    def __init__(self, loss: Loss, aux_loss: Loss, alpha: Sequence[float]) -> None:
        super().__init__()
        self.loss = loss
        self.aux_loss = aux_loss
        weights = torch.tensor([*alpha, 1.0], dtype=torch.float32)
        self.register_buffer("head_weights", weights, persistent=False)

    def forward(self, outputs: Sequence[Tensor], target: Target) -> tuple[Tensor, Tensor]:
        """Weighted sum of the heads' mean losses, and these losses.

        Parameters
        ----------
        outputs : sequence of Tensor of shape (n_samples, n_classes)
            Outputs of the heads, the output layer last.
        target : Target
            What the batch is learnt from.

        Returns
        -------
        total : Tensor of shape ()
            What is minimised; the weight of the output layer is 1.
        losses : Tensor of shape (n_heads + 1,)
            Mean loss of each head, detached from the graph.
        """
        if len(outputs) == 1:  # nothing to stack or to weigh, which takes time
            total = self.loss.mean(outputs[0], *target)
            return total, total.detach().view(-1)
        if self.loss is self.aux_loss:
            means = self.loss.mean(torch.stack(tuple(outputs)), *target)
        else:
            hidden = self.aux_loss.mean(torch.stack(tuple(outputs[:-1])), *target)
            means = torch.cat([hidden, self.loss.mean(outputs[-1], *target).view(1)])
        return means @ self.head_weights, means.detach()
