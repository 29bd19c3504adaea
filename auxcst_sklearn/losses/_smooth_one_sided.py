"""The smooth one-sided loss of the paper."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ._loss import Loss, Target
from ._one_sided import one_sided_sign


@dataclass(frozen=True)
class SmoothOneSided(Loss):
    """The smooth upper bound of the one-sided loss.

    The sum over the classes of ``tau ln(1 + exp(z (r - c) / tau))``, with z as in `OneSided`.
    The outputs are the estimated costs. CSDNN is pretrained with this loss.

    Parameters
    ----------
    tau : float, default=0.1
        Width of the smoothing, in units of the mean cost above each row's minimum. For `tau`
        towards 0 the loss becomes the one-sided loss. The formula of the paper has tau = 1 in
        currency, which corresponds to `tau` = 0.2 if a mistake costs 5 on average, as with
        randomized proportional costs of balanced classes. In our measurements, larger widths gave
        higher costs.

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
                f"tau must be positive, got {self.tau!r}: 0.1 is a good start, and OneSided() has "
                "no smoothing."
            )

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        excess = one_sided_sign(target.cost) * (outputs - target.cost)
        return self.tau * F.softplus(excess / self.tau).sum(dim=-1)
