"""The one-sided loss of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ._loss import Loss, Target


def one_sided_sign(cost: Tensor) -> Tensor:
    """z of the one-sided losses: +1 at every cheapest prediction of the row, else -1."""
    return 1 - 2 * (cost - cost.amin(dim=-1, keepdim=True)).sign()


@dataclass(frozen=True)
class OneSided(Loss):
    """One-sided regression: estimates may undershoot the smallest cost and overshoot the others.

    The loss of outputs r against costs c is the sum over k of ``max(z_k (r_k - c_k), 0)``, with z =
    +1 where c_k is the smallest cost of the row, and -1 elsewhere. If the smallest cost is 0, the
    loss bounds the cost of the prediction argmin r from above.

    The outputs are the estimated costs, and so are those of the auxiliary heads.

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
        return F.relu(one_sided_sign(target.cost) * (outputs - target.cost)).sum(dim=-1)
