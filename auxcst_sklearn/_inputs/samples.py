"""Samples: the rows of X with their costs, weights and groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._checks.data import check_some_weight
from ..costs._account import Costs
from ..costs._statistics import CostStatistics, unit_of
from .lazy_rows import pick

# Smaller weights, relative to the largest, vanish in float32.
SMALLEST_WEIGHT = 1e-30

# Positions of the training samples and of the validation samples.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Sample:
    """Rows of X, in any form whose rows can be selected, and what belongs to them."""

    X: Any
    costs: Costs
    weight: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.costs)

    @property
    def labels(self) -> NDArray[Any]:
        """The labels, in the type of the classes."""
        return self.costs.classes[self.costs.label]

    def part(self, index: NDArray[Any]) -> Sample:
        """Some of the rows, by their positions or a mask."""
        index = np.flatnonzero(index) if index.dtype == bool else index
        weight, groups = (f if f is None else f[index] for f in (self.weight, self.groups))
        return Sample(pick(self.X, index), self.costs.part(index), weight, groups)

    @property
    def is_weighted(self) -> NDArray[np.bool_]:
        """Mask of the rows that have a weight."""
        if self.weight is None:
            return np.ones(len(self), dtype=bool)
        mask: NDArray[np.bool_] = self.weight > SMALLEST_WEIGHT * self.weight.max()
        return mask

    def with_positive_weights(self) -> Sample:
        """Remove rows of weight 0, and rescale the other weights to a mean of 1 or more.

        Weights that count repetitions are kept. Weights that sum to 1 are increased, so that the
        row that `CostStatistics.prior` adds to each class does not outweigh all others.
        """
        if self.weight is None:
            return self
        check_some_weight(self.weight)
        keep = self.is_weighted
        sample = self if keep.all() else self.part(keep)
        weight = np.asarray(sample.weight)
        return replace(sample, weight=weight / min(weight.mean(), 1))

    @property
    def relative_weight(self) -> NDArray[Any] | None:
        """Weights with a mean of 1, as in training: a block of a stream counts by its rows."""
        return None if self.weight is None else self.weight / self.weight.mean()

    @property
    def weight_of_costs(self) -> NDArray[Any] | None:
        """Weights of the rows of the costs: of the samples, or of the classes."""
        return self.costs.class_weight(self.weight) if self.costs.per_class else self.weight

    def statistics(self) -> CostStatistics:
        """Weight and mean cost vector of each class, with their unit; the costs are in currency."""
        offset, unit = unit_of(self.costs.values, self.weight_of_costs)
        return self.costs.statistics(self.relative_weight, offset, unit)

    def statistics_after(self, before: CostStatistics, *, stream: bool) -> CostStatistics:
        """Statistics for a training that continues with these rows.

        Rows of a stream are added to the earlier ones, and all rows determine the unit. Other rows
        replace the earlier ones, perhaps in another currency.
        """
        if not stream:
            return self.statistics().completed(before)
        costs, offset, unit = self.costs, before.offset, before.unit
        if (costs.values > costs.values.min(axis=1, keepdims=True)).any():
            share = len(costs) / (len(costs) + before.weight.sum())
            own_offset, own_unit = unit_of(costs.values, self.weight_of_costs)
            offset = (1 - share) * offset + share * own_offset
            unit = (1 - share) * unit + share * own_unit
        new = costs.statistics(self.relative_weight, offset, unit)
        return before.in_unit(offset, unit).updated(new, replaces=costs.per_class)
