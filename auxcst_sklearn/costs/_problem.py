"""A problem: samples with their classes, costs, weights and groups, read once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from .._checks.calls import warn
from .._checks.data import check_row_order, check_weight
from .._checks.labels import check_groups, check_labels, label_index, shorten
from .._checks.lazy_rows import pick
from ._labelled import LabelledCosts
from ._labels import columns_of, find_labels, warn_of_lost_order
from ._reading import AROUND, CostArray, Kind, read_source
from ._statistics import CostStatistics, unit_of

# Smaller weights, relative to the largest, vanish in float32.
SMALLEST_WEIGHT = 1e-30

# Positions of the training samples and of the validation samples.
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]


@dataclass(frozen=True)
class Problem:
    """Samples, and what belongs to them.

    `label` (n,) has the positions of the true classes in `classes`. `costs` are of a `kind`:
    "matrix" (K, D), one for all samples; "matrices" (n, K, D), one for each sample, known when
    deciding; "vectors" (n, D), the costs of each decision given the true class. `X` are rows in any
    form whose rows can be selected, or None where only decisions are priced.
    """

    label: NDArray[np.int64]
    classes: NDArray[Any]
    decisions: NDArray[Any]
    costs: NDArray[Any]
    kind: Kind
    X: Any = None
    weight: NDArray[np.float64] | None = None
    groups: NDArray[Any] | None = None

    @classmethod
    def of(
        cls,
        label: NDArray[np.intp],
        classes: NDArray[Any],
        decisions: NDArray[Any],
        costs: CostArray | None,
        **of_samples: Any,
    ) -> Problem:
        """Samples with class indices; without any costs every mistake costs 1."""
        values = 1 - np.eye(len(classes)) if costs is None else costs.align(classes, decisions)
        kind: Kind = "matrix" if costs is None else costs.kind
        label = label.astype(np.int64, copy=False)
        return cls(label, classes, decisions, values, kind, **of_samples)

    def __len__(self) -> int:
        return len(self.label)

    # ------------------------------------------------------------------ labels

    @property
    def labels(self) -> NDArray[Any]:
        """The labels of the samples, in the type of the classes."""
        return self.classes[self.label]

    @property
    def other_decisions(self) -> NDArray[Any] | None:
        """The decisions; None where they are the classes, in their order."""
        return None if np.array_equal(self.decisions, self.classes) else self.decisions

    # ------------------------------------------------------------------- costs

    @property
    def is_known(self) -> bool:
        """Whether each sample has a matrix of its own, by which it is decided."""
        return self.kind == "matrices"

    @cached_property
    def values(self) -> NDArray[Any]:
        """Costs of the classes (K, D), or the cost vectors of the samples (n, D)."""
        return self.costs[np.arange(len(self)), self.label] if self.is_known else self.costs

    def vectors(self) -> NDArray[Any]:
        """The cost of each decision for each sample, given its true class (n, D)."""
        return self.costs[self.label] if self.kind == "matrix" else self.values

    def paid(self, chosen: NDArray[np.intp]) -> NDArray[Any]:
        """The cost of the chosen decision of each sample."""
        return self.vectors()[np.arange(len(chosen)), chosen]

    def matrix(self) -> NDArray[Any]:
        """One matrix for all samples (K, D); costs that differ are averaged by class."""
        if self.kind == "matrix":
            return self.costs
        n_classes = len(self.classes)
        return CostStatistics.of(self.values, self.label, self.weight, n_classes).class_mean

    def expected_cost(self, probability: NDArray[Any]) -> NDArray[np.float64]:
        """Expected cost of each decision (n, D) under class probabilities."""
        return expected_cost(probability, self.costs if self.is_known else self.matrix())

    def with_labels(self) -> LabelledCosts:
        """The costs with their labels, as a user would pass them."""
        classes = None if self.kind == "vectors" else self.classes
        return LabelledCosts.of_own(self.costs.view(), classes, self.decisions)

    def in_units(self, statistics: CostStatistics) -> Problem:
        """The same with costs in units of a network."""
        costs = statistics.to_units(self.costs)
        return replace(self, costs=costs.astype(np.float32) if self.is_known else costs)

    # ------------------------------------------------------- parts and weights

    def take(self, index: NDArray[Any]) -> Problem:
        """Some of the samples, by their positions or a mask."""
        index = np.flatnonzero(index) if index.dtype == bool else index
        weight, groups = (f if f is None else f[index] for f in (self.weight, self.groups))
        costs = self.costs if self.kind == "matrix" else self.costs[index]
        X = None if self.X is None else pick(self.X, index)
        label = self.label[index]
        return replace(self, label=label, costs=costs, X=X, weight=weight, groups=groups)

    @property
    def is_weighted(self) -> NDArray[np.bool_]:
        """Mask of the samples that have a weight."""
        if self.weight is None:
            return np.ones(len(self), dtype=bool)
        mask: NDArray[np.bool_] = self.weight > SMALLEST_WEIGHT * self.weight.max()
        return mask

    def with_positive_weights(self) -> Problem:
        """Remove samples of weight 0, and rescale the other weights to a mean of 1 or more.

        Weights that count repetitions are kept. Weights that sum to 1 are increased, so that the
        sample that `CostStatistics.prior` adds to each class does not outweigh all others.
        """
        if self.weight is None:
            return self
        keep = self.is_weighted
        kept = self if keep.all() else self.take(keep)
        weight = np.asarray(kept.weight)
        return replace(kept, weight=weight / min(weight.mean(), 1))

    @property
    def relative_weight(self) -> NDArray[Any] | None:
        """Weights with a mean of 1, as in training: a block of a stream counts by its samples."""
        return None if self.weight is None else self.weight / self.weight.mean()

    def class_weight(self, weight: NDArray[Any] | None) -> NDArray[Any]:
        """Number of samples of each class, or the sum of their weights."""
        return np.bincount(self.label, weight, minlength=len(self.classes)).astype(float)

    @property
    def weight_of_values(self) -> NDArray[Any] | None:
        """Weights of the rows of `values`: of the classes, or of the samples."""
        return self.class_weight(self.weight) if self.kind == "matrix" else self.weight

    def statistics(self, unit: tuple[float, float] | None = None) -> CostStatistics:
        """Weight and mean cost vector of each class; the costs are in currency.

        They are in a unit, (offset, unit), by default that of these costs.
        """
        weight = self.relative_weight
        offset, unit_cost = unit or unit_of(self.values, self.weight_of_values)
        values = self.values / unit_cost - offset / unit_cost
        if self.kind == "matrix":
            return CostStatistics(self.class_weight(weight), values, offset, unit_cost)
        statistics = CostStatistics.of(values, self.label, weight, len(self.classes))
        return replace(statistics, offset=offset, unit=unit_cost)

    def statistics_after(self, before: CostStatistics, *, stream: bool) -> CostStatistics:
        """Statistics for a training that continues with these samples.

        Samples of a stream are added to the earlier ones, and all samples determine the unit. Other
        samples replace the earlier ones, perhaps in another currency.
        """
        if not stream:
            return self.statistics().complete(before)
        offset, unit, values = before.offset, before.unit, self.values
        if (values > values.min(axis=1, keepdims=True)).any():
            share = len(self) / (len(self) + before.weight.sum())
            own_offset, own_unit = unit_of(values, self.weight_of_values)
            offset = (1 - share) * offset + share * own_offset
            unit = (1 - share) * unit + share * own_unit
        new = self.statistics((offset, unit))
        return before.in_unit(offset, unit).merge(new, replaces=self.kind == "matrix")

    def by_name(self) -> dict[str, Any]:
        """All that was given, by the name of the argument, for digests."""
        names = {"label": "y", "weight": "sample_weight", "costs": "cost"}
        return {names.get(f.name, f.name): getattr(self, f.name) for f in fields(self)}


# ----------------------------------------------------------------------------------- reading


def read_problem(
    X: Any,
    y: Any,
    read: Callable[[Any, Any], tuple[Any, NDArray[Any]]],
    *,
    cost: Any = None,
    cost_matrix: Any,
    sample_weight: Any = None,
    groups: Any = None,
    classes: Any = None,
    decisions: Any = None,
    owner: str = "",
    must_name_classes: bool = False,
    required: bool = False,
    suffix: str = "",
    **of_samples: Any,
) -> Problem:
    """The problem of a `fit`, with warnings of likely mistakes.

    `read` validates X and the labels. `of_samples` are other arguments for each sample. `owner` is
    the name of the estimator, for errors. A stream `must_name_classes`, because later blocks may
    have others. Costs may be `required`. A validation set, whose arguments have names with a
    `suffix`, gives no second warning of its costs.
    """
    check_labels(y, f"y{suffix}")
    given = {f"X{suffix}": X, f"y{suffix}": y, f"cost{suffix}": cost}
    given |= {f"sample_weight{suffix}": sample_weight, "groups": groups}
    check_row_order(**given, **of_samples)
    rows, labels = read(X, y)
    costs = read_source(cost, cost_matrix, len(labels), X, owner, required=required)
    if must_name_classes and classes is None and getattr(costs, "decisions", None) is None:
        raise ValueError(
            "classes must be passed at the first call to partial_fit: all labels that "
            "can ever occur, in classes= here or in the constructor."
        )
    warn_of_lost_order(costs, decisions if classes is None else classes, y=y)
    problem = replace(_with_labels(labels, costs, classes, decisions), X=rows)
    if not suffix:
        _warn_if_truth_is_not_cheapest(problem, costs)
    weight = check_weight(sample_weight, labels)
    groups = None if groups is None else check_groups(groups, labels)
    return replace(problem, weight=weight, groups=groups)


def _with_labels(y: NDArray[Any], costs: CostArray | None, classes: Any, decisions: Any) -> Problem:
    """Training samples with their costs. The caller, costs or labels name the classes."""
    check_classification_targets(y)
    if classes is not None and not np.array_equal(np.unique(classes), np.array(classes)):
        raise ValueError(
            f"classes={np.asarray(classes).tolist()} must list each label once, in sorted "
            "order, as classes_. For costs in another order, use a DataFrame with labels."
        )
    labels, columns = find_labels(costs, np.unique(y), classes, decisions)
    if len(labels) < 2:
        source = "y" if classes is None else f"classes={np.asarray(classes).tolist()}"
        raise ValueError(
            f"{source} contains 1 class only, {labels.tolist()}; a classifier needs at least "
            "two. If the others have no sample here, name all classes in classes=."
        )
    if columns is not labels and (costs is None or costs.kind == "vectors"):
        raise ValueError(
            f"The decisions {shorten(columns)} have no costs for each class; expected "
            "cost_matrix, or a cost matrix for each sample. Cost vectors are for classes."
        )
    of_costs = costs is not None and classes is None and costs.decisions is not None
    source = f", the labels of {costs.name}" if of_costs and costs is not None else ""
    if costs is not None and costs.of_function:
        source += f". {AROUND.removesuffix('.')}"
    return Problem.of(label_index(y, labels, name="y", source=source), labels, columns, costs)


# The first thing to look at where costs are computed from X.
_CHANGED_X = (
    "the function of X got columns that a step before has changed, such as a scaled amount "
    f"({AROUND.removesuffix('.')}), "
)


def _warn_if_truth_is_not_cheapest(problem: Problem, costs: CostArray | None) -> None:
    """Warn if for most samples of a class another class costs less than the true one."""
    place = columns_of(problem.classes, problem.decisions)
    if place is None or len(problem.decisions) > len(problem.classes):
        return
    of_classes = problem.kind == "matrix"
    values, true = problem.values, place if of_classes else place[problem.label]
    dear = values[np.arange(len(values)), true] > values.min(axis=1)
    if of_classes:
        dear = dear[problem.label]
    n_rows = np.bincount(problem.label, minlength=len(problem.classes))
    of_class = np.bincount(problem.label, dear, minlength=len(n_rows)) / np.maximum(n_rows, 1)
    if not (of_class > 0.5).any():
        return
    labels = problem.classes.tolist()
    named = [f"{k!r} ({share:.0%})" for k, share in zip(labels, of_class) if share > 0.5]
    changed = _CHANGED_X if costs is not None and costs.of_function else ""
    warn(
        "The true class is not the cheapest prediction for most rows of class "
        f"{', '.join(named[:10])}. Perhaps {changed}the cost matrix is transposed (rows are true "
        "classes, columns predictions), a cost has the wrong sign (benefits are negative), or "
        f"the labels are in another order than {shorten(problem.decisions)}. If the costs are "
        "correct, use warnings.filterwarnings('ignore', 'The true class is not the')."
    )


def expected_cost(probability: NDArray[Any], matrices: NDArray[Any]) -> NDArray[np.float64]:
    """Expected cost of each decision (n, D), by one matrix or a matrix for each sample."""
    if matrices.ndim == 2:
        return probability @ matrices
    return np.einsum("nk,nkj->nj", probability, matrices)
