"""Losses whose outputs are the estimated costs: one-sided (the paper's), squared and softmin."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..costs._statistics import CostStatistics
from ._loss import Loss, Target


def one_sided_sign(cost: Tensor) -> Tensor:
    """z of the one-sided losses: +1 at every cheapest prediction of the row, else -1."""
    return 1 - 2 * (cost - cost.amin(dim=-1, keepdim=True)).sign()


@dataclass(frozen=True)
class OneSided(Loss):
    """One-sided regression: estimates may undershoot the smallest cost and overshoot the others.

    The loss of outputs r for costs c is the sum over k of ``max(z_k (r_k - c_k), 0)``. Here z_k is
    +1 if c_k is the smallest cost of the sample, and -1 otherwise. If the smallest cost is 0, the
    loss is an upper bound of the cost of the prediction argmin r.

    The outputs of the network and of the auxiliary heads are estimated costs.

    References
    ----------
    Y.-A. Chung, S.-W. Yang, H.-T. Lin, "Cost-Sensitive Deep Learning with Layer-Wise Cost
    Estimation", TAAI 2020, arXiv:1611.05134: the loss of every layer.

    H.-H. Tu, H.-T. Lin, "One-sided support vector regression for multiclass cost-sensitive
    classification", ICML 2010.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import OneSided, Target
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> OneSided()(r, Target(c, torch.tensor([0])))
    tensor([1.3000])
    """

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        return F.relu((outputs - target.cost) * one_sided_sign(target.cost)).sum(dim=-1)


@dataclass(frozen=True)
class SmoothOneSided(Loss):
    """The smooth upper bound of the one-sided loss.

    The loss is the sum over the classes of ``tau ln(1 + exp(z (r - c) / tau))``, with z as in
    `OneSided`. The outputs are the estimated costs. CSDNN is pretrained with this loss.

    Parameters
    ----------
    tau : float, default=0.1
        Width of the smoothing. Its unit is the mean cost above each sample's minimum. For `tau`
        towards 0, the loss becomes the one-sided loss. In the paper, tau is 1 in currency. This
        corresponds to `tau` = 0.2 if a mistake costs 5 on average, as with randomized proportional
        costs of balanced classes. In our measurements, larger widths had higher costs.

    Raises
    ------
    ValueError
        If `tau` is not positive.

    References
    ----------
    Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive deep
    learning", IJCAI 2016, arXiv:1511.09337.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import SmoothOneSided, Target
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> SmoothOneSided()(r, Target(c, torch.tensor([0])))
    tensor([1.3007])
    >>> SmoothOneSided(tau=1)(r, Target(c, torch.tensor([0])))
    tensor([2.4584])
    """

    tau: float = 0.1

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ValueError(
                f"tau must be positive, got {self.tau!r}. Start with 0.1, or use OneSided() for a "
                "loss without smoothing."
            )

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        excess = (outputs - target.cost) * one_sided_sign(target.cost)
        return self.tau * F.softplus(excess / self.tau).sum(dim=-1)


@dataclass(frozen=True)
class Squared(Loss):
    """Squared error, the sum of ``(r - c) ** 2``: estimates are conditional mean costs.

    The outputs are the estimated costs. If a sample pays a fee whatever the decision, the fee is
    learnt as a part of its costs. Subtract the fee first if it varies much between samples.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import Squared, Target
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> Squared()(r, Target(c, torch.tensor([0])))
    tensor([1.8900])
    """

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        return (outputs - target.cost).square().sum(dim=-1)


@dataclass(frozen=True)
class Softmin(Loss):
    """Cross-entropy between the soft minima of the costs and of the estimates.

    Only differences between the estimates of a sample matter to this loss. Their common level is
    set to the mean training cost. The outputs are the estimated costs up to this level.

    Parameters
    ----------
    tau : float, default=1.0
        Temperature of the soft minima. Its unit is the mean cost above each sample's minimum.
        Towards 0, the loss becomes the cross-entropy on the class with the lowest cost. Towards
        infinity, it becomes the squared error on costs minus their mean over the classes.

    Raises
    ------
    ValueError
        If `tau` is not positive.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import Softmin, Target
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> Softmin(tau=0.5)(r, Target(c, torch.tensor([0])))
    tensor([1.0489])
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ValueError(f"tau must be positive, got {self.tau!r}. Start with 1.0.")

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        target_p = F.softmax(-target.cost / self.tau, dim=-1)
        return -(F.log_softmax(-outputs / self.tau, dim=-1) * target_p).sum(dim=-1)

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Set the level of each sample to the mean training cost. The loss leaves it free."""
        return outputs - outputs.mean(dim=-1, keepdim=True) + float(statistics.mean.mean())
