"""Losses with class probabilities, for decisions with the minimum expected cost."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

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

    The outputs are logits that learn the labels. Costs are used in the decision, not in training.
    The estimated costs are ``P @ M``. P are the class probabilities, and M contains the mean
    training cost vector of each class. The smallest estimate is the minimum expected cost.

    Parameters
    ----------
    smoothing : float, default=0.0
        Fraction of every training label that is spread evenly over all classes. It prevents
        overconfidence. It is removed from the estimated probabilities, so that they remain
        probabilities of the labels. If nothing would remain of a probability, a thousandth is kept.

        Costs are extreme if decisions depend on class probabilities below ``1 / (100 n_classes)``.
        Estimators then spread the fraction in proportion to the class frequencies and do not remove
        it from the probabilities. Also, no probability is then below ``1 / n / (n_classes - 1)``
        for n training samples, because they cannot show that a class is rarer.

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

    # Set for extreme costs: the class frequencies, and the smallest probability. They are not
    # fields, so that losses with equal parameters are equal.
    _frequency = None
    _smallest = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.smoothing < 1:
            raise ValueError(f"smoothing={self.smoothing!r}; expected a fraction in [0, 1).")

    def _for_statistics(self, statistics: CostStatistics) -> CrossEntropy:
        """Return a copy for extreme costs, which smooths towards the class frequencies.

        Rounding and noise of the outputs would hide a probability that is far below an even share.
        The copy does not remove it, because networks are too sure of small probabilities.
        """
        n, n_classes = statistics.weight.sum(), len(statistics.weight)
        # Under extreme costs, an even share of the smoothing is far above the probabilities that
        # decisions depend on. Its inversion would then subtract two nearly equal numbers.
        if self.smoothing == 0 or not statistics.is_extreme:
            return self
        bound = copy(self)
        # The dataclass is frozen. Writing to its dict leaves equality and the stored parameters as
        # they are.
        vars(bound)["_frequency"] = torch.as_tensor(statistics.prior)
        vars(bound)["_smallest"] = float(1 / n / (n_classes - 1))
        return bound

    def _low(self, outputs: Tensor) -> Tensor:
        """What the smoothing adds to the probability of each class."""
        if self._frequency is None:
            n_classes = outputs.shape[-1]
            return outputs.new_full((n_classes,), self.smoothing / n_classes)
        return self.smoothing * self._frequency.to(outputs)

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        label, shape = target.label, outputs.shape[:-1]
        is_even = self._frequency is None  # which torch computes faster
        settings: Any = {"reduction": "none", "label_smoothing": self.smoothing if is_even else 0.0}
        # With few classes, torch's kernel over the last dimension uses a small part of a vector
        # register; the transposed one runs over rows.
        if outputs.dim() == 3 and outputs.shape[-1] < FEW_CLASSES:
            loss = F.cross_entropy(outputs.mT, label.expand(shape), **settings)
        else:
            rows, labels = outputs.flatten(0, -2), label.expand(shape).flatten()
            loss = F.cross_entropy(rows, labels, **settings).view(shape)
        if not is_even:  # a term linear in the outputs, as the smoothed labels sum to one
            own = outputs.gather(-1, label.expand(shape).unsqueeze(-1)).squeeze(-1)
            loss = loss + self.smoothing * own - outputs @ self._low(outputs)
        return loss

    def _mean(self, outputs: Tensor, target: Target) -> Tensor:
        """Mean loss of each head, in few operations."""
        if type(self).__call__ is not CrossEntropy.__call__:  # a user-defined loss
            return super()._mean(outputs, target)
        label, weight, (n, n_classes) = target.label, target.weight, outputs.shape[-2:]
        low = self._low(outputs)
        if outputs.dim() == 2 and weight is None:
            loss = F.cross_entropy(outputs.mT.unsqueeze(0), label.unsqueeze(0))
            if self.smoothing > 0:  # a term linear in the outputs; torch's smoothing is slower
                change = -low.repeat(n, 1)
                change.scatter_add_(1, label.unsqueeze(1), low.new_full((n, 1), self.smoothing))
                loss = loss + torch.dot(outputs.flatten(), change.flatten()) / n
            return loss
        # Log-probabilities of all heads, times the smoothed labels of all rows.
        smoothed = low.unsqueeze(1).repeat(1, n)
        smoothed.scatter_add_(0, label.unsqueeze(0), low.new_full((1, n), 1 - self.smoothing))
        if weight is not None:
            smoothed *= weight
        if n_classes < FEW_CLASSES:
            log_p = F.log_softmax(outputs.mT, dim=-2)
        else:
            log_p, smoothed = F.log_softmax(outputs, dim=-1), smoothed.t()
        return log_p.flatten(-2) @ smoothed.flatten() / -n

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Return class probabilities, from which even smoothing of the labels is removed."""
        if outputs.shape[-1] < FEW_CLASSES:
            p = F.softmax(outputs.mT, dim=-2).mT
        else:
            p = F.softmax(outputs, dim=-1)
        if self.smoothing > 0 and self._frequency is None:
            # A network that learns smoothed labels q = (1 - s) p + s / K is inverted by subtracting
            # s / K. Noise can make the difference negative, so a small share of q remains. No
            # probability is zero, so that a higher cost can change any decision.
            p = torch.maximum(p - self._low(p), SMALLEST_SHARE * p)
            p = p / p.sum(dim=-1, keepdim=True)
        if self._smallest > 0:
            p = p.clamp(min=self._smallest)
            p = p / p.sum(dim=-1, keepdim=True)
        return p

    def with_probabilities(self, outputs: Tensor, probability: Tensor) -> Tensor:
        """Return outputs with other class probabilities, to which even smoothing is added."""
        if self._frequency is not None:
            return probability.log()
        return ((1 - self.smoothing) * probability + self._low(probability)).log()


