"""`BayesRisk` of costs that differ within a class, which a cost network learns."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..costs._problem import Problem
from ..costs._statistics import CostStatistics
from ._bayes_risk import BayesRisk, CrossEntropy
from ._loss import Loss, ProbabilisticLoss, Target

# Largest number of values computed at once for the costs of all classes, about a megabyte.
LARGEST_TABLE = 2**18

# Factors on the mean costs lie within exp(-6) and exp(6).
LARGEST_LOG_FACTOR = 6.0


@dataclass(frozen=True)
class SampleRisk(ProbabilisticLoss):
    """`BayesRisk` of costs that differ within a class; outputs are [logits, a, b], 3 K in all.

    `above` (K, K) are the mean costs of each class above each sample's smallest cost, `level` (K,)
    the means of the smallest costs, and `seen` (K,) the weights of the samples of each class.
    """

    classes: CrossEntropy
    above: Tensor = field(compare=False)
    level: Tensor = field(compare=False)
    seen: Tensor = field(compare=False)

    def _for_statistics(self, statistics: CostStatistics) -> SampleRisk:
        return replace(self, classes=self.classes._for_statistics(statistics))

    def with_samples(self, data: Problem, *, stream: bool) -> SampleRisk:
        """The loss for a training that continues with other samples, or with more in a stream.

        It has the means of new classes, and new means for zeros, which no factor can change. The
        other means are kept, because the factors have been learnt for them; in a stream, whose
        first samples may be few, they are running means.
        """
        above, level, new = _class_means(data.vectors(), data.relative_weight, data.label)
        # The share of the new samples in a running mean; it is 1 for a class that has not been seen
        # before.
        fraction = torch.where(new > 0, new / (self.seen + new), 0.0)
        of_cost = fraction.unsqueeze(1).expand_as(above)
        if not stream:
            fraction = (fraction == 1).to(above)
            # A factor on a mean of zero stays zero whatever the network learns, so these means
            # start again from the new samples.
            empty = (new > 0).unsqueeze(1) & (self.above == 0)
            of_cost = torch.where(empty, 1.0, fraction.unsqueeze(1))
        return SampleRisk(
            self.classes,
            (1 - of_cost) * self.above + of_cost * above,
            (1 - fraction) * self.level + fraction * level,
            self.seen + new,
        )

    def in_unit(self, factor: float, shift: float) -> SampleRisk:
        """The loss for another unit, in which a cost c becomes ``factor * c + shift``."""
        return replace(self, above=factor * self.above, level=factor * self.level + shift)

    @property
    def n_cost_outputs(self) -> int:
        """Number of outputs of the cost network."""
        return 2 * len(self.above)

    def __call__(self, outputs: Tensor, target: Target) -> Tensor:
        logits, a, b = outputs.chunk(3, dim=-1)
        index = target.label.expand(b.shape[:-1]).unsqueeze(-1)
        h = bound(a + b.gather(-1, index))
        mean = self.above.to(outputs)[target.label]
        # Factors are learnt for costs above the cheapest prediction. These are not negative, as the
        # Poisson deviance needs.
        excess = target.cost - target.cost.amin(dim=-1, keepdim=True)
        deviance: Tensor = (mean * h.exp() - excess * h).mean(dim=-1)
        return self.classes(logits, target) + deviance

    def to_cost(self, outputs: Tensor, statistics: CostStatistics) -> Tensor:
        """Expected cost of each prediction under the probabilities and costs of the classes."""
        rows = outputs.reshape(-1, outputs.shape[-1])
        _, a, b = rows.chunk(3, dim=-1)
        p = self.probabilities(rows)
        exact = p if p.device.type == "mps" else p.double()  # MPS has no float64
        level = (exact * self.level.to(exact)).sum(dim=-1, keepdim=True)
        costs = expected_costs(p, self.above.to(p), a, b) + level
        return costs.view(*outputs.shape[:-1], -1)

    def class_costs(self, outputs: Tensor) -> Tensor:
        """Cost of each prediction for each class of each row, (..., n_classes, n_classes)."""
        _, a, b = outputs.chunk(3, dim=-1)
        return factored_costs(self.above.to(a), a, b) + self.level.to(a).unsqueeze(-1)

    def with_temperature(self, outputs: Tensor, temperature: float) -> Tensor:
        """Logits, divided by the temperature, and unchanged factors."""
        logits, *factors = outputs.chunk(3, dim=-1)
        return torch.cat([self.classes.with_temperature(logits, temperature), *factors], dim=-1)

    def with_probabilities(self, outputs: Tensor, probability: Tensor) -> Tensor:
        """Outputs with other class probabilities, and unchanged factors."""
        logits, *factors = outputs.chunk(3, dim=-1)
        return torch.cat([self.classes.with_probabilities(logits, probability), *factors], dim=-1)

    def _has_logits(self, n_classes: int) -> bool:
        return self.classes._has_logits(n_classes)

    def probabilities(self, outputs: Tensor) -> Tensor:
        """Class probabilities, from the network of the classes only."""
        return self.classes.probabilities(outputs.chunk(3, dim=-1)[0])


def for_sample_costs(loss: Loss, data: Problem, *, stream: bool) -> Loss:
    """`SampleRisk` for costs that differ within a class, which only `BayesRisk` learns.

    Otherwise the loss itself. In a stream, later costs may differ.
    """
    if not isinstance(loss, BayesRisk) or data.kind != "vectors":
        return loss
    vectors, weight = data.vectors(), data.relative_weight
    above, level, seen = _class_means(vectors, weight, data.label)
    excess = vectors - vectors.min(axis=1, keepdims=True)
    repeated = np.allclose(excess, above.numpy()[data.label], rtol=1e-6, atol=1e-9)
    return loss if repeated and not stream else SampleRisk(loss, above, level, seen)


def _class_means(
    cost: NDArray[Any], weight: NDArray[Any] | None, label: NDArray[Any]
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean costs of each class above each sample's smallest, mean of these, and class weights."""
    lowest = cost.min(axis=1, keepdims=True)
    above = CostStatistics.of(cost - lowest, label, weight)
    level = CostStatistics.of(np.broadcast_to(lowest, cost.shape), label, weight)
    means = torch.as_tensor(above.class_mean), torch.as_tensor(level.class_mean[:, 0])
    return *means, torch.as_tensor(above.weight)


# ------------------------------------------------------------ factors on mean costs


def bound(h: Tensor) -> Tensor:
    """Logarithms of factors, bounded."""
    return LARGEST_LOG_FACTOR * torch.tanh(h / LARGEST_LOG_FACTOR)


def factored_costs(cost: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The matrix ``cost_kj exp(bound(a_j + b_k))`` of each row, (..., K, K)."""
    return cost * bound(a.unsqueeze(-2) + b.unsqueeze(-1)).exp()


def expected_costs(p: Tensor, cost: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Sum over the classes k of ``p_k cost_kj exp(bound(a_j + b_k))``, for each row (n, K)."""

    def expected(p: Tensor, a: Tensor, b: Tensor) -> Tensor:
        return (p.unsqueeze(-1) * factored_costs(cost, a, b)).sum(dim=-2)

    if torch.compiler.is_compiling():  # for an ONNX file, in which nothing may depend on the rows
        return expected(p, a, b)
    # The table of all classes and predictions is computed for some rows at a time, because n K²
    # numbers may not fit into memory.
    size = max(1, LARGEST_TABLE // cost.numel())
    return torch.cat([*map(expected, p.split(size), a.split(size), b.split(size))])
