"""The expected cost of every prediction, also if costs differ from sample to sample."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from ..costs._statistics import CostStatistics
from ._cost_factors import bounded, cost_matrices, expected_costs
from ._cross_entropy import CrossEntropy
from ._loss import Loss, ProbabilisticLoss, Target

# Largest number of values computed at once for the costs of all classes, about a megabyte.
LARGEST_TABLE = 2**18


@dataclass(frozen=True)
class BayesRisk(CrossEntropy):
    """Class probabilities times the costs of each class, which may depend on the sample.

    The probabilities are those of :class:`CrossEntropy`, with smoothed labels: output and heads
    learn labels, and costs are used only in the decision. If all samples of a class have the same
    costs, the estimates use these costs. Costs that differ within a class are learnt by a *cost
    network* of the same shape: it computes, for true class k and prediction j, a factor on their
    mean M_kj, so that the estimates are ::

        r_j(x) = sum_k P(k | x) M_kj exp(h_kj(x)),    h = 6 tanh((a_j + b_k) / 6)

    with 2 K outputs a and b, which start at zero. They are trained on the costs of the true class
    y, minus the smallest cost of each sample, by the Poisson deviance, whose minimum is the
    conditional mean: the mean over j of ``M_yj exp(h_yj) - c_j h_yj``. Only the network of the
    classes has auxiliary heads.

    Parameters
    ----------
    smoothing : float, default=0.05
        Fraction of every training label that is spread evenly over all classes; see
        :class:`CrossEntropy`.

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
    >>> cost[y == 1, 0] = 10 * X[y == 1, 0]              # but what a missed 1 costs
    >>> cost[y == 0, 1] = 5
    >>> model = CostSensitiveAuxMLP(1, 32, loss="bayes_risk", n_networks=2, random_state=0)
    >>> model.fit(X, y, cost=cost).predict([[0.1], [0.9]])
    array([0, 1])
    """

    smoothing: float = 0.05

    def for_sample_costs(self, target: Target, stream: bool = False) -> Loss:
        """Return the loss for per-sample costs: this one, if they only repeat those of classes."""
        above, level, seen = _class_means(target)
        excess = target.cost - target.cost.min(axis=1, keepdims=True)
        repeated = np.allclose(excess, above.numpy()[target.label], rtol=1e-6, atol=1e-9)
        if repeated and not stream:
            return self
        return SampleRisk(self, above, level, seen)


@dataclass(frozen=True)
class SampleRisk(ProbabilisticLoss):
    """`BayesRisk` of costs that differ within a class; outputs are [logits, a, b], 3 K in all."""

    classes: CrossEntropy
    above: Tensor = field(compare=False)
    level: Tensor = field(compare=False)
    seen: Tensor = field(compare=False)

    def for_more_samples(self, target: Target, stream: bool = False) -> Loss:
        """Set the means of new classes, and replace zeros, which no factor can change.

        The other means are kept, because the factors have been learnt for them; in a stream, whose
        first samples may be few, they are running means.
        """
        above, level, weight = _class_means(target)
        fraction = torch.where(weight > 0, weight / (self.seen + weight), 0.0)
        of_cost = fraction.unsqueeze(1).expand_as(above)
        if not stream:
            fraction = (fraction == 1).to(above)
            empty = (weight > 0).unsqueeze(1) & (self.above == 0)
            of_cost = torch.where(empty, 1.0, fraction.unsqueeze(1))
        return SampleRisk(
            self.classes,
            (1 - of_cost) * self.above + of_cost * above,
            (1 - fraction) * self.level + fraction * level,
            self.seen + weight,
        )

    def rescaled(self, factor: float, shift: float) -> Loss:
        """Convert the means of the classes to another unit."""
        return replace(self, above=factor * self.above, level=factor * self.level + shift)

    def n_cost_outputs(self, n_classes: int) -> int:
        """Outputs of the cost network."""
        return 2 * n_classes

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        logits, a, b = outputs.chunk(3, dim=-1)
        index = target.label.expand(b.shape[:-1]).unsqueeze(-1)
        h = bounded(a + b.gather(-1, index))
        mean = self.above.to(outputs)[target.label]
        excess = target.cost - target.cost.amin(dim=-1, keepdim=True)
        deviance: Tensor = (mean * h.exp() - excess * h).mean(dim=-1)
        return self.classes(logits, target) + deviance

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Expected cost of each prediction under the probabilities and costs of the classes."""
        rows = outputs.reshape(-1, outputs.shape[-1])
        _, a, b = rows.chunk(3, dim=-1)
        p = self.probabilities(rows)
        level = (p * self.level.to(p)).sum(dim=-1, keepdim=True)
        costs = expected_costs(p, self.above.to(p), a, b, LARGEST_TABLE) + level
        return costs.view(*outputs.shape[:-1], -1)

    def cost_matrices(self, outputs: Tensor) -> Tensor:
        """Cost of each prediction for each class of each row, (..., n_classes, n_classes)."""
        _, a, b = outputs.chunk(3, dim=-1)
        matrices: Tensor = cost_matrices(self.above.to(a), a, b) + self.level.to(a).unsqueeze(-1)
        return matrices

    def with_temperature(self, outputs: Tensor, temperature: float) -> Tensor:
        """Logits, divided by the temperature, and unchanged factors."""
        logits, *factors = outputs.chunk(3, dim=-1)
        return torch.cat([self.classes.with_temperature(logits, temperature), *factors], dim=-1)

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Class probabilities, from the network of the classes only."""
        return self.classes.probabilities(outputs.chunk(3, dim=-1)[0])

    def start_bias(self, statistics: CostStatistics) -> Tensor:
        """Initial biases: the logarithms of the class frequencies."""
        return self.classes.start_bias(statistics)


def _class_means(target: Target) -> tuple[Tensor, Tensor, Tensor]:
    """Mean costs of each class above each sample's smallest, mean of these, and class weights."""
    cost, label, weight, _ = target
    lowest = cost.min(axis=1, keepdims=True)
    above = CostStatistics.of(cost - lowest, label, weight)
    level = CostStatistics.of(np.broadcast_to(lowest, cost.shape), label, weight)
    means = torch.as_tensor(above.class_mean), torch.as_tensor(level.class_mean[:, 0])
    return *means, torch.as_tensor(above.weight)
