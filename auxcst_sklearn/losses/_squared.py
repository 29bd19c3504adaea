"""Squared regression of the costs."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from ._loss import Loss, Target


@dataclass(frozen=True)
class Squared(Loss):
    """Squared error, the sum of ``(r - c) ** 2``: estimates are conditional mean costs.

    The outputs are the estimated costs. A fee that a row pays for every decision is part of its
    costs, and is learnt with them; subtract it first if it varies much from row to row.

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
        loss: Tensor = (outputs - target.cost).square().sum(dim=-1)
        return loss
