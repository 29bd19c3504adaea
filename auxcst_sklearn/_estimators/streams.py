"""Streams: rows that arrive in blocks, at most one of which is in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from ..costs._named import column_names
from .identity import check_same
from .parameters import constant_rate

if TYPE_CHECKING:
    from typing_extensions import Self


class StreamMixin:
    """Training block by block, with the steps of an estimator."""

    classes_: NDArray[Any]
    classes: ArrayLike | None
    learning_rate: Any
    cost_matrix: Any
    _fitting: Any
    _draw_seed: Any
    _validate_training_set: Any
    _sample_costs: bool
    _known_costs: bool
    schedule: str
    _build: Any
    _set_attributes: Any

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        cost: ArrayLike | None = None,
    ) -> Self:
        """Train on the rows for one more epoch, at a constant rate and without early stopping.

        The first call learns scales and categories, and the unit of the costs, from its rows;
        later calls update them, except for the categories. To learn the scales, categories and bins
        of all blocks from a random sample of their rows, call `fit` on the sample first, which also
        finds a good start: later calls to `partial_fit` do not change them.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training samples.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that can ever occur; needed at the first call, unless `fit` was called, or
            they are given by `classes` of the constructor or by the columns of a DataFrame of
            costs.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples relative to each other: a step of the optimizer has the same
            size whatever the mean weight of a call is. To forget older blocks, do not weight
            blocks, but change `learning_rate`.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), \
                or DataFrame, default=None
            Cost of each possible prediction for each sample, as in `fit`.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            As `fit`, or if the classes are unknown at the first call or differ at a later one.
        """
        from .._training.loop import Plan

        resume = hasattr(self, "net_")
        with self._fitting(resume):
            named = self._check_named_classes(classes, cost)
            of_first = (self._sample_costs, self._known_costs) if resume else None
            data = self._validate_training_set(X, y, cost, sample_weight, named, resume)
            self._check_kind_of_costs(of_first)
            check_same(self, data, None, resume)
            training = self._build(data, resume, stream=True)
            schedule = "plateau" if self.schedule == "plateau" else "constant"
            training.run(Plan(1, schedule, constant_rate=constant_rate(self.learning_rate)))
            self._set_attributes(training)
            return self

    def _check_kind_of_costs(self, of_first: tuple[bool, bool] | None) -> None:
        """Raise an error for a block whose costs are of another kind than those of the first."""
        if of_first not in (None, (self._sample_costs, self._known_costs)):
            kinds = {(False, False): "no cost", (True, False): "a cost vector for each sample"}
            known = "a cost matrix for each sample"
            raise ValueError(
                f"cost: the first block had {kinds.get(of_first, known)}, and this one has "
                f"{kinds.get((self._sample_costs, self._known_costs), known)}; expected the same "
                "for all blocks."
            )

    def _check_named_classes(self, classes: ArrayLike | None, cost: Any) -> ArrayLike | None:
        """All labels that are passed to `partial_fit`."""
        named = self.classes if classes is None else classes
        unlabelled = all(column_names(c) is None for c in (cost, self.cost_matrix))
        if named is None and unlabelled and not hasattr(self, "net_"):
            raise ValueError(
                "classes must be passed at the first call to partial_fit: all labels that "
                "can ever occur, in classes= here or in the constructor."
            )
        return named
