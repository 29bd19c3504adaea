"""Costs inside a network: their unit, and what a training set says about them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CostScale:
    """Affine map between the caller's currency and costs of order one.

    The offset is the mean of the row minima, the unit the mean of what lies above them, so that
    learning depends neither on the currency nor on a fee that every decision pays.
    """

    offset: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, cost: NDArray, weight: NDArray | None = None) -> CostScale:
        """Scale of cost vectors (m, K), each counted `weight` times."""
        # Dividing by the largest value first keeps sums of huge costs finite.
        largest = np.abs(cost).max()
        if largest == 0:
            return cls()
        relative = cost / largest
        lowest = relative.min(axis=1)
        above = relative - lowest[:, np.newaxis]
        offset = largest * np.average(lowest, weights=weight)
        share = np.average(above, axis=0, weights=weight).sum()
        count = np.average(above > 0, axis=0, weights=weight).sum()
        unit = largest * (share / count) if count > 0 else 0.0
        return cls(float(offset), float(unit) if unit > 0 else 1.0)

    def to_units(self, cost: NDArray) -> NDArray:
        """Costs as the network sees them."""
        return cost / self.unit - self.offset / self.unit  # huge costs do not overflow

    def to_currency(self, estimate: NDArray) -> NDArray:
        """Estimates as the caller sees them."""
        return estimate * self.unit + self.offset


@dataclass(frozen=True)
class CostStatistics:
    """Total weight of each class (K,) and its mean cost vector (K, K); NaN where none is known."""

    weight: NDArray
    rows: NDArray

    @classmethod
    def of(cls, cost: NDArray, label: NDArray, weight: NDArray | None = None) -> CostStatistics:
        """Statistics of cost vectors (n, K) of examples with label indices (n,)."""
        n_classes = cost.shape[1]
        total = np.zeros((n_classes, n_classes))
        np.add.at(total, label, cost if weight is None else cost * weight[:, np.newaxis])
        weight = np.bincount(label, weight, minlength=n_classes).astype(float)
        divisor = np.where(weight > 0, weight, np.nan)
        return cls(weight, total / divisor[:, np.newaxis])

    def updated(self, other: CostStatistics, *, replace: bool) -> CostStatistics:
        """These and others together; or the others' costs, with the weights of both."""
        weight = self.weight + other.weight
        if replace:
            return CostStatistics(weight, other.rows)
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        share = share[:, np.newaxis]
        mixed = (1 - share) * np.nan_to_num(self.rows) + share * np.nan_to_num(other.rows)
        return CostStatistics(weight, np.where(share > 0, mixed, self.rows))

    @property
    def mean(self) -> NDArray:
        """Mean cost vector of all examples (K,)."""
        return self.weight @ np.nan_to_num(self.rows) / self.weight.sum()

    @cached_property
    def class_mean(self) -> NDArray:
        """Mean cost vector of each class (K, K); where none is known, the overall mean."""
        return np.where(np.isnan(self.rows), self.mean, self.rows)

    @property
    def prior(self) -> NDArray:
        """Share of each class (K,), after adding one example to each, so that none is zero."""
        return (self.weight + 1) / (self.weight + 1).sum()
