"""Costs of a binary decision by a threshold, for all thresholds at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._checks.labels import as_labels
from ..costs._account import labels_of_evaluation
from ..costs._evaluation import evaluated


class BinaryCosts(NamedTuple):
    """What both decisions cost for each sample (n, 2), and what they are decided by.

    Columns follow `classes`, in which `positive` is the place of the positive class. `matrix` is
    one for all samples, or one for each (n, 2, 2), or None if costs are given for the true class.
    """

    costs: NDArray[np.float64]
    weight: NDArray[np.float64]
    classes: NDArray[Any]
    positive: int
    matrix: NDArray[np.float64] | None

    @classmethod
    def of(
        cls, y: ArrayLike, cost: Any, cost_matrix: Any, classes: Any, pos_label: Any, weight: Any
    ) -> BinaryCosts:
        """Costs from what the caller gives, checked."""
        given = {"y_true": y}
        found, other = labels_of_evaluation(
            cost, cost_matrix, classes, None, given, as_labels(y, "y_true")
        )
        if found.shape != (2,) or other is not None:
            labels = found if other is None else other
            raise ValueError(
                f"A threshold decides between two classes, but there are {labels.tolist()}. If "
                "y_true lacks one of two, name both in classes=."
            )
        costs, _, weights = evaluated(given, cost, cost_matrix, found, None, weight)
        matrix = costs.values if costs.per_class else costs.matrices
        weights = np.ones(len(costs)) if weights is None else weights
        return cls(costs.vectors(), weights, found, _positive_class(pos_label, found), matrix)

    def curve(self, probability: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Thresholds, the mean cost and the share predicted positive at each.

        The thresholds are the distinct probabilities, ascending, and infinity.
        """
        thresholds, place = np.unique(probability, return_inverse=True)
        negative, positive = (self.weight * self.costs[:, k] for k in self._order())

        def of_those_above(values: NDArray[Any]) -> NDArray[Any]:
            of_each = np.bincount(place, values, minlength=len(thresholds))
            return np.append(np.cumsum(of_each[::-1])[::-1], 0.0)

        weight = of_those_above(self.weight)
        total = negative.sum() + of_those_above(positive - negative)
        return np.append(thresholds, np.inf), total / weight[0], weight / weight[0]

    def bayes(self, probability: NDArray[Any]) -> dict[str, float | None]:
        """Threshold of the Bayes decision, if it has one, its mean cost and alert rate."""
        if self.matrix is None:
            return {}
        n, p = self._order()
        alarm = self.matrix[..., n, p] - self.matrix[..., n, n]
        miss = self.matrix[..., p, n] - self.matrix[..., p, p]
        has_threshold = self.matrix.ndim == 2 and alarm + miss > 0
        threshold = float(alarm / (alarm + miss)) if has_threshold else None
        if threshold is not None:
            is_positive = probability >= threshold
        else:  # as argmin decides ties
            cheaper = np.less if p else np.less_equal
            is_positive = cheaper((1 - probability) * alarm, probability * miss)
        chosen = self.costs[np.arange(len(probability)), np.where(is_positive, p, n)]
        return {
            "bayes_threshold": threshold,
            "bayes_cost": float(np.average(chosen, weights=self.weight)),
            "bayes_alert_rate": float(np.average(is_positive, weights=self.weight)),
        }

    def _order(self) -> tuple[int, int]:
        """Columns of the negative and of the positive class."""
        return 1 - self.positive, self.positive


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
