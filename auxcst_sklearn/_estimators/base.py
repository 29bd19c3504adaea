"""The base of all networks: validate, build, train, set attributes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._checks.array_api import numpy_arrays
from .._checks.unchanged import unchanged_on_error
from .._checks.warn import warn
from .._training.distributed import joined, processes
from .._training.runtime import neutral_torch_modes, thread_limit
from .._training.state import FORMAT, check_format, from_state, to_state
from .._training.training_set import TrainingSet
from ..losses import LOSSES, ProbabilisticLoss
from .building import BuildMixin
from .identity import check_same, open_checkpoints
from .parameters import CONSTRAINTS, constant_rate
from .prediction import CostPredictionMixin
from .streams import StreamMixin
from .validation import ValidationMixin

if TYPE_CHECKING:  # skorch is slow to import: on first use
    from typing_extensions import Self

    from .._training.checkpoints import Checkpoints
    from .._training.loop import Plan
    from .._training.training import Training


# Number of rows used to detect a failed training, and the minimum excess cost per row, in units of
# the mean cost above the smallest.
COLLAPSE_ROWS, COLLAPSE_MARGIN = 1000, 0.05


class BaseCostSensitiveNet(
    StreamMixin, ValidationMixin, BuildMixin, CostPredictionMixin, BaseEstimator
):
    """Base of the cost-sensitive networks; a subclass builds its torch module.

    Descriptions that several networks share:

    Parameters
    ----------
    loss : str or Loss, default="bayes_risk"
        Loss of the output, by name or as an object; see :mod:`auxcst_sklearn.losses`. With
        "bayes_risk" and "cross_entropy" the output learns class probabilities, and costs are used
        only in the decision; with "one_sided", the loss of the paper, "smooth_one_sided",
        "softmin" and "squared" it learns the costs. For per-sample costs "bayes_risk" adds a cost
        network of the same shape, which doubles the fit time.
    aux_loss : str or Loss, default=None
        Loss of the auxiliary heads; None for the same as `loss`.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto" is a 32nd of the training set, at least 16 and at most 128.
    weight_decay : float, default=1e-2
        Weight decay of the optimizer.
    optimizer : str or type, default="adamw"
        "adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd", or a subclass of
        ``torch.optim.Optimizer``.
    early_stopping : bool, default=True
        Whether to hold out rows, and keep the weights of the best epoch: the one with the least
        held-out loss at its best temperature, or, for losses without class probabilities, with the
        least held-out mean cost. With fewer than ten rows, none are held out.
    validation_fraction : float, default=0.2
        Fraction of the rows that each network holds out. Several networks hold out different folds:
        the rows are split into `n_networks` folds, or into 1 / `validation_fraction` if that is
        more.
    patience : int, default=10
        Number of epochs without improvement of any network after which training stops.
    temperature : "auto" or float, default="auto"
        Divisor of the logits of the class probabilities; "auto" learns it from the held-out rows.
        Without held-out rows it is 1; losses without class probabilities have none.
    warm_start : bool, default=False
        Whether another call to `fit` continues from the current weights, with the same network,
        loss and optimizer; changes of their parameters then have no effect. With one number of
        rows, it also holds out the same rows.
    device : str, default="auto"
        Where to train: "cpu", "cuda", "mps" ...; "auto" uses a CUDA GPU if there is one. A training
        set that fills more than half of the free GPU memory stays in host memory.
    precision : {"float32", "bf16"}, default="float32"
        Number format of the hidden layers' arithmetic; weights, heads and losses are float32.
        "bf16" is faster on processors with instructions for it, and slower on others.
    checkpoint_dir : str or path-like, default=None
        Folder for checkpoints of the training, from which another call to `fit` with the same data
        and parameters resumes after a crash; the result is the same. "{fit}" in its name is
        replaced by a name for each fit: use it if a search, or ``cv``, fits several models. None
        for no checkpoints.
    checkpoint_every : int, default=1
        Number of epochs between checkpoints.
    verbose : int or bool, default=0
        Whether to print a line per epoch, with the time left without early stopping.
    callbacks : list of skorch callbacks, default=None
        Called during training, as in skorch: schedules, checkpoints, gradient clipping ... They
        receive rows in the form of the net, so that scores by name (`EpochScoring`) do not work.
    net_params : dict, default=None
        Further arguments of the skorch net, such as ``{"optimizer__betas": (0.9, 0.99)}``.
    distributed : {"auto"} or False, default="auto"
        Within an initialised ``torch.distributed`` group of several processes, "auto" distributes
        the training: each process calls `fit` with the same, complete data, and computes its part
        of every mini-batch. False for a separate model in each process.
    channels_last : bool, default=False
        Whether images are (H, W, C) rather than (C, H, W).
    augmentation : {"flip", "shift", "flip_shift"} or callable, default=None
        Random transforms of the training images, drawn again in every epoch: mirror left and right,
        shift by up to 4 pixels, both, or a callable that maps a float tensor (n_samples, C, H, W),
        on the device, to one of the same shape. See :mod:`auxcst_sklearn.modules`.
    max_epochs : int, default=50
        Number of passes over the training set.
    schedule : {"one_cycle", "constant"}, default="one_cycle"
        How the learning rate changes over `max_epochs`: up during the first tenth and then down to
        zero, along cosines, or not at all. `partial_fit` keeps it constant.

    Attributes
    ----------
    hidden_layers_ : list of str
        Names of the layers that have an auxiliary head.
    history_ : list of dict
        One record per epoch: "epoch", "train_loss" (the total), "train_loss_output" and the like
        for each layer in `hidden_layers_` (each head's mean loss), "dur" (seconds), and with early
        stopping the same losses on the held-out rows as "valid_loss...", their mean cost,
        "valid_cost", and with class probabilities "valid_refinement", the loss at the best
        temperature. Numbers are means over the networks. Losses are in units of the mean cost above
        the smallest, "valid_cost" in currency.
    temperature_ : float
        Divisor of the logits of the class probabilities.
    """

    # Routers pass costs on without a set_fit_request call by the user.
    __metadata_request__fit = dict.fromkeys(
        ("cost", "groups", "X_val", "y_val", "cost_val", "sample_weight_val"), True
    )
    __metadata_request__partial_fit = {"cost": True}
    __metadata_request__predict = {"cost": True}
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
            Training samples. Sparse rows are made dense a batch at a time.
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
            held_out = (X_val, y_val, cost_val, sample_weight_val)
            data = self._validate_sets(X, y, cost, sample_weight, groups, held_out, resume)
            return self._train(*data, resume)

    def _train(
        self, data: TrainingSet, validation: TrainingSet | None, resume: bool = False
    ) -> Self:
        """Build the training, run it, and set the fitted attributes."""
        check_same(self, data, validation, resume)
        with open_checkpoints(self, data, validation) as checkpoints:
            training = self._build(data, resume, validation=validation)
            if validation is not None:
                self._check_use_of_validation(training.net)
            training.run(self._plan(checkpoints))
        self._set_attributes(training)
        if self.store_held_out_proba and validation is None:
            from .._training.held_out import held_out_proba

            self.held_out_proba_ = held_out_proba(training, data)
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
        rate = constant_rate(self.learning_rate)
        return Plan(self.max_epochs, self.schedule, patience, self.averaging, checkpoints, rate)

    # -------------------------------------------------------- set attributes

    def _set_attributes(self, training: Training) -> Self:
        """Learn the temperature, and set the fitted attributes."""
        self.__dict__.pop("held_out_proba_", None)  # of earlier weights
        net, held_out = training.net, training.held_out
        earlier = getattr(self, "history_", []) if net is getattr(self, "net_", None) else []
        if held_out is not None and self._calibrates(net):
            learnt = net.learn_temperature(held_out)
            net.temperature = processes().from_first("the temperature", learnt)
        elif isinstance(self.temperature, Real):  # which a warm start may have changed
            net.temperature = float(self.temperature)
        self.net_ = net
        self.class_prior_ = net.statistics.weight / net.statistics.weight.sum()
        self.__dict__.update(self._inputs.attributes())
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
        (cost,) = self.net_.predict_heads(self._inputs.transform(X))
        chosen = np.unique(cost.argmin(axis=1))
        paid = data.constant_costs
        lost = paid - paid.min()
        if len(chosen) == 1 and lost[chosen[0]] > COLLAPSE_MARGIN * self.net_.scale.unit:
            classes, best = self.decisions_.tolist(), int(paid.argmin())
            warn(
                f"All predictions for the training rows are {classes[chosen[0]]!r}, at a mean "
                f"cost of {paid[chosen[0]]:.3g}; always {classes[best]!r} would cost "
                f"{paid[best]:.3g}. The training has failed: lower learning_rate, or train longer.",
            )

    # --------------------------------------------------------------- predict

    def _predict_heads(self, X: ArrayLike, *, every_head: bool) -> list[np.ndarray]:
        check_is_fitted(self)
        X = self._inputs.transform(self._validate(X, reset=False))
        return self.net_.predict_heads(X, every_head=every_head)

    def _predict_proba(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        return self.net_.predict_proba(self._inputs.transform(self._validate(X, reset=False)))

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        net = self.net_
        if net.learns_sample_costs:
            X = self._inputs.transform(self._validate(X, reset=False))
            return net.expected_cost(X, probability)
        if net.criterion_.loss.n_cost_outputs(len(self.classes_)):
            raise ValueError(
                f"prior= needs costs of classes, but the loss {self.loss!r} has learnt costs of "
                "samples in a way of its own; expected a cost_matrix, or a matrix for each sample."
            )
        expected: np.ndarray = probability @ net.scale.to_currency(net.statistics.class_mean)
        return expected

    def _has_probabilities(self) -> bool:
        if hasattr(self, "net_"):
            return isinstance(self.net_.criterion_.loss, ProbabilisticLoss)
        loss = LOSSES.get(self.loss) if isinstance(self.loss, str) else self.loss
        return isinstance(loss, ProbabilisticLoss)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
