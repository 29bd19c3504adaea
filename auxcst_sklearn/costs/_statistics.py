"""Statistics of the training costs: weight and mean cost vector of each class."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class CostStatistics:
    """Total weight of each class (K,) and its mean cost vector (K, D); NaN where unknown."""

    weight: NDArray[Any]
    rows: NDArray[Any]

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

    def updated(self, other: CostStatistics, *, replace: bool) -> CostStatistics:
        """Combine these and others; or use the others' costs, with the weights of both."""
        weight = self.weight + other.weight
        if replace:
            return CostStatistics(weight, other.rows)
        share = np.divide(other.weight, weight, out=np.zeros_like(weight), where=weight > 0)
        share = share[:, np.newaxis]
        mixed = (1 - share) * np.nan_to_num(self.rows) + share * np.nan_to_num(other.rows)
        return CostStatistics(weight, np.where(share > 0, mixed, self.rows))

    def replaced(self, other: CostStatistics) -> CostStatistics:
        """The others; for classes without costs there, these."""
        return CostStatistics(other.weight, np.where(np.isnan(other.rows), self.rows, other.rows))

    def rescaled(self, factor: float, shift: float) -> CostStatistics:
        """The same in another unit, where a cost c becomes ``factor * c + shift``."""
        return CostStatistics(self.weight, factor * self.rows + shift)

    @property
    def mean(self) -> NDArray[Any]:
        """Mean cost vector of all rows (D,)."""
        mean: NDArray[Any] = self.weight @ np.nan_to_num(self.rows) / self.weight.sum()
        return mean

    @cached_property
    def class_mean(self) -> NDArray[Any]:
        """Mean cost vector of each class (K, D); the overall mean where unknown."""
        return np.where(np.isnan(self.rows), self.mean, self.rows)

    @property
    def prior(self) -> NDArray[Any]:
        """Frequency of each class (K,), after adding one sample to each, so that none is zero."""
        share: NDArray[Any] = (self.weight + 1) / (self.weight + 1).sum()
        return share
