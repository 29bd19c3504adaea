"""Softmin regression of the costs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..costs._statistics import CostStatistics
from ._loss import Loss, Target


@dataclass(frozen=True)
class Softmin(Loss):
    """Cross-entropy between the soft minima of the costs and of the estimates.

    Only differences between the estimates of one row matter to this loss; their common level is
    set to the mean training cost. The outputs are the estimated costs up to that level.

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
    >>> from auxcst_sklearn.losses import Softmin, Target
    >>> r = torch.tensor([[0.5, 0.2, 3.0]])
    >>> c = torch.tensor([[0.0, 1.0, 2.0]])
    >>> Softmin(tau=0.5)(r, Target(c, torch.tensor([0])))
    tensor([1.0489])
    """

    tau: float = 1.0

    def __post_init__(self) -> None:
        if not self.tau > 0:
            raise ValueError(f"tau must be positive, got {self.tau!r}: 1.0 is a good start.")

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        target_p = F.softmax(-target.cost / self.tau, dim=-1)
        return -(target_p * F.log_softmax(-outputs / self.tau, dim=-1)).sum(dim=-1)

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Set the level of each row, which the loss leaves free, to the mean training cost."""
        return outputs - outputs.mean(dim=-1, keepdim=True) + float(statistics.mean.mean())
