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

    head_weights: Tensor

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
            Costs, labels and weights of the batch.

        Returns
        -------
        total : Tensor of shape ()
            The objective; the weight of the output layer is 1.
        losses : Tensor of shape (n_heads + 1,)
            Mean loss of each head, detached from the graph.
        """
        if len(outputs) == 1:  # nothing to stack or to weight, which takes time
            total = self.loss.mean(outputs[0], target)
            return total, total.detach().view(-1)
        if self.loss is self.aux_loss:
            means = self.loss.mean(torch.stack(tuple(outputs)), target)
        else:
            hidden = self.aux_loss.mean(torch.stack(tuple(outputs[:-1])), target)
            means = torch.cat([hidden, self.loss.mean(outputs[-1], target).view(1)])
        return means @ self.head_weights, means.detach()


class StackedLayerWiseLoss(LayerWiseLoss):
    """The training objectives of M networks side by side, for S sets of rows.

    Network i uses the rows of set i modulo S. The networks share no weights, so that minimising the
    sum of their objectives minimises each. `head_weights` (n_heads + 1, n_networks) are 0 for a
    head that a network lacks.
    """

    def __init__(
        self, loss: Loss, aux_loss: Loss, head_weights: Tensor, *, n_row_sets: int
    ) -> None:
        super().__init__(loss, aux_loss, alpha=())
        self.head_weights = head_weights
        self.n_row_sets = n_row_sets

    def forward(self, outputs: Sequence[Tensor], target: Target) -> tuple[Tensor, Tensor]:
        """Sum of the networks' objectives, and the heads' losses (n_heads + 1, n_networks).

        Outputs are (n_networks, n_samples, n_classes) for each head; targets of the sets of rows
        are concatenated.
        """
        if self.loss is self.aux_loss:
            means = self._means(self.loss, outputs, target)
        else:
            means = self._means(self.loss, outputs[-1:], target)
            if len(outputs) > 1:
                means = torch.cat([self._means(self.aux_loss, outputs[:-1], target), means])
        return (means * self.head_weights).sum(), means.detach()

    def _means(self, loss: Loss, outputs: Sequence[Tensor], target: Target) -> Tensor:
        r = torch.stack(tuple(outputs))
        if self.n_row_sets == 1:
            return loss.mean(r.flatten(0, 1), target).view(r.shape[:2])
        # Networks alternate between the sets, so that the outputs of all sets are concatenated in
        # the same way as the target.
        losses = loss(r.reshape(-1, len(target.label), r.shape[-1]), target)
        if target.weight is not None:
            losses = losses * target.weight
        return losses.reshape(r.shape[:-1]).mean(dim=-1)
