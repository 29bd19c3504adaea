"""The smooth one-sided loss of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ._loss import Loss, Target
from ._one_sided import one_sided_sign


@dataclass(frozen=True)
class SmoothOneSided(Loss):
    """The smooth upper bound of the one-sided loss: the sum of ``ln(1 + exp(z (r - c)))``.

    The outputs are the estimated costs. CSDNN is pretrained with this loss.

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
    tensor([2.4584])
    """

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        return F.softplus(one_sided_sign(target.cost) * (outputs - target.cost)).sum(dim=-1)
