"""CostSensitiveEnsembleClassifier: a weighted ensemble of classifiers, for the lowest cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.utils import Bunch, check_consistent_length, check_random_state, get_tags, indexable
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from .._checks.bases import BaseComposition, MetaEstimatorMixin
from .._checks.calls import error_context, unchanged_on_error, warning_once
from .._checks.classifiers import probabilities, reweighting, weights_elsewhere
from .._checks.data import are_named, check_no_mask, on_host
from .._inputs.arrays import has_columns_of_fit
from .._training.folds import folds
from .._training.geometric_mean import geometric_mean
from .._training.plan import N_FOLDS, n_folds_for
from .._training.temperature import log_clipped
from .._training.torch_modes import draw_seed
from ..costs._problem import Fold, Problem
from .bayes_decision import BayesDecisionMixin
from .calibration import folds_of
from .members import (
    DEFAULT_MEMBERS,
    DROP,
    Member,
    check_members,
    cost_estimators,
    default_for,
    default_members,
    fit_members,
    folds_with_all_classes,
    fresh_member,
    is_dropped,
    learn_weights,
    with_weight,
)


@dataclass(eq=False, repr=False)
class CostSensitiveEnsembleClassifier(BayesDecisionMixin, MetaEstimatorMixin, BaseComposition):
    """Network and gradient boosting as one classifier: the geometric mean of their probabilities.

    Set `cost_matrix` or pass `cost` to `fit`, and set `random_state`. Other members can be passed
    in `estimators`.

    The probabilities are proportional to ``prod_m p_m(k | x) ** w_m``. The weights `w` are not
    negative. They minimise the log loss of out-of-fold predictions. Members whose weight is 0 are
    dropped. The decision has the minimum expected cost, according to the costs of `fit` or to a
    matrix for each sample.

    If `fit` gets a cost vector for each sample, each :class:`CostSensitiveAuxMLP` among the members
    also learns these costs from the features. Decisions then use these estimates.

    Parameters
    ----------
    estimators : list of (str, estimator), default=None
        The members: names and classifiers with `predict_proba`, or "drop". If None, "network" is
        the default :class:`CostSensitiveAuxMLP`, and "boosting" is scikit-learn's
        :class:`~sklearn.ensemble.HistGradientBoostingClassifier` with early stopping. With 30 or
        more classes, a logistic regression, "logistic", replaces "boosting". These members accept
        DataFrames with strings and missing values.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), or callable, default=None
        Cost of each prediction (column) for each true class (row), in any currency. Rows and
        columns follow `classes_`. Costs with labels (a DataFrame, or from
        :mod:`auxcst_sklearn.costs`) are matched by label. If costs differ between samples and are
        known when deciding, pass a function. It gets the X of `fit`, `predict` and other methods
        as it is, and returns a cost matrix for each sample. The costs of a sample must depend on
        this sample alone. Costs of past samples are passed to `fit` instead. Without any costs,
        every mistake costs 1.
    classes : array-like of shape (n_classes,), default=None
        All labels, sorted, if the training set may lack a class. If None, the labels of `y` or of
        the costs are used.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the cost columns, if the decisions are not the classes, such as "approve",
        "decline" and "review". `decide` then returns them. Costs with labels are matched by label.
        If None, the labels of the costs are used, or the classes for costs without labels.
    train_prior : mapping of labels to float, default=None
        Class frequencies that the probabilities imply, and that ``prior=`` replaces. Set it for a
        frozen classifier (frequencies of its own training), for ``class_weight="balanced"`` (equal
        frequencies), and for other weights or a sampler (frequencies after weighting or sampling).
        If None, the frequencies of the samples in `fit` are used. With a frozen classifier,
        `class_weight`, `scale_pos_weight`, `priors`, `class_prior` or `fit_prior`, ``prior=`` is
        then an error.
    cv : int, cross-validation generator or iterable, default=None
        The folds. If an int, the folds are shuffled, stratified, and split no group. If None, there
        are 5 folds, and for more than 50,000 samples only 3 of them are predicted. Folds that lack
        a class in training, or hold out no samples, are left out with a warning.
    n_jobs : int, default=None
        Number of fits at the same time. If None, 1. If -1, the number of processors.
    random_state : int, RandomState instance or None, default=None
        Determines the folds, and the random state of members that have none of their own. Pass an
        int for the same result on every call.
    verbose : int or bool, default=0
        Whether to print a line for each member.

    Attributes
    ----------
    estimator_weights_ : ndarray of shape (n_members,)
        Weight of each member in the order of `estimators`, 0 for dropped members. The sum is above
        1 if the members are too cautious, and below 1 if they are too sure.
    estimators_ : list of classifiers
        The fitted members whose weight is above 0.
    named_estimators_ : :class:`~sklearn.utils.Bunch`
        The fitted members by name, "drop" for dropped members.
    held_out_losses_ : ndarray of shape (n_members,)
        Mean log loss of each member alone, of its out-of-fold predictions.
    cost_matrix_ : ndarray of shape (n_classes, n_classes)
        The costs used in the decision, both axes in the order of `classes_`. If costs differ
        between samples, the means of the classes over the training samples.
    cost_estimators_ : list of CostSensitiveAuxMLP
        The fitted networks that have learnt costs that differ within a class. Their estimates
        replace `cost_matrix_`.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: the order of all cost columns.
    decisions_ : ndarray of shape (n_decisions,)
        The decisions, in the order of the columns of `predict_cost`: `classes_`, unless the costs
        have other labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies that the probabilities imply; NaN if unknown.
    n_features_in_ : int
        Number of features seen during fit.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` had names that are all strings.

    See Also
    --------
    sklearn.ensemble.StackingClassifier : Another classifier learns from the members' probabilities.

    Notes
    -----
    With metadata routing, arguments of `fit` are passed to the members that request them. `fit`
    itself requests `cost` and `groups`. `predict` and `score` request `cost`.

    References
    ----------
    C. Genest, J. V. Zidek, "Combining Probability Distributions: A Critique and an Annotated
    Bibliography", Statistical Science 1(1), 1986.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from auxcst_sklearn import CostSensitiveEnsembleClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> members = [("bayes", GaussianNB()), ("logistic", LogisticRegression(max_iter=5000))]
    >>> cost_matrix = [[0, 1, 10], [1, 0, 10], [1, 1, 0]]
    >>> ensemble = CostSensitiveEnsembleClassifier(members, cost_matrix=cost_matrix, random_state=0)
    >>> ensemble.fit(X, y).predict(X[:3])
    array([0, 0, 0])
    >>> ensemble.estimator_weights_.shape
    (2,)
    """

    __metadata_request__fit = {"cost": True, "groups": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BayesDecisionMixin._parameter_constraints,
        "estimators": [list, None],
        "cv": ["cv_object"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    estimators: Sequence[tuple[str, Any]] | None = None
    _: KW_ONLY
    cv: Any = None
    n_jobs: int | None = None
    random_state: int | np.random.RandomState | None = None
    verbose: int | bool = 0

    @property
    def _members(self) -> Any:
        """The members as they are given, before they are checked."""
        return default_members() if self.estimators is None else self.estimators

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the ensemble, and of its members as ``name__parameter``.

        Parameters
        ----------
        deep : bool, default=True
            If True, will return the parameters for this estimator and
            contained subobjects that are estimators.

        Returns
        -------
        params : dict
            Parameter names mapped to their values.
        """
        return self._get_params("_members", deep=deep)

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ensemble and of its members, or replace a member by its name.

        Parameters
        ----------
        **params : dict
            Estimator parameters.

        Returns
        -------
        self : estimator instance
            Estimator instance.
        """
        of_default = any(name.split("__")[0] in DEFAULT_MEMBERS for name in params)
        if self.estimators is None and of_default:
            self.estimators = default_members()
        self._set_params("estimators", **params)
        return self

    # ------------------------------------------------------------------- fit

    @warning_once()
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        cost: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        **fit_params: Any,
    ) -> Self:
        """Fit the members, and learn their weights from out-of-fold predictions.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Training samples, in any form that all members accept.
        y : array-like of shape (n_samples,)
            Labels: strings, integers or booleans.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights for the members and for the log loss. Samples of weight 0 are left out.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), \
                or DataFrame, default=None
            Cost of each prediction for each sample, or a cost matrix for each sample, which is then
            also passed to `predict`. If `predict` gets no costs, it uses the means of the classes,
            `cost_matrix_`.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples, such as the samples of one customer. No group is in two folds.
        **fit_params : dict
            Further arguments of the members' `fit`, with metadata routing only.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If the data, costs or parameters are not as described, or a member fails. A fitted
            estimator is then unchanged.
        TypeError
            If a member has no `predict_proba`, or takes no `sample_weight`.
        """
        with unchanged_on_error(self):
            self._validate_params()
            named = self._members
            members = check_members(named)
            self._validate_names([name for name, _ in named])
            of_samples = {"sample_weight": sample_weight, "groups": groups}
            data, prior = self._read_problem(X, y, cost, **of_samples)
            members = default_for(members, len(data.classes))
            data = replace(data, X=self._validate_rows(X, reset=True))
            check_consistent_length(data.X, data.labels)
            passed = self._route(members, data.weight, fit_params)
            own_folds: list[Fold] | None = None  # for a number of folds
            if not (self.cv is None or isinstance(self.cv, Integral)):
                own_folds = folds_of(self.cv, data, one=False)
            data, passed, own_folds = with_weight(data, passed, own_folds)
            rng = check_random_state(self.random_state)
            used_folds = self._random_folds(data, rng) if own_folds is None else own_folds
            used_folds = folds_with_all_classes(used_folds, data.labels)
            ready = [
                Member(name, *fresh_member(member, passed[name], data, rng))
                for name, member in members
            ]
            fitted, held_out = fit_members(ready, data, used_folds, self.n_jobs, self.verbose)
            weights, losses = learn_weights(fitted, held_out, data, used_folds)
            self.estimator_weights_, self.held_out_losses_ = weights, losses
            trios = zip(ready, weights, fitted)
            kept = {member.name: model if share > 0 else DROP for member, share, model in trios}
            self.named_estimators_ = Bunch(**kept)
            self.estimators_ = [model for model in kept.values() if not is_dropped(model)]
            self.cost_estimators_ = cost_estimators(fitted)
            reasons = [*map(reweighting, fitted)]
            has_weights = data.weight is not None
            reasons += [weights_elsewhere(has_weights, params) for params in passed.values()]
            self._set_costs(data, prior, next(filter(None, reasons), None))
        return self

    def _validate_rows(self, X: Any, *, reset: bool) -> Any:
        """The caller's rows, which can be selected; their values are checked by the members."""
        check_no_mask(X, "X")
        (X,) = indexable(on_host(X))
        shape = getattr(X, "shape", None) or np.asarray(X, dtype=object).shape
        # One dimension is for texts, of which a pipeline makes features.
        if len(shape) < 2 and (are_named(X) or not all(isinstance(row, str) for row in X)):
            raise ValueError(
                f"X has shape {shape}; expected two dimensions, (n_samples, n_features). Reshape "
                "your data: X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one sample."
            )
        if reset or not has_columns_of_fit(self, X):
            validate_data(self, X, reset=reset, skip_check_array=True)
        return X

    def _route(
        self, members: list[tuple[str, Any]], sample_weight: Any, fit_params: dict[str, Any]
    ) -> dict[str, dict[str, Any]]:
        """Arguments of each member's `fit`."""
        known = {} if sample_weight is None else {"sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            routed = process_routing(self, "fit", **known, **fit_params)
            return {name: dict(routed[name].fit) for name, _ in members}
        if fit_params:
            raise TypeError(
                f"fit got {sorted(fit_params)}, which only metadata routing passes to members; "
                "call sklearn.set_config(enable_metadata_routing=True), and the members' "
                "set_fit_request."
            )
        for name, member in members:
            if known and not has_fit_parameter(member, "sample_weight"):
                raise TypeError(
                    f"The fit of the member {name!r}, {member!r}, takes no sample_weight; leave "
                    "it out, or enable metadata routing and request it for its parts."
                )
        return {name: dict(known) for name, _ in members}

    def _random_folds(self, data: Problem, rng: np.random.RandomState) -> list[Fold]:
        label, groups = data.label, data.groups
        n_folds = N_FOLDS if self.cv is None else int(self.cv)
        drawn = folds(label, n_folds, random_state=draw_seed(rng), groups=groups)
        # By default as many as the networks, each of which holds one out.
        return drawn[: n_folds_for(len(label))] if self.cv is None else drawn

    # --------------------------------------------------------------- predict

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        if not hasattr(self, "estimator_weights_"):  # Before the check, which makes the members.
            check_is_fitted(self)
        X = self._validate_rows(X, reset=False)
        logs = []
        for name, model in self.named_estimators_.items():
            if not is_dropped(model):
                with error_context(f"In the member {name!r} of the ensemble"):
                    logs.append(log_clipped(probabilities(model, X, self.classes_)))
        return geometric_mean(self.estimator_weights_[self.estimator_weights_ > 0], np.stack(logs))

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        if not self.cost_estimators_:
            return super()._expected_cost(X, probability)
        of_each = [network._expected_cost(X, probability) for network in self.cost_estimators_]
        return np.mean(of_each, axis=0)

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of the metadata that `fit` passes on to the members, and of its own.

        Returns
        -------
        routing : MetadataRouter
            A :class:`~sklearn.utils.metadata_routing.MetadataRouter` encapsulating
            routing information.
        """
        router = MetadataRouter(owner=self).add_self_request(self)
        for name, member in self._members:
            if not is_dropped(member):
                mapping = MethodMapping().add(caller="fit", callee="fit")
                router.add(**{name: member}, method_mapping=mapping)
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        of_members = [
            get_tags(member).input_tags
            for _, member in self._members
            if hasattr(member, "__sklearn_tags__")
        ]
        tags.input_tags.sparse = all(own.sparse for own in of_members)
        tags.input_tags.allow_nan = all(own.allow_nan for own in of_members)
        return tags
