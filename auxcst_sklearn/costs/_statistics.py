"""Statistics of the training costs, in their unit inside a network."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Largest cost, in units of the mean cost above the smallest; float64 has 16 digits.
LARGEST = 1e15
# Mistakes that cost a smaller share of the best constant decision are not a matter of precision.
MATERIAL = 0.05
# Costs are extreme if decisions depend on class probabilities below this share of an even one: with
# two classes, if a miss costs as much as 200 alarms.
EXTREME_SHARE = 2 / 201


@dataclass(frozen=True)
class CostStatistics:
    """Total weight of each class (K,) and its mean cost vector (K, D); NaN where unknown.

    The mean costs are in units: a cost is ``offset + unit * r`` in the caller's currency, and r
    inside a network.
    """

    weight: NDArray[Any]
    costs: NDArray[Any]
    offset: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(
        cls,
        cost: NDArray[Any],
        label: NDArray[Any],
        weight: NDArray[Any] | None = None,
        n_classes: int | None = None,
    ) -> CostStatistics:
        """Statistics of cost vectors (n, D) of rows with label indices (n,); D classes if None."""
        n_classes = n_classes or cost.shape[1]
        total = np.zeros((n_classes, cost.shape[1]))
        np.add.at(total, label, cost if weight is None else cost * weight[:, np.newaxis])
        weight = np.bincount(label, weight, minlength=n_classes).astype(float)
        divisor = np.where(weight > 0, weight, np.nan)
        return cls(weight, total / divisor[:, np.newaxis])

    def merge(self, other: CostStatistics, *, replaces: bool) -> CostStatistics:
        """Statistics of these rows and others; or with the costs of the others alone."""
        weight = self.weight + other.weight
        if replaces:
            return replace(self, weight=weight, costs=other.costs)
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        share = share[:, np.newaxis]
        mixed = (1 - share) * np.nan_to_num(self.costs) + share * np.nan_to_num(other.costs)
        return replace(self, weight=weight, costs=np.where(share > 0, mixed, self.costs))

    def complete(self, other: CostStatistics) -> CostStatistics:
        """These, with the costs of others for the classes that have none here."""
        costs = other.in_unit(self.offset, self.unit).costs
        return replace(self, costs=np.where(np.isnan(self.costs), costs, self.costs))

    def in_unit(self, offset: float, unit: float) -> CostStatistics:
        """The same in another unit."""
        factor, shift = self.unit / unit, (self.offset - offset) / unit
        return CostStatistics(self.weight, factor * self.costs + shift, offset, unit)

    @property
    def mean(self) -> NDArray[Any]:
        """Mean cost vector of all rows (D,)."""
        return self.weight @ np.nan_to_num(self.costs) / self.weight.sum()

    @cached_property
    def class_mean(self) -> NDArray[Any]:
        """Mean cost vector of each class (K, D); the overall mean where unknown."""
        return np.where(np.isnan(self.costs), self.mean, self.costs)

    @property
    def prior(self) -> NDArray[Any]:
        """Frequency of each class (K,), after adding one sample to each, so that none is zero."""
        return (self.weight + 1) / (self.weight + 1).sum()

    @property
    def smallest_threshold(self) -> float:
        """The smallest class probability that changes a decision between two classes that matters.

        If class i has the other probability, the best decision for class k becomes the cheapest
        where p_k exceeds ``regret_ik / (regret_ik + regret_ki)``: what the best decision for the
        other class costs more in class i, and in class k. It matters if it costs a `MATERIAL` share
        of the best constant decision, so that costs near zero do not count.
        """
        cost, share = self.class_mean, self.weight / self.weight.sum()
        of_best = cost[:, cost.argmin(axis=1)]
        regret = of_best - of_best.diagonal()[:, np.newaxis]
        constant = (share @ (cost - cost.min(axis=1, keepdims=True))).min()
        both = (regret > 0) & (regret.T > 0)
        both &= share[:, np.newaxis] * regret > MATERIAL * constant
        return float((regret[both] / (regret + regret.T)[both]).min(initial=1.0))

    @property
    def is_extreme(self) -> bool:
        """Whether decisions depend on so small probabilities that rows hardly show them."""
        return self.smallest_threshold * len(self.weight) <= EXTREME_SHARE

    def to_units(self, cost: NDArray[Any]) -> NDArray[Any]:
        """Convert costs to units of the network; huge costs do not overflow."""
        return cost / self.unit - self.offset / self.unit

    def to_currency(self, estimate: NDArray[Any]) -> NDArray[Any]:
        """Convert estimates to the caller's currency."""
        return estimate * self.unit + self.offset


def unit_of(cost: NDArray[Any], weight: NDArray[Any] | None = None) -> tuple[float, float]:
    """Offset and unit of cost vectors (m, K), each counted `weight` times.

    The offset is the mean of the row minima, and the unit is the mean cost above them, so that
    training depends neither on the currency nor on a fee common to all decisions.
    """
    # Dividing by the largest value first keeps sums of huge costs finite.
    largest = np.abs(cost).max()
    if largest == 0:
        return 0.0, 1.0
    relative = cost / largest
    lowest = relative.min(axis=1)
    above = relative - lowest[:, np.newaxis]
    offset = largest * np.average(lowest, weights=weight)
    share = np.average(above, axis=0, weights=weight).sum()
    count = np.average(above > 0, axis=0, weights=weight).sum()
    unit = largest * (share / count) if count > 0 else 0.0
    if unit > 0 and float(largest) / float(unit) > LARGEST:
        raise ValueError(
            f"cost contains values of {largest:.3g}, but the costs of a row exceed their smallest "
            f"by {unit:.3g} on average; such differences are lost in rounding. Subtract the "
            "smallest cost of each row, which changes no decision, or correct the values."
        )
    return float(offset), float(unit) if unit > 0 else 1.0
