"""The losses of a head: K outputs per example against the K costs of its predictions.

A loss knows three things: what one head's outputs lose against the costs, how outputs become
estimated costs, and where the outputs should start. Inside the network costs are of order one
(see ``_scaling.CostScale``); the formulas hold in any unit.

References
----------
H.-H. Tu, H.-T. Lin, "One-sided support vector regression for multiclass cost-sensitive
classification", ICML 2010.

Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive deep
learning", IJCAI 2016.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from ._scaling import CostStatistics

__all__ = [
    "LOSSES",
    "CrossEntropy",
    "LayerWiseLoss",
    "Loss",
    "OneSided",
    "SmoothOneSided",
    "Softmin",
    "Squared",
    "Target",
    "get_loss",
]


class Target(NamedTuple):
    """What a batch of examples is learnt from."""

    cost: Tensor
    label: Tensor
    weight: Tensor | None = None


class Loss(ABC):
    """What a head learns. Subclass it for a loss of your own and pass an instance as ``loss=``."""

    @abstractmethod
    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        """Loss of every example.

        Parameters
        ----------
        outputs : Tensor of shape (..., n_samples, n_classes)
            Outputs of one head, or of several heads stacked in front.
        cost : Tensor of shape (n_samples, n_classes)
            Cost vectors.
        label : Tensor of shape (n_samples,), integer
            Index of the true class.

        Returns
        -------
        Tensor of shape (..., n_samples)
            Losses, not yet averaged.
        """

    def estimate(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Turn outputs (..., n_classes) into estimated costs of the same shape."""
        return outputs

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Start a head at the mean cost vector, the best guess before anything is learnt."""
        return torch.as_tensor(statistics.mean)


def _sign(cost: Tensor) -> Tensor:
    """z of the one-sided losses: +1 at every cheapest prediction of the row, else -1."""
    return torch.where(cost == cost.amin(dim=-1, keepdim=True), 1.0, -1.0).to(cost.dtype)


@dataclass(frozen=True)
class OneSided(Loss):
    """One-sided regression: estimates may undershoot the smallest cost and overshoot the others.

    The loss of outputs r against costs c is the sum over k of ``max(z_k (r_k - c_k), 0)``, with
    z = +1 where c_k is the smallest cost of the row, else -1. Where the smallest cost is 0, it
    bounds the cost of the prediction argmin r from above (Tu and Lin 2010).

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import OneSided
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> OneSided()(r, c, torch.tensor([0]))
    tensor([1.3000])
    """

    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        return F.relu(_sign(cost) * (outputs - cost)).sum(dim=-1)


@dataclass(frozen=True)
class SmoothOneSided(Loss):
    """The smooth upper bound of the one-sided loss: the sum of ``ln(1 + exp(z (r - c)))``.

    The loss that CSDNN is pretrained with (Chung, Lin and Yang 2016).
    """

    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        return F.softplus(_sign(cost) * (outputs - cost)).sum(dim=-1)


@dataclass(frozen=True)
class Squared(Loss):
    """Squared error, the sum of ``(r - c) ** 2``: estimates are conditional mean costs."""

    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        return (outputs - cost).square().sum(dim=-1)


@dataclass(frozen=True)
class Softmin(Loss):
    """Cross-entropy between the soft minima of the costs and of the estimates.

    Only differences between the estimates of one row matter to this loss; their common level is
    set to the mean training cost.

    Parameters
    ----------
    tau : float, default=1.0
        Temperature, in units of the mean cost above each row's minimum. Towards 0 the loss
        becomes the cross-entropy on the cheapest class, towards infinity the squared error on
        row-centred costs.

    Raises
    ------
    ValueError
        If `tau` is not positive.
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ValueError(f"tau must be positive, got {self.tau!r}: 1.0 is a good start.")

    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        target = F.softmax(-cost / self.tau, dim=-1)
        return -(target * F.log_softmax(-outputs / self.tau, dim=-1)).sum(dim=-1)

    def estimate(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Set the level of each row, which the loss leaves open, to the mean training cost."""
        return outputs - outputs.mean(dim=-1, keepdim=True) + float(statistics.mean.mean())


@dataclass(frozen=True)
class CrossEntropy(Loss):
    """Cross-entropy on the labels, and the Bayes decision: class probabilities times mean costs.

    The outputs are logits. The estimated costs are ``P @ M`` with P the class probabilities and M
    the mean training cost vector of each class, so the smallest estimate is the decision of
    least risk.

    Parameters
    ----------
    smoothing : float, default=0.0
        Share of every training label that is spread evenly over all classes. It keeps the
        network from certainty; the estimated probabilities have it taken out again, exactly,
        so that they stay probabilities of the labels.

    Raises
    ------
    ValueError
        If `smoothing` is not in [0, 1).
    """

    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing is {self.smoothing!r}; expected a share in [0, 1).")

    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        def loss(outputs: Tensor, label: Tensor) -> Tensor:
            return F.cross_entropy(outputs, label, reduction="none", label_smoothing=self.smoothing)

        if outputs.dim() == 2:
            return loss(outputs, label)
        shape = outputs.shape[:-1]
        return loss(outputs.flatten(0, -2), label.expand(shape).flatten()).view(shape)

    def estimate(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Expected cost of each prediction under the class probabilities."""
        p = F.softmax(outputs, dim=-1)
        if self.smoothing > 0:
            p = F.relu(p - self.smoothing / p.shape[-1])
            p = p / p.sum(dim=-1, keepdim=True)
        class_mean = torch.as_tensor(statistics.class_mean, dtype=outputs.dtype)
        return p @ class_mean.to(outputs.device)

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Start at the logarithms of the class shares."""
        return torch.as_tensor(statistics.prior).log()


LOSSES: dict[str, Loss] = {
    "one_sided": OneSided(),
    "smooth_one_sided": SmoothOneSided(),
    "softmin": Softmin(),
    "squared": Squared(),
    "cross_entropy": CrossEntropy(),
}


def get_loss(loss: str | Loss) -> Loss:
    """Look a loss up by its name; an instance is handed through.

    Parameters
    ----------
    loss : str or Loss
        One of ``"one_sided"``, ``"smooth_one_sided"``, ``"softmin"``, ``"squared"``,
        ``"cross_entropy"``, or an instance such as ``Softmin(tau=0.5)``.

    Returns
    -------
    Loss
        The loss object.

    Raises
    ------
    ValueError
        If there is no loss of that name.

    Examples
    --------
    >>> from auxcst_sklearn.losses import get_loss
    >>> get_loss("softmin")
    Softmin(tau=1.0)
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(
            f"loss is {loss!r}; expected one of {', '.join(map(repr, LOSSES))}, or an instance "
            "of auxcst_sklearn.losses.Loss."
        )
    return LOSSES[loss]


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
        cost, label, weight = target
        if len(outputs) == 1:  # nothing to stack or to weigh: each would cost a little time
            losses = self.loss(outputs[0], cost, label)
        elif self.loss == self.aux_loss:
            losses = self.loss(torch.stack(tuple(outputs)), cost, label)
        else:
            hidden = self.aux_loss(torch.stack(tuple(outputs[:-1])), cost, label)
            losses = torch.cat([hidden, self.loss(outputs[-1], cost, label).unsqueeze(0)])
        if weight is not None:
            losses = losses * weight
        means = losses.mean(dim=-1)
        total = means if len(outputs) == 1 else means @ self.head_weights
        return total, means.detach().view(-1)
