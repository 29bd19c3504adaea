"""The validated training set: labels, costs and weights that belong together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._checks.weights import check_some_weight
from .._inputs.reading import pick
from ..costs._scale import CostScale
from ..costs._source import Costs, warn_if_truth_is_not_cheapest
from ..costs._statistics import CostStatistics
from ..losses import Target

SMALLEST_WEIGHT = 1e-30


@dataclass
class TrainingSet:
    """Validated rows; `cost` has a row for each, or with `per_class` for each class.

    `matrices` (n_samples, n_classes, n_classes) hold costs that are known when deciding.
    """

    X: Any
    label: np.ndarray
    cost: np.ndarray
    per_class: bool
    weight: np.ndarray | None
    matrices: np.ndarray | None = None
    groups: np.ndarray | None = None

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
        weight, matrices, groups = (
            None if field is None else field[index]
            for field in (self.weight, self.matrices, self.groups)
        )
        cost = self.cost if self.per_class else self.cost[index]
        label = self.label[index]
        X = pick(self.X, index)
        return TrainingSet(X, label, cost, self.per_class, weight, matrices, groups)

    @property
    def n_classes(self) -> int:
        """Number of classes; cost columns are the decisions."""
        if self.per_class:
            return len(self.cost)
        return int((self.cost if self.matrices is None else self.matrices).shape[1])

    @property
    def class_weight(self) -> np.ndarray:
        """Number of rows of each class, or the sum of their weights."""
        return np.bincount(self.label, self.weight, minlength=self.n_classes).astype(float)

    def scale(self) -> CostScale:
        """Unit of the costs."""
        return CostScale.of(self.cost, self.class_weight if self.per_class else self.weight)

    def in_units(self, scale: CostScale) -> TrainingSet:
        """The same rows, with costs in units of the network."""
        matrices = self.matrices
        if matrices is not None:
            matrices = scale.to_units(matrices).astype(np.float32)
        return replace(self, cost=scale.to_units(self.cost), matrices=matrices)

    def statistics(self) -> CostStatistics:
        """Weight and mean cost vector of each class."""
        if self.per_class:
            return CostStatistics(self.class_weight, self.cost)
        return CostStatistics.of(self.cost, self.label, self.weight, self.n_classes)

    def warn_if_truth_is_not_cheapest(self, classes: np.ndarray) -> None:
        """Warn if the true class is not the cheapest for most rows."""
        costs = Costs(self.cost, self.per_class)
        warn_if_truth_is_not_cheapest(costs, self.label, classes)

    @property
    def constant_costs(self) -> np.ndarray:
        """Mean cost of each class as the prediction for all rows."""
        return np.average(
            self.cost, axis=0, weights=self.class_weight if self.per_class else self.weight
        )

    def target(self) -> Target:
        """Costs of every row, labels and weights, as arrays."""
        cost = self.cost[self.label] if self.per_class else self.cost
        return Target(cost, self.label, self.weight)
