"""The base of all networks: a fit validates, prepares, builds and trains; then predictions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._checks.calls import unchanged_on_error, warn, warning_once
from .._checks.data import numpy_arrays
from .._inputs.arrays import Preprocessor
from .._training.calibration import calibrate, held_out_costs
from .._training.checkpoints import check_same, open_checkpoints
from .._training.folds import Unseen, held_out_proba
from .._training.loop import Training
from .._training.net import CostNet
from .._training.plan import Plan, parameters_of_net
from .._training.processes import distributed_fit, processes, report
from .._training.state import FORMAT, check_format, from_state, to_state, without_training_state
from .._training.torch_modes import draw_seed, neutral_torch_modes, thread_limit
from ..costs._problem import Fold, Problem
from ..costs._statistics import CostStatistics
from .continuing import check_block, check_unchanged, continue_net
from .fit_steps import build, make_net, new_random_state, plan_training, prepare, validate
from .network_steps import NetworkSteps, Samples
from .prediction import NetDecisionMixin

# Number of rows used to detect a failed training, of which some are tried first, and the minimum
# excess cost per row, in units of the mean cost above the smallest.
COLLAPSE_ROWS, FIRST_ROWS, COLLAPSE_MARGIN = 1000, 32, 0.05


class BaseCostSensitiveNet(NetworkSteps, NetDecisionMixin):
    """Base of the cost-sensitive networks; a subclass builds its torch module."""

    # Routers pass costs on without a set_fit_request call by the user.
    __metadata_request__fit = dict.fromkeys(
        ("cost", "groups", "X_val", "y_val", "cost_val", "sample_weight_val"), True
    )
    __metadata_request__partial_fit = {"cost": True}
    __metadata_request__predict = {"cost": True}
    __metadata_request__score = {"cost": True}

    # ------------------------------------------------------------------------- fit

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        cost: ArrayLike | None = None,
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
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples in the loss, not negative.
        cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
                (n_samples, n_classes, n_classes), default=None
            Cost of each possible prediction for each sample, in any currency, to be learnt from X.
            If costs are known when deciding, pass a cost matrix for each sample (row = true class)
            here and to `predict`. Columns follow the order of `classes_`. Costs with labels (a
            DataFrame, or from :mod:`auxcst_sklearn.costs`) are matched by label. If None, the
            `cost_matrix` of the constructor is used, and without both every mistake costs 1.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples, such as the samples of one customer. Validation samples have no group
            in common with the other samples.
        X_val, y_val, cost_val, sample_weight_val : array-like, default=None
            A validation set, in the form of `X`, `y`, `cost` and `sample_weight`. It replaces the
            validation samples of `fit` in early stopping and for the temperature. Its losses are in
            `history_`. Pass `cost_val` if and only if `cost` is passed.

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
        of_samples: Any = {"sample_weight": sample_weight, "cost": cost, "groups": groups}
        self._fit(X, y, of_validation=(X_val, y_val, cost_val, sample_weight_val), **of_samples)
        return self

    def _fit_on_folds(self, X: Any, y: Any, folds: Sequence[Fold], **params: Any) -> Unseen:
        """Fit so that network i holds out fold i; return what `held_out_proba` does."""
        data, training = self._fit(X, y, folds=folds, **params)
        return held_out_proba(training, data, len(folds))

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

        A changed `learning_rate`, `weight_decay`, `alpha`, `dropout` or `batch_size` acts at the
        next call. The device, and parameters of epochs, schedules, validation, pretraining and
        checkpoints have no effect. All others made the net, and a change of them is an error.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training samples. Sparse rows are made dense a batch at a time.
        y : array-like of shape (n_samples,)
            Labels: strings, integers or booleans.
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
            The fitted estimator.

        Raises
        ------
        ValueError
            As `fit`, if the classes are unknown at the first call or differ at a later one, or if
            a parameter that made the net has changed.
        """
        self._fit(X, y, sample_weight=sample_weight, cost=cost, classes=classes, stream=True)
        return self

    def _fit(
        self,
        X: Any,
        y: Any,
        *,
        folds: Sequence[Fold] | None = None,
        stream: bool = False,
        **given: Any,
    ) -> tuple[Problem, Training]:
        """Validate, prepare, build, train, calibrate, and set attributes.

        `given` are other arguments of `validate`. An ensemble passes its `folds`. The training set
        that is returned is in currency.
        """
        resume = (stream or self.warm_start) and hasattr(self, "net_")
        earlier = self.net_ if resume else None
        with self._fitting(resume) as rng:
            samples = validate(self, X, y, resume=resume, stream=stream, **given)
            data, validation, _ = samples
            if stream and resume:
                check_block(data.kind, self._kind_of_costs)
            if resume:
                check_unchanged(self._of_net, parameters_of_net(self.get_params(deep=False)))
            if processes().size > 1:
                check_same(self, data, validation, rng, earlier)
            keeps = not stream and getattr(self, "checkpoint_dir", None) is not None
            folder = open_checkpoints(self, data, validation) if keeps else nullcontext()
            with folder as checkpoints:
                if checkpoints is not None and self.random_state is None:
                    rng = np.random.RandomState(checkpoints.seed)
                samples = samples._replace(data=data.with_positive_weights())
                plan, statistics = plan_training(self, samples, earlier, stream=stream)
                report(f"Training: {plan}", self.verbose)
                inputs, training = self._built(plan, samples, statistics, earlier, rng, folds)
                pretrained = {} if resume else self._pretrain(training, rng)
                training.net.seed(draw_seed(rng))
                training.run(checkpoints)
            training.net.temperature, training.net.head_weights = calibrate(training, plan)
            self._random_state, self.training_ = rng, plan
            self._set_fitted(data, inputs, training, pretrained)
            if not stream:
                self._warn_if_collapsed(data)
                self._warn_if_a_constant_is_cheaper(training)
        return data, training

    def _built(
        self,
        plan: Plan,
        samples: Samples,
        statistics: CostStatistics,
        earlier: CostNet | None,
        rng: np.random.RandomState,
        folds: Sequence[Fold] | None,
    ) -> tuple[Preprocessor, Training]:
        """The training of a new net, or of a copy of the earlier one; and its inputs."""
        samples = prepare(plan, samples, statistics, is_new=earlier is None)
        inputs = samples.inputs
        if earlier is None:
            net = make_net(self, plan, samples, statistics, rng)
            inputs = inputs.as_read_by(net.module_)
        else:
            net = continue_net(self, plan, earlier, samples, statistics)
        seed = getattr(self, "_fold_seed", None) if self.warm_start else None
        return inputs, build(self, plan, net, samples, rng, folds, seed)

    @contextmanager
    def _fitting(self, resume: bool) -> Iterator[np.random.RandomState]:
        """The random numbers of a fit, which an error leaves as they were, like all attributes."""
        with (
            numpy_arrays(),
            unchanged_on_error(self),
            warning_once(),
            thread_limit(),
            neutral_torch_modes(),
        ):
            self._validate_params()
            with distributed_fit(self.distributed):
                yield (
                    deepcopy(self._random_state) if resume else new_random_state(self.random_state)
                )

    def _set_fitted(
        self, data: Problem, inputs: Preprocessor, training: Training, pretrained: dict[str, Any]
    ) -> None:
        net = training.net
        self.classes_, self.decisions_ = data.classes, data.decisions
        self._keep_costs(data.kind)
        self._inputs, self.net_ = inputs, net
        if not training.n_before:
            self._of_net = parameters_of_net(self.get_params(deep=False))
        if training.fold_seed is not None:
            self._fold_seed = training.fold_seed
        self.class_prior_ = net.statistics.weight / net.statistics.weight.sum()
        self.temperature_ = net.temperature
        self.hidden_layers_ = list(net.module_.layers[:-1])
        # Earlier epochs are not copied again at every call to partial_fit.
        earlier = getattr(self, "history_", []) if training.n_before else []
        self.history_: list[dict[str, Any]] = [*earlier, *net.records(len(earlier))]
        for name, value in {**inputs.attributes(), **pretrained}.items():
            setattr(self, name, value)

    def _warn_if_collapsed(self, data: Problem) -> None:
        """Warn if all predictions are one class, and another one would cost less."""
        if data.is_known:  # decisions depend on each row's costs
            return
        # At random, because every tenth row, say, may be of one class. Nearly always, a few rows
        # already show two decisions.
        n, draw = len(data), np.random.RandomState(0)
        some = draw.randint(n, size=COLLAPSE_ROWS) if n > COLLAPSE_ROWS else draw.permutation(n)
        for index in (some[:FIRST_ROWS], some):
            (cost,) = self.net_.predict_heads(self._inputs.transform(data.X[index]))
            chosen = np.unique(cost.argmin(axis=1))
            if len(chosen) > 1:
                return
        paid = np.average(data.values, axis=0, weights=data.weight_of_values)
        lost = paid - paid.min()
        if lost[chosen[0]] > COLLAPSE_MARGIN * self.net_.statistics.unit:
            classes, best = self.decisions_.tolist(), int(paid.argmin())
            warn(
                f"All predictions for the training rows are {classes[chosen[0]]!r}, at a mean "
                f"cost of {paid[chosen[0]]:.3g}; always {classes[best]!r} would cost "
                f"{paid[best]:.3g}. The training has failed: lower learning_rate, or train longer."
            )

    def _warn_if_a_constant_is_cheaper(self, training: Training) -> None:
        """Warn if, with extreme costs, the best decision for all held-out rows costs less."""
        net, held_out = training.net, training.held_out
        if held_out is None or not net.statistics.is_extreme:
            return
        paid, constant = processes().from_first(held_out_costs(net, held_out))
        best = int(constant.argmin())
        if paid > (1 + COLLAPSE_MARGIN) * constant[best]:
            currency = net.statistics.to_currency(np.array([constant[best], paid]))
            warn(
                f"On the samples that were held out, always {self.decisions_.tolist()[best]!r} "
                f"costs {currency[0]:.3g} a sample, and the decisions of the network cost "
                f"{currency[1]:.3g}: some costs are so high that the probabilities are not "
                "precise enough. Prefer the constant decision, or more samples of rare classes."
            )

    @property
    def head_weights_(self) -> NDArray[np.float64]:
        """Weights of the heads and of the output in the class probabilities."""
        check_is_fitted(self)
        alone = [0.0] * len(self.hidden_layers_) + [1 / self.temperature_]
        weights = self.net_.head_weights
        return np.array(alone) if weights is None else weights

    def __getstate__(self) -> dict[str, Any]:
        """Arrays and plain values; a net converts itself to such a state."""
        state = to_state(dict(super().__getstate__()))  # it may be the attributes themselves
        if self.callbacks:
            state["callbacks"] = without_training_state(self.callbacks)
        return {**state, "_format": FORMAT}

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        check_format(state.pop("_format", None))
        super().__setstate__(from_state(state))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_nan
        return tags
