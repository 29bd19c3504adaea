"""Cross-entropy, and the Bayes decision on its probabilities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from ..costs._statistics import CostStatistics
from ._loss import ProbabilisticLoss, Target

# torch's softmax is slow for rows shorter than a vector register.
FEW_CLASSES = 16

# Share of a smoothed probability that remains where removing the smoothing leaves nothing. With a
# probability of zero, no cost of a mistake, however large, could change the decision.
SMALLEST_SHARE = 1e-3


@dataclass(frozen=True)
class CrossEntropy(ProbabilisticLoss):
    """Cross-entropy on the labels, and the Bayes decision: class probabilities times mean costs.

    The outputs are logits trained on the labels; costs are not used in training but in the
    decision. The estimated costs are ``P @ M`` with P the class probabilities and M the mean
    training cost vector of each class, so the smallest estimate is the decision of least risk.

    Parameters
    ----------
    smoothing : float, default=0.0
        Fraction of every training label that is spread evenly over all classes. It prevents
        overconfidence. It is removed from the estimated probabilities, so that they remain
        probabilities of the labels; a thousandth of them remains where nothing else would.

    Raises
    ------
    ValueError
        If `smoothing` is not in [0, 1).

    Examples
    --------
    >>> import torch
    >>> from auxcst_sklearn.losses import CrossEntropy, Target
    >>> logits = torch.tensor([[2.0, 0.0, 0.0]])
    >>> CrossEntropy()(logits, Target(None, torch.tensor([0])))
    tensor([0.2395])
    >>> CrossEntropy(smoothing=0.1).probabilities(logits)
    tensor([[0.8374, 0.0813, 0.0813]])
    """

    smoothing: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing is {self.smoothing!r}; expected a share in [0, 1).")

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        def loss(outputs: Tensor, label: Tensor) -> Tensor:
            return F.cross_entropy(outputs, label, reduction="none", label_smoothing=self.smoothing)

        label = target.label
        if outputs.dim() == 2:
            return loss(outputs, label)
        shape = outputs.shape[:-1]
        if outputs.dim() == 3 and outputs.shape[-1] < FEW_CLASSES:
            return loss(outputs.mT, label.expand(shape))
        return loss(outputs.flatten(0, -2), label.expand(shape).flatten()).view(shape)

    def mean(self, outputs: Tensor, target: Target) -> Tensor:
        """Mean loss of each head, in few operations."""
        if type(self).__call__ is not CrossEntropy.__call__:  # a user-defined loss
            return super().mean(outputs, target)
        label, weight = target.label, target.weight
        if outputs.dim() > 2 or weight is not None:
            return self._mean_of_heads(outputs, label, weight)
        loss = F.cross_entropy(outputs, label)
        if self.smoothing > 0:  # it adds a term linear in the outputs; torch's smoothing is slower
            low = self.smoothing / outputs.shape[1]
            change = outputs.new_full(outputs.shape, -low)
            change.scatter_(1, label.unsqueeze(1), self.smoothing - low)
            loss = loss + torch.dot(outputs.flatten(), change.flatten()) / len(outputs)
        return loss

    def _mean_of_heads(self, outputs: Tensor, label: Tensor, weight: Tensor | None) -> Tensor:
        """Log-probabilities of all heads, times the smoothed labels of all rows."""
        n, n_classes = outputs.shape[-2:]
        low = self.smoothing / n_classes
        smoothed = outputs.new_full((n_classes, n), low)
        smoothed.scatter_(0, label.unsqueeze(0), 1 - self.smoothing + low)
        if weight is not None:
            smoothed *= weight
        if n_classes < FEW_CLASSES:
            log_p = F.log_softmax(outputs.mT, dim=-2)
        else:
            log_p, smoothed = F.log_softmax(outputs, dim=-1), smoothed.t()
        return log_p.flatten(-2) @ smoothed.flatten() / -n

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Expected cost of each prediction under the class probabilities."""
        return self.probabilities(outputs) @ outputs.new_tensor(statistics.class_mean)

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Class probabilities, with the smoothing of the labels removed."""
        if outputs.shape[-1] < FEW_CLASSES:
            p = F.softmax(outputs.mT, dim=-2).mT
        else:
            p = F.softmax(outputs, dim=-1)
        if self.smoothing > 0:
            p = torch.maximum(p - self.smoothing / p.shape[-1], SMALLEST_SHARE * p)
            p = p / p.sum(dim=-1, keepdim=True)
        return p

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Initial biases: the logarithms of the class frequencies."""
        return torch.as_tensor(statistics.prior).log()
