"""Costs of a binary decision by a threshold, for all thresholds at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_consistent_length, column_or_1d

from .._checks.labels import as_labels
from ..costs._source import column_labels
from ..costs._validation import check_cost_matrix, expected_cost, is_per_sample_matrix
from ..metrics import _sample_costs


class BinaryCosts(NamedTuple):
    """What each of both decisions costs for each sample (n, 2), and what they are decided by.

    `matrix` is the one for all samples, `matrices` holds one for each (n, 2, 2); both are None
    where the costs are those of the true class alone. Columns follow `classes`, in which
    `positive` is the place of the positive class.
    """

    paid: NDArray[np.float64]
    weight: NDArray[np.float64]
    classes: NDArray[Any]
    positive: int
    matrix: NDArray[np.float64] | None
    matrices: ArrayLike | None

    @classmethod
    def of(
        cls, y: ArrayLike, cost: Any, cost_matrix: Any, classes: Any, pos_label: Any, weight: Any
    ) -> BinaryCosts:
        """Costs from what the caller gives, checked."""
        label = as_labels(y, "y_true")
        classes = column_labels(cost, cost_matrix, classes, {"y_true": y}, label)
        if classes.shape != (2,):
            raise ValueError(
                f"A threshold decides between two classes, but there are {classes.tolist()}. If "
                "y_true lacks one of two, name both in classes=."
            )
        paid, true, weights = _sample_costs(y, y, cost, cost_matrix, classes, weight)
        return cls(
            paid,
            np.ones(len(true)) if weights is None else weights,
            classes,
            _positive_class(pos_label, classes),
            None if cost_matrix is None else check_cost_matrix(cost_matrix, classes=classes),
            cost if is_per_sample_matrix(cost) else None,
        )

    def check_probability(self, y_proba: ArrayLike) -> NDArray[np.float64]:
        """Probabilities of the positive class, one for each sample."""
        probability = np.asarray(column_or_1d(y_proba), dtype=np.float64)
        check_consistent_length(self.paid, probability)
        if not ((probability >= 0) & (probability <= 1)).all():
            raise ValueError(
                f"y_proba holds values from {probability.min():g} to {probability.max():g}; "
                "expected probabilities of the positive class, from 0 to 1."
            )
        return probability

    def mean_cost(self, positive: NDArray[np.bool_]) -> float:
        """Mean cost of predicting the positive class for these samples."""
        chosen = np.where(positive, self.positive, 1 - self.positive)
        return float(np.average(self.paid[np.arange(len(chosen)), chosen], weights=self.weight))

    def rate(self, positive: NDArray[np.bool_]) -> float:
        """Share of the weight that is predicted positive."""
        return float(np.average(positive, weights=self.weight))


def _positive_class(pos_label: Any, classes: NDArray[Any]) -> int:
    labels = classes.tolist()
    if pos_label is None:
        if classes.dtype.kind not in "biuf":
            raise ValueError(
                f"pos_label=None, but the classes {labels} are no numbers; name the class whose "
                "probability has the threshold in pos_label=."
            )
        return int(np.argmax(classes))
    if np.ndim(pos_label) or pos_label not in labels:
        raise ValueError(f"pos_label={pos_label!r} is not among the classes {labels}.")
    return int(labels.index(pos_label))


def threshold_curve(
    probability: NDArray[Any], costs: BinaryCosts
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Thresholds, the mean cost and the share predicted positive at each.

    The thresholds are the distinct probabilities, ascending, and infinity.
    """
    thresholds, place = np.unique(probability, return_inverse=True)
    negative = costs.weight * costs.paid[:, 1 - costs.positive]
    positive = costs.weight * costs.paid[:, costs.positive]

    def of_those_above(values: NDArray[Any]) -> NDArray[Any]:
        of_each = np.bincount(place, values, minlength=len(thresholds))
        return np.append(np.cumsum(of_each[::-1])[::-1], 0.0)

    weight = of_those_above(costs.weight)
    total = negative.sum() + of_those_above(positive - negative)
    return np.append(thresholds, np.inf), total / weight[0], weight / weight[0]


def bayes_decision(probability: NDArray[Any], costs: BinaryCosts) -> NDArray[np.bool_] | None:
    """Where the positive class has the smaller expected cost; None without matrices."""
    if (threshold := bayes_threshold(costs)) is not None:
        return probability >= threshold
    both = np.empty((len(probability), 2))
    both[:, costs.positive], both[:, 1 - costs.positive] = probability, 1 - probability
    if costs.matrices is not None:
        expected = expected_cost(both, costs.matrices, costs.classes)
    elif costs.matrix is not None:
        expected = both @ costs.matrix
    else:
        return None
    is_positive: NDArray[np.bool_] = expected.argmin(axis=1) == costs.positive
    return is_positive


def bayes_threshold(costs: BinaryCosts) -> float | None:
    """The probability from which on the positive class costs less; None if there is none."""
    if costs.matrix is None:
        return None
    p, n = costs.positive, 1 - costs.positive
    alarm = costs.matrix[n, p] - costs.matrix[n, n]
    miss = costs.matrix[p, n] - costs.matrix[p, p]
    return float(alarm / (alarm + miss)) if alarm + miss > 0 else None