@dataclass(frozen=True)
class BayesRisk(CrossEntropy):
    """Class probabilities times the costs of each class, which may depend on the sample.

    The probabilities are learnt as in :class:`CrossEntropy`, from smoothed labels. Output and heads
    learn labels, and costs are used only in the decision. If all samples of a class have the same
    costs, the estimates use these costs. Costs that differ within a class are learnt by a *cost
    network* of the same shape. For true class k and prediction j, it computes a factor on their
    mean M_kj. The estimates are ::

        r_j(x) = sum_k P(k | x) M_kj exp(h_kj(x)),    h = 6 tanh((a_j + b_k) / 6)

    with 2 K outputs a and b, which start at zero. They learn the costs c of the true class y, minus
    the smallest cost of each sample. Their loss is the Poisson deviance, the mean over j of
    ``M_yj exp(h_yj) - c_j h_yj``. Its minimum is the conditional mean. Only the network of the
    classes has auxiliary heads.

    Parameters
    ----------
    smoothing : float, default=0.05
        Fraction of every training label that is spread over all classes (see
        :class:`CrossEntropy`).

    Raises
    ------
    ValueError
        If `smoothing` is not in [0, 1).

    Examples
    --------
    >>> import numpy as np
    >>> from auxcst_sklearn import CostSensitiveAuxMLP
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(300, 1))
    >>> y = rng.integers(2, size=300)                    # independent of X
    >>> cost = np.zeros((300, 2))
    >>> cost[y == 1, 0] = 10 * X[y == 1, 0]              # a missed 1 costs more for large X
    >>> cost[y == 0, 1] = 5
    >>> model = CostSensitiveAuxMLP(1, 32, loss="bayes_risk", n_networks=2, random_state=0)
    >>> model.fit(X, y, cost=cost).predict([[0.1], [0.9]])
    array([0, 1])
    """

    smoothing: float = 0.05
