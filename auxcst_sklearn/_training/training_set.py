"""The validated training set: labels, costs and weights that belong together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._checks.weights import check_some_weight
from .._inputs.lazy import pick
from ..costs._account import Costs
from ..costs._statistics import CostScale, CostStatistics
from ..losses import Target

SMALLEST_WEIGHT = 1e-30


@dataclass
class TrainingSet:
    """Validated rows, with their labels and costs."""

    X: Any
    costs: Costs
    weight: np.ndarray | None
    groups: np.ndarray | None = None

    @property
    def label(self) -> np.ndarray:
        """Place of the true class of each row."""
        return self.costs.label

    @property
    def cost(self) -> np.ndarray:
        """Costs of each row, or with `per_class` of each class."""
        return self.costs.rows

    @property
    def per_class(self) -> bool:
        """Whether the costs are those of classes."""
        return self.costs.per_class

    @property
    def matrices(self) -> np.ndarray | None:
        """Costs that are known when deciding (n_samples, n_classes, n_decisions)."""
        return self.costs.matrices

    def with_positive_weights(self) -> TrainingSet:
        """Remove rows of weight 0, and rescale the other weights to a mean of 1 or more.

        Weights that count repetitions are kept. Weights that sum to 1 are increased, so that the
        row that `CostStatistics.prior` adds to each class does not outweigh all others.
        """
        if self.weight is None:
            return self
        check_some_weight(self.weight)
        keep = self.counts
        data = self if keep.all() else self.part(keep)
        weight = np.asarray(data.weight)
        return replace(data, weight=weight / min(weight.mean(), 1))

    @property
    def counts(self) -> np.ndarray:
        """Mask of the rows with a weight; one that vanishes in float32, by the largest, is none."""
        if self.weight is None:
            return np.ones(len(self.label), dtype=bool)
        counts: np.ndarray = self.weight > SMALLEST_WEIGHT * self.weight.max()
        return counts

    def part(self, index: np.ndarray) -> TrainingSet:
        """Some of the rows."""
        index = np.flatnonzero(index) if index.dtype == bool else index
        weight, groups = (f if f is None else f[index] for f in (self.weight, self.groups))
        return TrainingSet(pick(self.X, index), self.costs.part(index), weight, groups)

    @property
    def n_classes(self) -> int:
        """Number of classes; cost columns are the decisions."""
        return len(self.costs.classes)

    @property
    def class_weight(self) -> np.ndarray:
        """Number of rows of each class, or the sum of their weights."""
        return self.costs.class_weight(self.weight)

    def scale(self) -> CostScale:
        """Unit of the costs."""
        return CostScale.of(self.cost, self.class_weight if self.per_class else self.weight)

    def in_units(self, scale: CostScale) -> TrainingSet:
        """The same rows, with costs in units of the network."""
        return replace(self, costs=self.costs.in_units(scale))

    def statistics(self) -> CostStatistics:
        """Weight and mean cost vector of each class."""
        return self.costs.statistics(self.weight)

    @property
    def constant_costs(self) -> np.ndarray:
        """Mean cost of each class as the prediction for all rows."""
        return np.average(
            self.cost, axis=0, weights=self.class_weight if self.per_class else self.weight
        )

    def target(self) -> Target:
        """Costs of every row, labels and weights, as arrays."""
        return Target(self.costs.vectors(), self.label, self.weight)
