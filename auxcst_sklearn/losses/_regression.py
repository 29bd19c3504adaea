"""Losses that regress the costs.

References
----------
H.-H. Tu, H.-T. Lin, "One-sided support vector regression for multiclass cost-sensitive
classification", ICML 2010.

Y.-A. Chung, H.-T. Lin, S.-W. Yang, "Cost-aware pre-training for multiclass cost-sensitive deep
learning", IJCAI 2016.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from .._scaling import CostStatistics
from ._loss import Loss


def _sign(cost: Tensor) -> Tensor:
    """z of the one-sided losses: +1 at every cheapest prediction of the row, else -1."""
    return 1 - 2 * (cost - cost.amin(dim=-1, keepdim=True)).sign()


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

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import SmoothOneSided
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> SmoothOneSided()(r, c, torch.tensor([0]))
    tensor([2.4584])
    """

    def __call__(self, outputs: Tensor, cost: Tensor, label: Tensor) -> Tensor:
        return F.softplus(_sign(cost) * (outputs - cost)).sum(dim=-1)


@dataclass(frozen=True)
class Squared(Loss):
    """Squared error, the sum of ``(r - c) ** 2``: estimates are conditional mean costs.

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import Squared
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> Squared()(r, c, torch.tensor([0]))
    tensor([1.8900])
    """

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

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import Softmin
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> Softmin(tau=0.5)(r, c, torch.tensor([0]))
    tensor([1.0489])
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
