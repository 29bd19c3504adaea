"""The base of all networks: validate, build, train, set attributes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from .._features.columns import is_of_strings, refuse_objects
from .._features.float32 import as_float32, check_resolution
from .._features.frames import check_frame, check_in_memory
from .._features.lazy import LazyRows, row_order, stays_lazy
from .._training.distributed import joined, processes
from .._training.runtime import neutral_torch_modes, thread_limit
from .._training.state import FORMAT, check_format, from_state, to_state
from .._training.training_set import TrainingSet
from ..costs._checks import (
    as_labels,
    check_labels,
    check_row_order,
    check_weight,
    label_index,
    sorted_labels,
)
from ..costs._dispatch import numpy_arrays
from ..costs._source import find_classes, resolve_costs, warn_if_order_is_lost
from ..losses import LOSSES, ProbabilisticLoss
from .building import BuildMixin
from .few_rows import predict_few
from .identity import check_same, open_checkpoints
from .parameters import CONSTRAINTS
from .prediction import CostPredictionMixin
from .streams import StreamMixin, unchanged_on_error

if TYPE_CHECKING:  # skorch is slow to import: on first use
    from typing_extensions import Self

    from .._training.checkpoints import Checkpoints
    from .._training.loop import Plan
    from .._training.training import Training


# Number of rows used to detect a failed training, and the minimum excess cost per row, in units of
# the mean cost above the smallest.
COLLAPSE_ROWS, COLLAPSE_MARGIN = 1000, 0.05


class BaseCostSensitiveNet(StreamMixin, BuildMixin, CostPredictionMixin, BaseEstimator):
    """Base of the cost-sensitive networks; a subclass builds its torch module."""

    # Routers pass costs on without a set_fit_request call by the user.
    __metadata_request__fit = dict.fromkeys(
        ("cost", "groups", "X_val", "y_val", "cost_val", "sample_weight_val"), True
    )
    __metadata_request__partial_fit = {"cost": True}
    __metadata_request__predict = {"cost": True}
    __metadata_request__decision_function = {"cost": True}
    __metadata_request__score = {"cost": True}

    _parameter_constraints: dict[str, Any] = CONSTRAINTS

    def __getstate__(self) -> dict[str, Any]:
        """Arrays and plain values; a net converts itself to such a state."""
        state = to_state(dict(super().__getstate__()))  # it may be the attributes themselves
        if self.callbacks:
            from .._training.callbacks import without_training_state

            state["callbacks"] = without_training_state(self.callbacks)
        return {**state, "_format": FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        check_format(state.pop("_format", None))
        super().__setstate__(from_state(state))

    # -------------------------------------------------------------- training

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
        X_val: ArrayLike | None = None,
        y_val: ArrayLike | None = None,
        cost_val: ArrayLike | None = None,
        sample_weight_val: ArrayLike | None = None,
    ) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training examples. Sparse rows are made dense a batch at a time.
        y : array-like of shape (n_samples,)
            Labels: strings, integers or booleans.
        cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
                (n_samples, n_classes, n_classes), default=None
            Cost of each possible prediction for each sample, in any currency, to be learnt from X;
            or, if costs are also known when deciding, a cost matrix for each sample (row = true
            class), to be passed to `predict` as well. Columns follow the order of `classes_`; those
            of a DataFrame are matched by label. Without it, `cost_matrix` of the constructor is
            used, and without both every mistake costs 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the loss; non-negative.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples, such as the rows of one customer: rows that `fit` holds out have no
            group in common with the other rows.
        X_val, y_val, cost_val, sample_weight_val : array-like, default=None
            A validation set, in the form of `X`, `y`, `cost` and `sample_weight`, which replaces
            the rows that `fit` would hold out: it is used for `early_stopping` and for the
            temperature. Pass `cost_val` if and only if `cost` is passed.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data, costs or parameters are not as described, or the loss becomes NaN or
            infinite. A fitted estimator is then unchanged.
        """
        resume = self.warm_start and hasattr(self, "net_")
        with self._fitting(resume):
            self._prepared = None
            data = self._validate_training_set(
                X, y, cost, sample_weight, self.classes, resume, groups
            )
            data.warn_if_truth_is_not_cheapest(self.classes_, stacklevel=2)
            validation = self._validate_validation_set(X_val, y_val, cost_val, sample_weight_val)
            check_same(self, data, validation, resume)
            with open_checkpoints(self, data, validation) as checkpoints:
                training = self._build(data, resume, validation=validation)
                self._check_use(validation, training.net)
                training.run(self._plan(checkpoints))
            self._set_attributes(training)
            self._warn_if_collapsed(data)
            return self

    @contextmanager
    def _fitting(self, resume: bool) -> Iterator[None]:
        """Leave the estimator, and the net that training continues with, unchanged on error."""
        with (
            unchanged_on_error(self),
            thread_limit(),
            neutral_torch_modes(),
            numpy_arrays(),
            joined(self.distributed),
        ):
            self._validate_params()
            if resume and not hasattr(self, "net_"):
                self.net_, self._prepared = self._prepared, True
            # A new net is discarded with its failed fit; only an earlier one has a state worth
            # copying.
            with self.net_.unchanged_on_error() if resume else nullcontext():
                self._start_random_state(resume)
                yield

    def _start_random_state(self, resume: bool) -> None:
        if not resume:
            self._random_state = check_random_state(self.random_state)
            if self.random_state is None:  # its own state, with which later calls continue
                seed = processes().from_first("the random state", self._draw_seed())
                self._random_state = np.random.RandomState(seed)
        else:  # a failed call must not draw from the generator
            self._random_state = deepcopy(self._random_state)

    def _determining_params(self) -> dict[str, Any]:
        """The parameters on which the result of a fit may depend."""
        params: dict[str, Any] = self.get_params(deep=False)
        return params

    def _plan(self, checkpoints: Checkpoints | None = None) -> Plan:
        from .._training.loop import Plan

        patience = self.patience if self.early_stopping else None
        return Plan(self.max_epochs, self.schedule, patience, self.averaging, checkpoints)

    # -------------------------------------------------------------- validate

    def _validate_training_set(
        self,
        X: Any,
        y: Any,
        cost: Any,
        sample_weight: Any,
        classes: Any,
        resume: bool,
        groups: Any = None,
    ) -> TrainingSet:
        check_in_memory(cost, "cost")
        check_labels(y, "y")
        check_row_order(cost, X=X, y=y)
        warn_if_order_is_lost(y, cost, self.cost_matrix, stacklevel=3)
        X, y = self._validate(X, y, reset=not resume)
        check_classification_targets(y)
        if not resume:
            self.classes_ = find_classes(y, classes, cost, self.cost_matrix)
        elif classes is not None and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"classes={np.asarray(classes).tolist()} differs from the classes_ that training "
                f"continues with, {self.classes_.tolist()}; expected the same, or None."
            )
        label = label_index(y, self.classes_, name="y").astype(np.int64)
        costs = resolve_costs(cost, self.cost_matrix, label, self.classes_)
        if groups is not None:
            groups = np.asarray(groups)
            if groups.ndim == 0 or groups.size != len(groups):
                raise ValueError(
                    f"groups has shape {groups.shape}; expected (n_samples,), one for each row."
                )
            groups = groups.ravel()
            sorted_labels(groups, name="groups")
            check_consistent_length(X, groups)
        self._sample_costs, self._known_costs = cost is not None, costs.matrices is not None
        weight = check_weight(sample_weight, X)
        return TrainingSet(X, label, costs.rows, costs.per_class, weight, costs.matrices, groups)

    def _validate_validation_set(
        self, X_val: Any, y_val: Any, cost_val: Any, sample_weight_val: Any
    ) -> TrainingSet | None:
        given = {"X_val": X_val, "y_val": y_val, "cost_val": cost_val}
        missing = [name for name in ("X_val", "y_val") if given[name] is None]
        if len(missing) == 2 and cost_val is None and sample_weight_val is None:
            return None
        if self._sample_costs != (cost_val is not None):
            missing.append("cost_val" if cost_val is None else "cost")
        if missing:
            raise ValueError(
                f"{' and '.join(missing)} must be passed too: a validation set has X_val and "
                "y_val, and cost_val exactly where cost is passed."
            )
        check_labels(y_val, "y_val")
        try:
            check_row_order(cost_val, X=X_val, y=y_val)
            X, y = self._validate(X_val, y_val, reset=False)
            label = label_index(as_labels(y, "y"), self.classes_, name="y").astype(np.int64)
            costs = resolve_costs(cost_val, self.cost_matrix, label, self.classes_)
            weight = check_weight(sample_weight_val, X)
        except (TypeError, ValueError) as error:
            raise type(error)(f"In the validation set (X_val, y_val, cost_val): {error}") from error
        if self._known_costs != (costs.matrices is not None):
            dimensions = 3 if self._known_costs else 2
            raise ValueError(
                f"cost_val has {5 - dimensions} dimensions, but cost has {dimensions}; expected "
                "the same, because a matrix for each sample decides, and a cost vector does not. "
                "Pass the row of the true class, or the matrix, of each sample in both."
            )
        return TrainingSet(X, label, costs.rows, costs.per_class, weight, costs.matrices)

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Inputs, and labels if given, as arrays."""
        parameters = {**self._array_params(), "order": row_order(X)}
        kept = np.atleast_1d(parameters["dtype"])
        numeric = len(kept) == 1 or stays_lazy(X)
        if numeric:
            parameters["dtype"] = "numeric"
        check_frame(X)
        with numpy_arrays():
            try:
                validated = validate_data(self, X, y, reset=reset, **parameters)
                if not numeric:
                    return validated
                rows, *labels = validated if isinstance(validated, tuple) else (validated,)
                if rows.dtype.kind == "O":  # such as a DataFrame with categories
                    rows = rows.astype(np.float64)
            except ValueError as error:
                if not is_of_strings(error):
                    raise
                raise ValueError(
                    f"X holds strings ({error}); expected numbers. Encode them first, such as by "
                    "OneHotEncoder; CostSensitiveAuxMLP takes them as they are."
                ) from error
            except TypeError as error:
                refuse_objects(X, None, error)
                raise
        if reset:
            check_resolution(rows)
        if rows.dtype not in kept:
            lazy = stays_lazy(rows)
            rows = LazyRows(rows, as_float32, dtype=np.float32) if lazy else as_float32(rows)
        return (rows, *labels) if labels else rows

    def _array_params(self) -> dict[str, Any]:
        return {"accept_sparse": "csr", "dtype": np.float32}

    # -------------------------------------------------------- set attributes

    def _set_attributes(self, training: Training) -> Self:
        """Learn the temperature, and set the fitted attributes."""
        net, held_out = training.net, training.held_out
        earlier = getattr(self, "history_", []) if net is getattr(self, "net_", None) else []
        if held_out is not None and self._calibrates(net):
            learnt = net.learn_temperature(held_out)
            net.temperature = processes().from_first("the temperature", learnt)
        elif isinstance(self.temperature, Real):  # which a warm start may have changed
            net.temperature = float(self.temperature)
        self.net_ = net
        self.temperature_ = net.temperature
        self.hidden_layers_ = list(net.module_.layers[:-1])
        # Earlier epochs are not copied again at every call to partial_fit.
        self.history_: list[dict[str, Any]] = [*earlier, *net.records(len(earlier))]
        return self

    def _warn_if_collapsed(self, data: TrainingSet) -> None:
        """Warn if all predictions are one class, and another one would cost less."""
        if data.matrices is not None:  # decisions depend on each row's costs
            return
        X, n = data.X, len(data.label)
        if n > COLLAPSE_ROWS:  # at random, because every tenth row, say, may be of one class
            X = X[np.random.RandomState(0).randint(n, size=COLLAPSE_ROWS)]
        (cost,) = self.net_.predict_heads(self._to_inputs(X))
        chosen = np.unique(cost.argmin(axis=1))
        paid = data.constant_costs
        lost = paid - paid.min()
        if len(chosen) == 1 and lost[chosen[0]] > COLLAPSE_MARGIN * self.net_.scale.unit:
            classes, best = self.classes_.tolist(), int(paid.argmin())
            warnings.warn(
                f"All predictions for the training rows are {classes[chosen[0]]!r}, at a mean "
                f"cost of {paid[chosen[0]]:.3g}; always {classes[best]!r} would cost "
                f"{paid[best]:.3g}. The training has failed: lower learning_rate, or train longer.",
                UserWarning,
                stacklevel=3,
            )

    # --------------------------------------------------------------- predict

    def _predict_heads(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        if not every_head and (few := predict_few(self, X, "to_cost")) is not None:
            return [self.net_.scale.to_currency(few)]
        check_is_fitted(self)
        X = self._to_inputs(self._validate(X, reset=False))
        return self.net_.predict_heads(X, every_head=every_head)

    def _predict_proba(self, X: ArrayLike) -> np.ndarray:
        if (few := predict_few(self, X, "probabilities")) is not None:
            probability: np.ndarray = few / few.sum(axis=1, keepdims=True)
            return probability
        check_is_fitted(self)
        return self.net_.predict_proba(self._to_inputs(self._validate(X, reset=False)))

    def _has_probabilities(self) -> bool:
        if hasattr(self, "net_"):
            return isinstance(self.net_.criterion_.loss, ProbabilisticLoss)
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return isinstance(loss, ProbabilisticLoss)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "net_")  # `prepare` sets other attributes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
