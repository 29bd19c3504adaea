"""The shared estimator: validate, build, train, set attributes. No subclass repeats it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._training.holdout import hold_out
from .._training.rows import Rows
from .._training.seeding import seeded
from .._training.threads import thread_limit
from .._training.torch_modes import own_torch_modes
from .._training.training_set import TrainingSet
from ..costs._checks import frame_labels, label_index
from ..costs._dispatch import numpy_arrays
from ..costs._scale import CostScale
from ..costs._source import find_classes, resolve_costs
from ..losses import LOSSES, LayerWiseLoss, Loss, ProbabilisticLoss, get_loss
from ..modules import AuxNetwork
from ..modules._cost_network import ClassAndCostNetwork
from .parameters import (
    CONSTRAINTS,
    check_net_params,
    optimizer_arguments,
    resolve_batch_size,
    resolve_device,
)
from .prediction import CostPredictionMixin

if TYPE_CHECKING:  # skorch takes its time: on first use
    from .._training.net import CostNet, Plan
    from .._training.training import Training


# Training sets of fewer rows have no temperature.
MIN_CALIBRATION_ROWS = 10


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the attributes of a fitted estimator when a new fit fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


class BaseCostSensitiveNet(CostPredictionMixin, BaseEstimator):
    """Base of the cost-sensitive networks; a subclass builds its torch module."""

    # Routers pass costs on without a set_fit_request by the user.
    __metadata_request__fit = {"cost": True}
    __metadata_request__partial_fit = {"cost": True}
    __metadata_request__predict = {"cost": True}
    __metadata_request__decision_function = {"cost": True}
    __metadata_request__score = {"cost": True}

    _parameter_constraints: dict = CONSTRAINTS

    # Not every estimator has these parameters.
    aux_loss = None
    calibration_fraction = 0.0
    precision = "float32"
    compile = False

    # Whether the loss may add a cost network, which learns costs that differ within a class.
    _may_add_cost_network = True

    @abstractmethod
    def _make_module(self, n_features: int, n_outputs: int) -> tuple[AuxNetwork, list[float]]:
        """Build the network, and the weight alpha of each of its auxiliary heads."""

    def _learn_inputs(self, X: Any) -> None:
        """Learn from the training examples what the network needs for its inputs; here nothing."""

    def _net_arguments(self, module: AuxNetwork) -> dict[str, Any]:
        """Arguments of the skorch net that the estimator itself needs; here none."""
        return {}

    def _pretrain(self, net: CostNet, rows: Rows) -> None:
        """Train the hidden layers before all is trained together; here not at all."""

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())  # it may be the attributes themselves
        if state.get("callbacks"):
            from .._training.callbacks import without_training_state

            state["callbacks"] = without_training_state(self.callbacks)
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
        cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
                (n_samples, n_classes, n_classes), default=None
            Cost of each possible prediction for each sample, in any currency, to be learnt from
            X; or, where costs are known when deciding too, a cost matrix for each sample (row =
            true class), to be passed to `predict` as well. Columns follow the order of
            `classes_`; those of a DataFrame are matched by label. Without it the `cost_matrix` of
            the constructor counts, and without both every mistake costs 1.
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
        resume = self.warm_start and hasattr(self, "net_")
        with self._fitting(resume):
            data = self._validate_training_set(X, y, cost, sample_weight, self.classes, resume)
            training = self._build(data, resume)
            training.run(self._plan())
            return self._set_attributes(training)

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
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), \
                or DataFrame, default=None
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
        resume = hasattr(self, "net_")
        with self._fitting(resume):
            named = self._check_named_classes(classes, cost)
            data = self._validate_training_set(X, y, cost, sample_weight, named, resume)
            training = self._build(data, resume, one_epoch=True)
            training.run(self._plan(one_epoch=True))
            return self._set_attributes(training)

    @contextmanager
    def _fitting(self, resume: bool) -> Iterator[None]:
        """A fit that fails leaves the estimator, and the net that it goes on with, unchanged."""
        with unchanged_on_error(self), thread_limit(), own_torch_modes(), numpy_arrays():
            self._validate_params()
            # A new net goes with its failed fit; only an earlier one has a state worth copying.
            with self.net_.unchanged_on_error() if resume else nullcontext():
                self._start_random_state(resume)
                yield

    def _start_random_state(self, resume: bool) -> None:
        if resume:  # a failed call must not have drawn from the generator
            self._random_state = deepcopy(self._random_state)
        else:
            self._random_state = check_random_state(self.random_state)
            if self.random_state is None:  # a state of its own, which later calls go on with
                self._random_state = np.random.RandomState(self._draw_seed())

    def _draw_seed(self) -> int:
        return int(self._random_state.randint(np.iinfo(np.int32).max))

    def _plan(self, one_epoch: bool = False) -> Plan:
        from .._training.net import Plan

        if one_epoch:
            return Plan(1, "constant")
        patience = self.patience if self.early_stopping else None
        return Plan(self.max_epochs, self.schedule, patience)

    # -------------------------------------------------------------- validate

    def _check_named_classes(self, classes: ArrayLike | None, cost: Any) -> ArrayLike | None:
        """All labels that the caller of `partial_fit` names."""
        if hasattr(self, "net_"):
            if classes is not None and not np.array_equal(classes, self.classes_):
                raise ValueError(
                    f"classes={classes!r} differs from the classes_ of the first call, "
                    f"{self.classes_!r}; expected the same, or None."
                )
            return self.classes
        named = self.classes if classes is None else classes
        if named is None and all(frame_labels(c) is None for c in (cost, self.cost_matrix)):
            raise ValueError(
                "classes must be passed at the first call to partial_fit: all labels that "
                "can ever occur, in classes= here or in the constructor."
            )
        return named

    def _validate_training_set(
        self, X: Any, y: Any, cost: Any, sample_weight: Any, classes: Any, resume: bool
    ) -> TrainingSet:
        X, y = self._validate(X, y, reset=not resume)
        check_classification_targets(y)
        if not resume:
            self.classes_ = find_classes(y, classes, cost, self.cost_matrix)
        label = label_index(y, self.classes_, name="y").astype(np.int64)
        costs = resolve_costs(cost, self.cost_matrix, label, self.classes_)
        weight = sample_weight
        if weight is not None:
            weight = _check_sample_weight(
                sample_weight, X, dtype=np.float64, ensure_non_negative=True
            )
        self._sample_costs, self._known_costs = cost is not None, costs.matrices is not None
        return TrainingSet(X, label, costs.rows, costs.per_class, weight, costs.matrices)

    def _validate(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """Inputs, and labels if given, as arrays."""
        with numpy_arrays():
            return validate_data(self, X, y, reset=reset, **self._array_params())

    def _array_params(self) -> dict[str, Any]:
        return {"accept_sparse": "csr", "dtype": np.float32, "order": "C"}

    # ----------------------------------------------------------------- build

    def _build(self, data: TrainingSet, resume: bool, one_epoch: bool = False) -> Training:
        """Everything that precedes the training of the whole network."""
        from .._training.training import Training

        data = data.with_positive_weights()
        scale = self.net_.scale if resume else data.scale()
        data = data.in_units(scale)
        if resume:
            net = self.net_.continue_on(data)
        else:
            self._learn_inputs(data.X)
            net = self._make_net(data, scale, len(data.label))
        rows = Rows(data, net.device)
        if self.early_stopping and not one_epoch:
            training = Training(net, *self._hold_out(rows, data.label, "validation_fraction"))
        else:
            training = Training(net, rows)
        if not resume:
            with net.thread_limit():
                self._pretrain(net, training.rows)
        net.seed(self._draw_seed())
        goes_on = resume or one_epoch or training.held_out
        if not goes_on and self._calibrates(net, len(rows)):
            training.calibration = self._build_calibration(data, scale, rows)
        return training

    def _build_calibration(self, data: TrainingSet, scale: CostScale, rows: Rows) -> Training:
        """The training of a network that does not see some of the rows."""
        from .._training.callbacks import copies_of
        from .._training.training import Training

        seen, held_out = self._hold_out(rows, data.label, "calibration_fraction")
        net = self._make_net(data, scale, len(seen))
        if net.callbacks:  # records of one training are not for the other
            net.callbacks = copies_of(net.callbacks)
            net.initialize_callbacks()
        net.seed(self._draw_seed())
        return Training(net, seen, held_out)

    def _calibrates(self, net: CostNet, n_rows: int) -> bool:
        """Whether a temperature is to be learnt; of few rows none is."""
        loss = net.criterion_.loss
        return (
            self.calibration_fraction > 0
            and isinstance(loss, ProbabilisticLoss)
            and n_rows >= MIN_CALIBRATION_ROWS
        )

    def _make_net(self, data: TrainingSet, scale: CostScale, n_rows: int) -> CostNet:
        from .._training.net import CostNet

        device = resolve_device(self.device)
        loss, aux_loss = self._losses(data)
        module, alpha = self._make_network(data, loss)
        statistics = data.statistics()
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
            "compile_step": self.compile,
            **self._net_arguments(module),
            **check_net_params(self.net_params),
        }
        objective = LayerWiseLoss(loss, aux_loss, alpha)
        net = CostNet(module.float(), objective, scale=scale, statistics=statistics, **arguments)
        return net.initialize()

    def _losses(self, data: TrainingSet) -> tuple[Loss, Loss]:
        """Losses of the output and of the auxiliary heads."""
        loss = get_loss(self.loss)
        aux_loss = loss if self.aux_loss is None else get_loss(self.aux_loss)
        if self._may_add_cost_network and not data.per_class and data.matrices is None:
            loss = loss.for_sample_costs(data.target())
        return loss, aux_loss

    def _make_network(self, data: TrainingSet, loss: Loss) -> tuple[AuxNetwork, list[float]]:
        """The network, with a cost network beside it if the loss asks for one, and its alphas."""
        seed, n_features, n_classes = self._draw_seed(), data.X.shape[1], len(self.classes_)
        with seeded(seed):
            module, alpha = self._make_module(n_features, n_classes)
        if n_cost_outputs := loss.n_cost_outputs(n_classes):
            with seeded(seed + 1):  # it starts alike, whichever heads the other network has
                costs, _ = self._make_module(n_features, n_cost_outputs)
            costs.heads.clear()
            module = ClassAndCostNetwork(module, costs)
        module.set_precision(self.precision == "bf16")
        return module, alpha

    def _hold_out(self, rows: Rows, label: np.ndarray, name: str) -> tuple[Rows, Rows]:
        """Rows that a network sees, and the share of them that it does not see."""
        remedy = "early_stopping=False" if self.early_stopping else "calibration_fraction=0"
        parts = hold_out(
            label, getattr(self, name), name=name, remedy=remedy, random_state=self._draw_seed()
        )
        return tuple(map(rows.part, parts))

    # -------------------------------------------------------- set attributes

    def _set_attributes(self, training: Training) -> BaseCostSensitiveNet:
        """Learn the temperature, and set the fitted attributes."""
        from .._training.temperature import learn_temperature

        net, source = training.net, training.calibration or training
        earlier = self.history_ if net is getattr(self, "net_", None) else []
        if source.held_out is not None:
            n_rows = len(source.rows) + len(source.held_out)
            if self._calibrates(net, n_rows):
                net.temperature = learn_temperature(source.net, source.held_out)
        self.net_ = net
        self.temperature_ = net.temperature
        self.hidden_layers_ = list(net.module_.layers[:-1])
        # Earlier epochs are not copied anew at every call to partial_fit.
        self.history_ = [*earlier, *net.records(len(earlier))]
        return self

    # --------------------------------------------------------------- predict

    def _predict_heads(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        check_is_fitted(self)
        X = self._validate(X, reset=False)
        return self.net_.predict_heads(X, every_head=every_head)

    def _predict_proba(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        return self.net_.predict_proba(self._validate(X, reset=False))

    def _has_probabilities(self) -> bool:
        if hasattr(self, "net_"):
            return isinstance(self.net_.criterion_.loss, ProbabilisticLoss)
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return isinstance(loss, ProbabilisticLoss)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
