"""BayesMinimumRiskClassifier: the cheapest decision given any classifier's probabilities."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import sklearn
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import StackingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils import get_tags, indexable
from sklearn.utils._param_validation import HasMethods, StrOptions
from sklearn.utils.metadata_routing import UNUSED, MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import check_is_fitted

from .._checks.bases import BaseEstimator, MetaEstimatorMixin
from .._checks.calls import warning_once
from .._checks.classifiers import probabilities, requesting_weights, reweighting, weights_elsewhere
from .._checks.data import numpy_arrays, on_host, sliceable
from .._checks.labels import as_labels, label_index
from .._checks.nesting import fit_arguments, takes_costs
from .._training.temperature import at_temperature
from ..costs._problem import Problem
from .bayes_decision import BayesDecisionMixin
from .calibration import (
    calibrator,
    folds_of,
    learns_by_default,
    out_of_fold_temperature,
    unseen_probabilities,
    warn_of_many_classes,
)


@dataclass(eq=False, repr=False)
class BayesMinimumRiskClassifier(BayesDecisionMixin, MetaEstimatorMixin, BaseEstimator):
    """Make any classifier with probabilities choose the decision with the minimum expected cost.

    Set `estimator`, set `cost_matrix` or pass `cost` to `fit`, and choose `calibration`.

    The expected cost of predicting class k for x is ``sum_j P(j | x) M[j, k]``. The class with the
    smallest expected cost is predicted (the Bayes decision). The costs are not needed for training,
    and a matrix for each sample may be passed at prediction time. The decision is only as good as
    the probabilities. `fit` warns if it is more expensive than the most probable class on samples
    that the classifier has not seen.

    Parameters
    ----------
    estimator : classifier, default=None
        The classifier whose `predict_proba` is used. With `calibration`, a `decision_function` is
        enough. If None, :class:`~sklearn.linear_model.LogisticRegression` is used.
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
    calibration : {"auto", "temperature", "sigmoid", "isotonic"} or None, default="auto"
        How to calibrate the probabilities: "auto" does nothing with fewer than ten classes, and
        otherwise learns a temperature from a fifth of the samples (see Notes). "temperature"
        divides the logarithms of the probabilities by a number that out-of-fold probabilities
        determine, and then fits `estimator` to all samples. "sigmoid" and "isotonic" use
        :class:`~sklearn.calibration.CalibratedClassifierCV`, for few classes. If None,
        probabilities are not calibrated.
    cv : int, cross-validation generator or iterable, default=None
        The folds for calibration. If None, 5 stratified folds are used, or for "auto" one.

    Attributes
    ----------
    estimator_ : classifier
        The fitted classifier, with "sigmoid" and "isotonic" a `CalibratedClassifierCV`.
    temperature_ : float
        Divisor of the logarithms of the probabilities, 1 without a temperature.
    cost_matrix_ : ndarray of shape (n_classes, n_classes)
        The costs used in the decision, both axes in the order of `classes_`. If costs differ
        between samples, the means of the classes over the training samples.
    n_features_in_ : int
        Number of features seen during fit, if `estimator_` has it.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `estimator_` has them.
    classes_ : ndarray of shape (n_classes,)
        The labels, sorted: the order of all cost columns.
    decisions_ : ndarray of shape (n_decisions,)
        The decisions, in the order of the columns of `predict_cost`: `classes_`, unless the costs
        have other labels.
    class_prior_ : ndarray of shape (n_classes,)
        Class frequencies that the probabilities imply; NaN if unknown.

    See Also
    --------
    sklearn.model_selection.TunedThresholdClassifierCV : Tunes a threshold, for two classes.

    Notes
    -----
    With many classes, the probabilities of most classifiers are far too cautious or too sure, so
    that costs outweigh them wrongly. A temperature is a single number, and a fifth of the samples
    determines it well. "auto" fits `estimator` once more for it, unless `estimator` ends in a
    network or ensemble of this package or in a `CalibratedClassifierCV`. These calibrate
    themselves. A :class:`~sklearn.frozen.FrozenEstimator` is not fitted. The samples of `fit`,
    which it should not have seen, determine the temperature if there are more than ten for each
    class.

    With metadata routing, arguments of `fit` are passed to the `fit` of `estimator` if it requests
    them. Calibration uses `sample_weight` without a request. `predict` and `score` request `cost`.

    References
    ----------
    C. Elkan, "The foundations of cost-sensitive learning", IJCAI 2001.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from auxcst_sklearn import BayesMinimumRiskClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> cost_matrix = [[0, 1, 1], [1, 0, 1], [1, 10, 0]]
    >>> model = BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=cost_matrix).fit(X, y)
    >>> flower = X[56:57]
    >>> model.predict_proba(flower).round(2)
    array([[0.  , 0.66, 0.34]])
    >>> model.predict_cost(flower).round(2)
    array([[1.  , 3.41, 0.66]])
    >>> model.predict(flower)
    array([2])
    """

    # `fit` itself uses no weights, so an estimator around this one need not request them for it.
    __metadata_request__fit = {"sample_weight": UNUSED, "cost": True, "groups": True}

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **BayesDecisionMixin._parameter_constraints,
        "estimator": [HasMethods(["fit"]), None],
        "calibration": [StrOptions({"auto", "sigmoid", "isotonic", "temperature"}), None],
        "cv": ["cv_object"],
    }

    estimator: BaseEstimator | None = None
    _: KW_ONLY
    calibration: str | None = "auto"
    cv: Any = None

    @numpy_arrays()
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
        """Fit the classifier, and calibrate it if `calibration` is set.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training samples, in any form that `estimator` accepts.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights, passed on to `estimator` if given.
        cost : array-like of shape (n_samples, n_classes) or (n_samples, n_classes, n_classes), \
                or DataFrame, default=None
            Cost of each prediction for each sample, or a cost matrix for each sample. Their means
            over the classes are `cost_matrix_`, which `predict` uses if it gets no costs. An
            `estimator` of this package that has no `cost_matrix`, alone or at the end of a pipeline
            or search, also learns from them; other classifiers do not use them.
        groups : array-like of shape (n_samples,), default=None
            Groups of samples, such as the rows of one customer, for the folds of the calibration.
            By default, no group is in two folds. They are passed on to an `estimator` that takes
            them, or whose last step does.
        **fit_params : dict
            Further arguments of the `fit` of `estimator`.

        Returns
        -------
        self : object
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or the cost matrix is not as described, `y` has a label that is not
            among `classes`, or a fold for calibration lacks a class.
        TypeError
            If `estimator` has no `predict_proba`.
        """
        self._validate_params()
        classifier = self._classifier()
        parts = [classifier, *clone(classifier).get_params().values()]  # raises for a class
        # The methods of a StackingClassifier are known only after its fit.
        if not any(isinstance(part, StackingClassifier) for part in parts):
            self._check_probabilities(classifier)
        data, prior = self._read_problem(
            X, y, cost, sample_weight=sample_weight, groups=groups, **fit_params
        )
        (X,) = indexable(sliceable(X))  # some sparse formats have no rows to select
        data = replace(data, X=X)
        if data.weight is not None:
            fit_params["sample_weight"] = on_host(sample_weight)
        if isinstance(classifier, CalibratedClassifierCV) and classifier is not self.estimator:
            classifier = calibrator(classifier, self.cv, data)
        fit_params = self._route(classifier, data, fit_params)
        warn_of_many_classes(self.calibration, len(data.classes))
        temperature = self._learn_temperature(classifier, data, fit_params)
        model = clone(classifier).fit(X, data.labels, **fit_params)
        self._check_probabilities(model)
        labels = as_labels(model.classes_, "classes_")
        label_index(labels, data.classes, name="estimator.classes_")  # raises for others
        has_weight = data.weight is not None
        unknown = reweighting(model) or weights_elsewhere(has_weight, fit_params)
        self._set_costs(data, prior, unknown)
        self.estimator_, self.temperature_ = model, temperature
        return self

    def _route(self, classifier: Any, data: Problem, fit_params: dict[str, Any]) -> dict[str, Any]:
        """Arguments of the `fit` of the classifier, also groups and costs of samples."""
        routes = sklearn.get_config()["enable_metadata_routing"]
        own = dict[str, Any]()
        if data.groups is not None:
            own["groups"] = data.groups
        if data.kind != "matrix" and takes_costs(classifier):
            own["cost"] = data.with_labels()
        names = {name: name for name in own} if routes else fit_arguments(classifier)
        fit_params |= {names[name]: value for name, value in own.items() if name in names}
        if not routes:
            return fit_params
        routed: dict[str, Any] = process_routing(self, "fit", **fit_params).estimator.fit
        return routed

    def _learn_temperature(
        self, classifier: Any, data: Problem, fit_params: dict[str, Any]
    ) -> float:
        """The temperature of the probabilities, 1 for none, by rows that are not trained on."""
        is_auto, keep = self.calibration == "auto", data.is_weighted
        n_classes = len(data.classes)
        if is_auto and not learns_by_default(classifier, int(keep.sum()), n_classes):
            return 1.0
        if not (is_auto or self.calibration == "temperature"):
            return 1.0
        if isinstance(classifier, CalibratedClassifierCV):
            return 1.0
        if isinstance(classifier, FrozenEstimator):
            p = probabilities(classifier, data.X, data.classes)
        else:
            folds = folds_of(self.cv, data, one=is_auto)
            p = unseen_probabilities(classifier, data, folds, fit_params)
        # Rows of weight 0 are not evidence. The array may be one that the classifier keeps.
        return out_of_fold_temperature(np.where(keep[:, np.newaxis], p, np.nan), data)

    def _classifier(self) -> BaseEstimator:
        """The unfitted classifier, wrapped for calibration if `calibration` is set."""
        estimator = self.estimator
        if estimator is None:
            estimator = requesting_weights(LogisticRegression())
        by_temperature = self.calibration == "temperature" and hasattr(estimator, "predict_proba")
        if self.calibration in (None, "auto") or by_temperature:
            return estimator
        return requesting_weights(CalibratedClassifierCV(estimator, method=self.calibration))

    def _check_probabilities(self, classifier: BaseEstimator) -> None:
        if not hasattr(classifier, "predict_proba"):
            raise TypeError(
                f"estimator={self.estimator!r} has no predict_proba; expected a classifier that "
                "estimates probabilities. Pass another one, or calibration='sigmoid', which "
                "makes probabilities of a decision_function."
            )

    @numpy_arrays()
    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        check_is_fitted(self)
        p = probabilities(self.estimator_, X, self.classes_)
        if self.temperature_ == 1:
            return p
        known = np.isin(self.classes_, self.estimator_.classes_)
        return at_temperature(p, self.temperature_, known)

    @property
    def n_features_in_(self) -> int:
        """Number of features seen during fit."""
        return self.estimator_.n_features_in_

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the features seen during fit."""
        return self.estimator_.feature_names_in_

    def get_metadata_routing(self) -> MetadataRouter:
        """Routing of the metadata that `fit` passes on to the classifier, and of its own.

        Returns
        -------
        routing : MetadataRouter
            A :class:`~sklearn.utils.metadata_routing.MetadataRouter` encapsulating
            routing information.
        """
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(
                estimator=self._classifier(),
                method_mapping=MethodMapping().add(caller="fit", callee="fit"),
            )
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self._classifier()).input_tags
        return tags
