"""The shared estimator: validate, encode, split, train, predict. No subclass repeats it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from ._batches import Rows, Second, Task
from ._cost_checks import frame_labels, label_index
from ._params import (
    CONSTRAINTS,
    check_net_params,
    optimizer_arguments,
    resolve_batch_size,
    resolve_device,
)
from ._prediction import CostPredictionMixin
from ._scaling import CostStatistics
from ._temperature import FEWEST_ROWS, learn_temperature
from ._threads import thread_limit
from ._training_set import TrainingSet, find_classes, resolve_costs
from .losses import LayerWiseLoss, get_loss
from .modules import AuxNetwork, TwinNetwork

if TYPE_CHECKING:
    from ._net import CostNet


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Give a fitted estimator its attributes back when a new fit fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class BaseCostSensitiveNet(CostPredictionMixin, BaseEstimator):
    """Base of the cost-sensitive networks; a subclass says how its torch module is built."""

    # Routers pass costs on without a set_fit_request by the user.
    __metadata_request__fit = {"cost": True}
    __metadata_request__partial_fit = {"cost": True}
    __metadata_request__score = {"cost": True}

    _parameter_constraints: dict = CONSTRAINTS

    # Not every estimator has these parameters.
    aux_loss = None
    calibration_fraction = 0.0
    precision = "float32"
    compile = False

    # Whether the loss may ask for a second network, which learns costs that differ in a class.
    _may_twin = True

    @abstractmethod
    def _make_module(self, n_features: int, n_outputs: int) -> tuple[AuxNetwork, list[float]]:
        """Build the network, and give the weight alpha of each of its auxiliary heads."""

    def _prepare(self, X: Any, *, reset: bool) -> Any:
        """Transform validated inputs, by what is learnt of them where `reset`; here not at all."""
        return X

    def _learn_inputs(self, X: Any) -> None:
        """Take from the training examples what the network is to know of inputs; here nothing."""

    def _net_arguments(self, module: AuxNetwork) -> dict[str, Any]:
        """Arguments of the skorch net that the estimator itself needs; here none."""
        return {}

    def _pretrain(self, rows: Rows) -> None:
        """Train the hidden layers before all is trained together; here not at all."""

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if state.get("callbacks"):
            from ._net import untrained

            state["callbacks"] = untrained(self.callbacks)
        return state

    # -------------------------------------------------------------- training

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BaseCostSensitiveNet:
        """Train the network.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training examples. Sparse rows are made dense a batch at a time.
        y : array-like of shape (n_samples,)
            Labels: strings, integers or booleans.
        cost : array-like or DataFrame of shape (n_samples, n_classes), default=None
            Cost of each possible prediction for each sample, in any currency. Columns follow
            the order of `classes_`; those of a DataFrame are matched by label. Without it the
            `cost_matrix` of the constructor counts, and without both every mistake costs 1.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the loss; non-negative.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data, costs or parameters are not as described, or the loss becomes NaN or
            infinite. A fitted estimator then stays as it was.
        """
        with unchanged_on_error(self):
            self._validate_params()
            resume = self.warm_start and hasattr(self, "net_")
            return self._fit(X, y, cost, sample_weight, self.classes, resume)

    def partial_fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        cost: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BaseCostSensitiveNet:
        """Train on the given rows for one more epoch.

        The unit of the costs is set at the first call, so its costs should be typical.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training examples.
        y : array-like of shape (n_samples,)
            Labels.
        classes : array-like of shape (n_classes,), default=None
            All labels that can ever occur; needed at the first call, unless the constructor's
            `classes` or the columns of a DataFrame of costs name them.
        cost : array-like or DataFrame of shape (n_samples, n_classes), default=None
            Cost of each possible prediction for each sample, as in `fit`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        self : object
            The estimator.

        Raises
        ------
        ValueError
            As `fit`, or if the classes are unknown at the first call or differ at a later one.
        """
        with unchanged_on_error(self):
            self._validate_params()
            resume = hasattr(self, "net_")
            named = self.classes if classes is None else classes
            if resume and classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes={classes!r} differs from the classes_ of the first call, "
                    f"{self.classes_!r}; expected the same, or None."
                )
            unlabelled = all(frame_labels(c) is None for c in (cost, self.cost_matrix))
            if not resume and named is None and unlabelled:
                raise ValueError(
                    "classes must be passed at the first call to partial_fit: all labels that "
                    "can ever occur, in classes= here or in the constructor."
                )
            return self._fit(X, y, cost, sample_weight, named, resume, partial=True)

    @thread_limit()
    def _fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        cost: ArrayLike | None,
        sample_weight: ArrayLike | None,
        classes: ArrayLike | None,
        resume: bool,
        partial: bool = False,
    ) -> BaseCostSensitiveNet:
        task = self._begin(X, y, cost, sample_weight, classes, resume, partial)
        plan = {
            "epochs": 1 if partial else self.max_epochs,
            "patience": self.patience,
            "schedule": "constant" if partial else self.schedule,
        }
        with (
            self.net_.thread_limit(),
            # A new net goes with its failed fit; only an earlier one has a state worth copying.
            self.net_.unchanged_on_error() if resume else nullcontext(),
        ):
            if task.second is not None:
                if self.verbose:
                    print("A network that does not see all rows, for the temperature:")
                task.second.net.fit_task(task.second.task, **plan)
            self.net_.fit_task(task, **plan)
            return self._finish(task)

    def _begin(
        self,
        X: ArrayLike,
        y: ArrayLike,
        cost: ArrayLike | None,
        sample_weight: ArrayLike | None,
        classes: ArrayLike | None,
        resume: bool,
        partial: bool = False,
    ) -> Task:
        """Do all that precedes the training of the whole network."""
        if resume:  # a failed call must not have drawn from the generator
            self._random_state = deepcopy(self._random_state)
        else:
            self._random_state = check_random_state(self.random_state)
            if self.random_state is None:  # a state of its own, which later calls go on with
                self._random_state = np.random.RandomState(self._draw_seed())
        data = self._check_training_set(X, y, cost, sample_weight, classes, reset=not resume)
        self._sample_costs = cost is not None
        scale = self.net_.scale if resume else data.scale()
        data = data.in_units(scale)
        statistics = data.statistics()
        if resume:
            statistics = self.net_.statistics.updated(statistics, replace=data.per_class)
        else:
            self.history_ = []
            self._learn_inputs(data.X)
            self.net_ = self._make_net(data, statistics, len(data.label))
        rows = self._make_rows(data)
        split = None
        if self.early_stopping and not partial:
            split = self._split(data.label, self.validation_fraction)
        task = Task(rows, split, scale, statistics)
        if resume:
            cost = data.cost[data.label] if data.per_class else data.cost
            task.loss = self.net_.criterion_.loss.resume(cost, data.label, data.weight)
        else:
            with self.net_.thread_limit():
                self._pretrain(task.train)
        self.net_.seed(self._draw_seed())
        if not (resume or partial or split) and self._calibrates(len(data.label)):
            task.second = self._make_second(data, rows, task)
        return task

    def _calibrates(self, n_rows: int) -> bool:
        """Whether a temperature is to be learnt; of so few rows none is."""
        loss = self.net_.criterion_.loss
        return self.calibration_fraction > 0 and loss.has_probabilities and n_rows >= FEWEST_ROWS

    def _make_second(self, data: TrainingSet, rows: Rows, task: Task) -> Second:
        """Build a network that never sees some of the rows, which then tell its temperature."""
        train, held_out = self._split(data.label, self.calibration_fraction)
        net = self._make_net(data, task.statistics, len(train))
        if net.callbacks:  # what they hear of one training is not for the other
            from ._net import copied

            net.callbacks = copied(net.callbacks)
            net.initialize_callbacks()
        net.seed(self._draw_seed())
        part = Task(rows.part(train), None, task.scale, task.statistics)
        return Second(net, part, rows.part(held_out))

    def _finish(self, task: Task) -> BaseCostSensitiveNet:
        """Tell what came of the training."""
        if task.second is not None:
            self.net_.temperature = learn_temperature(task.second.net, task.second.held_out)
        elif task.valid is not None and self._calibrates(len(task.train) + len(task.valid)):
            self.net_.temperature = learn_temperature(self.net_, task.valid)
        self.temperature_ = self.net_.temperature
        self.hidden_layers_ = list(self.net_.module_.layers[:-1])
        # Earlier epochs are not told anew at every call to partial_fit.
        self.history_ = [*self.history_, *self.net_.records(len(self.history_))]
        return self

    def _check_training_set(
        self, X: Any, y: Any, cost: Any, sample_weight: Any, classes: Any, *, reset: bool
    ) -> TrainingSet:
        X, y = self._validate(X, y, reset=reset)
        X = self._prepare(X, reset=reset)
        check_classification_targets(y)
        if reset:
            self.classes_ = find_classes(y, classes, cost, self.cost_matrix)
        label = label_index(y, self.classes_, name="y").astype(np.int64)
        rows, per_class = resolve_costs(cost, self.cost_matrix, len(y), self.classes_)
        weight = sample_weight
        if weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        return TrainingSet(X, label, rows, per_class, weight).with_positive_weights()

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Inputs, and labels if given, as arrays."""
        return validate_data(self, X, y, reset=reset, **self._array_params())

    def _array_params(self) -> dict[str, Any]:
        return {"accept_sparse": "csr", "dtype": np.float32, "order": "C"}

    def _make_net(self, data: TrainingSet, statistics: CostStatistics, n_rows: int) -> CostNet:
        from ._net import CostNet, seeded  # skorch takes its time: on first use

        device = resolve_device(self.device)
        loss = get_loss(self.loss)
        aux_loss = loss if self.aux_loss is None else get_loss(self.aux_loss)
        if self._may_twin and not data.per_class:
            loss = loss.specialize(data.cost, data.label, data.weight)
        seed, n_features, n_classes = self._draw_seed(), data.X.shape[1], len(self.classes_)
        with seeded(seed):
            module, alpha = self._make_module(n_features, n_classes)
        if n_cost_outputs := loss.n_cost_outputs(n_classes):
            with seeded(seed + 1):  # it starts alike, whichever heads the first one has
                costs, _ = self._make_module(n_features, n_cost_outputs)
            costs.heads.clear()
            module = TwinNetwork(module, costs)
        module.set_precision(self.precision == "bf16")
        module.start_at(loss.start_bias(statistics), aux_loss.start_bias(statistics))
        arguments = {
            **optimizer_arguments(self.optimizer, self.weight_decay, device),
            "lr": float(self.learning_rate),
            "max_epochs": self.max_epochs,
            "batch_size": resolve_batch_size(self.batch_size, n_rows),
            "callbacks": None if self.callbacks is None else list(self.callbacks),
            "device": device,
            "train_split": None,
            "verbose": int(self.verbose),
            **self._net_arguments(module),
            **check_net_params(self.net_params),
        }
        net = CostNet(module.float(), LayerWiseLoss(loss, aux_loss, alpha), **arguments)
        net.initialize()
        net.compile_step = self.compile
        return net

    def _make_rows(self, data: TrainingSet) -> Rows:
        return Rows(
            data.X,
            data.label,
            data.cost,
            None if data.weight is None else data.weight / data.weight.mean(),
            per_class=data.per_class,
            device=self.net_.device,
        )

    def _split(self, label: np.ndarray, fraction: float) -> tuple[np.ndarray, np.ndarray]:
        """Indices of training and held-out rows, stratified where every class is large enough."""
        n = len(label)
        n_valid = max(1, round(fraction * n))
        if n_valid >= n:
            name = "validation_fraction" if self.early_stopping else "calibration_fraction"
            remedy = "early_stopping=False" if self.early_stopping else "calibration_fraction=0"
            raise ValueError(
                f"{name}={fraction} holds out {n_valid} of {n} rows and leaves none to train on. "
                f"Lower it, or set {remedy}."
            )
        count = np.unique(label, return_counts=True)[1]
        possible = count.min() > 1 and len(count) <= min(n_valid, n - n_valid)
        return tuple(
            train_test_split(
                np.arange(n),
                test_size=n_valid,
                stratify=label if possible else None,
                random_state=self._draw_seed(),
            )
        )

    def _draw_seed(self) -> int:
        return int(self._random_state.randint(np.iinfo(np.int32).max))

    def _estimate(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return self.net_.estimate(self._prepare(X, reset=False), every_head=every_head)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
