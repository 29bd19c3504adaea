"""Decisions by estimated costs, and by expected costs under class probabilities."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.metrics import accuracy_score
from sklearn.utils import _safe_indexing, gen_batches, indexable
from sklearn.utils.validation import check_is_fitted

from .._checks.bases import ClassifierMixin
from .._checks.calls import warn
from .._checks.classifiers import check_frequencies
from .._checks.data import check_row_order, numpy_arrays, on_host, sliceable
from .._checks.labels import shorten
from ..costs._evaluation import read_scored, score_by_costs
from ..costs._labels import columns_of
from ..costs._problem import expected_cost
from ..costs._reading import (
    OF_CLASSES,
    WHEN_DECIDING,
    CostArray,
    CostFunction,
    Kind,
    costs_of,
    read_costs,
)
from ..decisions import adjust_prior, assign, estimate_prior
from ..decisions._assignment import Capacity, shadow_price_vector

# The function of X is called for so many samples at once that their matrices fit into this memory.
MATRICES_BYTES = 2**27


def _check_known(cost: np.ndarray) -> None:
    """Raise an error if estimated costs are NaN, because then no decision is cheapest."""
    if np.isnan(cost).any():  # NaN in X reaches this line with assume_finite.
        unknown = np.isnan(cost).any(axis=1)
        raise ValueError(
            f"The estimated costs are NaN for {np.count_nonzero(unknown)} of {len(cost)} rows, "
            f"first for row {unknown.argmax()}, which allow no decision. Check these rows of X."
        )


class DecisionMixin(ClassifierMixin):
    """Decisions and scores of a classifier that estimates the cost of each prediction."""

    classes_: NDArray[Any]
    decisions_: NDArray[Any]
    class_prior_: NDArray[np.float64]
    cost_matrix: Any
    predict_proba: Any  # of those that estimate probabilities
    loss: Any  # of networks
    cost_matrix_: NDArray[np.float64]  # of a rule
    _prior_unknown: str | None  # The reason, if class frequencies are not known.

    # scikit-learn links the HTML of an estimator to its page.
    _doc_link_module = "auxcst_sklearn"
    _doc_link_template = (
        "https://auxcst.github.io/auxcst_sklearn/generated/auxcst_sklearn.{estimator_name}.html"
    )

    _kind_of_costs: Kind = "matrix"  # of the costs of `fit`
    _fitted_cost_matrix: CostArray | CostFunction | None = None  # as it was in `fit`

    def predict_cost(
        self, X: ArrayLike, cost: ArrayLike | None = None, *, prior: Any = None
    ) -> np.ndarray:
        """Estimate the cost of each decision.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.
        cost : array-like or DataFrame of shape (n_classes, n_decisions), or array-like of shape \
                (n_samples, n_classes, n_decisions), default=None
            Costs for this decision: one matrix for all samples, or a matrix for each. Two
            dimensions always mean one matrix, because cost vectors presume the true class. Rows are
            true classes in the order of `classes_`, columns are decisions in the order of
            `decisions_`. Costs with labels are matched by label. The loss must have class
            probabilities. If None, the learnt costs are used, or else the `cost_matrix` of `fit`,
            which may be a function of X, or the mean costs of each class.
        prior : mapping of labels to float, or "estimate", default=None
            Class frequencies of these samples, if they differ from the training, for example
            because most samples of one class were left out. Probabilities are multiplied by the
            ratio. "estimate" estimates the frequencies from `X`
            (:func:`auxcst_sklearn.decisions.estimate_prior`). If None, nothing is changed.

        Returns
        -------
        ndarray of shape (n_samples, n_decisions)
            Estimated costs, in the currency of the costs. Columns are in the order of `decisions_`.

        Raises
        ------
        ValueError
            If `cost` or `prior` is not as described, the loss has no class probabilities, or with
            `prior` the frequencies of the training are not known; see `train_prior`.
        """
        if cost is None:
            self._warn_of_costs_in_use()
            if prior is None and self._deciding_function is None:
                return self._estimated_cost(X)
        check_is_fitted(self)
        if not self._has_probabilities():
            from ..losses import NAMES_WITH_PROBABILITIES  # of torch, which the rule does not need

            name = "prior" if cost is None else "cost"
            raise ValueError(
                f"{name}= decides by class probabilities, but loss={self.loss!r} has none; use "
                f"{NAMES_WITH_PROBABILITIES}, or leave {name} out."
            )
        probability = self.predict_proba(X)
        if prior is not None:
            probability = self._with_prior(probability, prior)
        if cost is not None:
            costs = read_costs(cost, "cost", WHEN_DECIDING, len(probability))
            return expected_cost(probability, costs.align(self.classes_, self.decisions_))
        return self._expected_cost(X, probability)

    @property
    def _deciding_function(self) -> CostFunction | None:
        """The function of X by which it is decided, the `cost_matrix` of `fit`, if it is one."""
        function = self._fitted_cost_matrix
        return function if callable(function) and self._has_probabilities() else None

    def _estimated_cost(self, X: ArrayLike) -> np.ndarray:
        """Costs of each decision by the costs of `fit`, (n, n_decisions), in currency."""
        return self._expected_cost(X, self.predict_proba(X))

    def _expected_cost(self, X: ArrayLike, probability: np.ndarray) -> np.ndarray:
        """Costs of each decision under given class probabilities, (n, n_decisions), in currency.

        A function of X is called for a part of the samples at once, because a matrix for each of
        many samples may not fit into memory. The costs of a sample depend on this sample alone.
        """
        function = self._deciding_function
        if function is None:
            return expected_cost(probability, self._class_cost_matrix())
        n, axes, owner = len(probability), (self.classes_, self.decisions_), type(self).__name__
        size = max(1, MATRICES_BYTES // (8 * len(self.classes_) * len(self.decisions_)))
        if n <= size:
            return expected_cost(probability, costs_of(function, X, n, owner).align(*axes))
        (rows,) = indexable(sliceable(X))
        expected = []
        for at in gen_batches(n, size):
            p = probability[at]
            costs = costs_of(function, _safe_indexing(rows, at), len(p), owner)
            expected.append(expected_cost(p, costs.align(*axes)))
        return np.concatenate(expected)

    def _warn_of_costs_in_use(self) -> None:
        """Warn of a decision by the costs of `fit`, if others were probably meant."""
        if not hasattr(self, "classes_"):  # an error elsewhere
            return
        is_function = callable(self._fitted_cost_matrix)
        if self._kind_of_costs == "matrices" and self._has_probabilities() and not is_function:
            warn(
                "The estimator was fitted with a cost matrix for each sample, but decides by the "
                "mean costs of the classes, because none reached it. Pass cost= of shape "
                f"(n_samples, {len(self.classes_)}, {len(self.decisions_)}), also to the predict "
                "of a Pipeline. A search does not pass them on: call "
                "search.best_estimator_.predict(X, cost=C). If the costs can be computed from X, "
                "set cost_matrix to a function that does so."
            )
        if not self._decides_by_cost_matrix():
            warn(
                "cost_matrix has changed since fit, but decisions use the costs of fit. Pass the "
                "new costs to the decision, predict(X, cost=new), or fit again."
            )

    def _keep_costs(self, kind: Kind) -> None:
        """Keep what the costs of `fit` were, by which it is decided until the next one."""
        self._kind_of_costs, self._fitted_cost_matrix = kind, self._read_cost_matrix()

    def _decides_by_cost_matrix(self) -> bool:
        """Whether `cost_matrix` is what it was in `fit`, also if it was changed in place."""
        given, fitted = self.cost_matrix, self._fitted_cost_matrix
        if type(given) is np.ndarray:  # reading it takes longer than the estimates of a sample
            return isinstance(fitted, CostArray) and np.array_equal(given, fitted.values)
        return bool(given == fitted if callable(given) else self._read_cost_matrix() == fitted)

    def _read_cost_matrix(self) -> CostArray | CostFunction | None:
        """The `cost_matrix` of the constructor, as a value of its own."""
        matrix = self.cost_matrix
        if matrix is None or callable(matrix):
            return matrix
        return read_costs(matrix, "cost_matrix", OF_CLASSES)

    @abstractmethod
    def _class_cost_matrix(self) -> NDArray[np.float64]:
        """The mean costs of each class in the training (n_classes, n_decisions), in currency."""

    def _has_probabilities(self) -> bool:
        """Whether decisions can use the costs of each row, by class probabilities."""
        return True

    def predict(self, X: ArrayLike, cost: ArrayLike | None = None) -> np.ndarray:
        """Predict the class with the lowest expected cost; `decide` is for all other decisions.

        scikit-learn's tools call `predict`. Call `decide` for decisions that are not the classes,
        for limits on their number, and for other class frequencies.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.
        cost : array-like or DataFrame of shape (n_classes, n_decisions), or array-like of shape \
                (n_samples, n_classes, n_decisions), default=None
            Costs for this decision: one matrix for all samples, or a matrix for each. Two
            dimensions always mean one matrix, because cost vectors presume the true class. Rows are
            true classes in the order of `classes_`, columns are decisions in the order of
            `decisions_`. Costs with labels are matched by label. The loss must have class
            probabilities. If None, the learnt costs are used, or else the `cost_matrix` of `fit`,
            which may be a function of X, or the mean costs of each class.

        Returns
        -------
        ndarray of shape (n_samples,)
            Predicted labels.
        """
        return self._cheapest(self.predict_cost(X, cost))

    def _cheapest(self, cost: np.ndarray) -> np.ndarray:
        """Labels with the smallest estimated cost, of the classes among the decisions."""
        _check_known(cost)
        return self.classes_[self._of_classes(cost).argmin(axis=1)]

    def _of_classes(self, cost: np.ndarray) -> np.ndarray:
        """The columns of the classes, in their order."""
        if self.decisions_ is self.classes_:
            return cost
        columns = columns_of(self.classes_, self.decisions_)
        if columns is None:
            raise ValueError(
                f"predict returns classes, but the classes {shorten(self.classes_)} are not all "
                f"among the decisions {shorten(self.decisions_)}. Call decide(X) instead; for a "
                "pipeline or a search, auxcst_sklearn.decisions.decide(model, X)."
            )
        return cost[:, columns]

    def decide(
        self,
        X: ArrayLike,
        cost: ArrayLike | None = None,
        *,
        capacity: Capacity | None = None,
        shadow_prices: Mapping[Any, float] | None = None,
        prior: Mapping[Any, float] | Literal["estimate"] | None = None,
    ) -> np.ndarray:
        """Return the label of each sample's decision, within limits; `predict` returns classes.

        It has the minimum expected cost. If decisions are the classes and have no limits, `predict`
        returns the same, also in the tools of scikit-learn.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Samples.
        cost : array-like or DataFrame of shape (n_classes, n_decisions), or array-like of shape \
                (n_samples, n_classes, n_decisions), default=None
            Costs for this decision: one matrix for all samples, or a matrix for each. Two
            dimensions always mean one matrix, because cost vectors presume the true class. Rows are
            true classes in the order of `classes_`, columns are decisions in the order of
            `decisions_`. Costs with labels are matched by label. The loss must have class
            probabilities. If None, the learnt costs are used, or else the `cost_matrix` of `fit`,
            which may be a function of X, or the mean costs of each class.
        capacity : mapping of decisions to int or float, default=None
            How many of these samples a decision can have: an int for a number, a float for a share
            (:func:`auxcst_sklearn.decisions.assign`).
        shadow_prices : mapping of decisions to float, default=None
            Shadow prices of limited decisions, in currency, from an earlier batch
            (:func:`auxcst_sklearn.decisions.shadow_prices`). They are added to the costs of the
            decisions. Use them for single samples whose batch is not known.
        prior : mapping of labels to float, or "estimate", default=None
            Class frequencies of these samples, if they differ from the training, for example
            because most samples of one class were left out. Probabilities are multiplied by the
            ratio. "estimate" estimates the frequencies from `X`
            (:func:`auxcst_sklearn.decisions.estimate_prior`). If None, nothing is changed.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels of the decisions, as in `decisions_`.

        Raises
        ------
        ValueError
            As `predict_cost`, or if a limit or shadow price is not as described.
        """
        expected = self.predict_cost(X, cost, prior=prior)
        _check_known(expected)
        if capacity is not None and shadow_prices is not None:
            raise ValueError(
                "Got both capacity and shadow_prices; expected one of them: capacity for a whole "
                "batch, or the shadow prices of an earlier batch."
            )
        if capacity is not None:
            choice = assign(expected, capacity, decisions=self.decisions_)
        else:
            choice = (expected + shadow_price_vector(shadow_prices or {}, self.decisions_)).argmin(
                axis=1
            )
        return self.decisions_[choice]

    def _with_prior(self, probability: np.ndarray, prior: Any) -> np.ndarray:
        """Probabilities for other class frequencies."""
        if np.isnan(self.class_prior_).any():
            raise ValueError(
                "prior= corrects the class frequencies that the probabilities stand for, which may "
                f"not be the shares in the rows of fit: {self._prior_unknown}. Pass them to the "
                "constructor as train_prior=, a mapping of the labels."
            )
        if isinstance(prior, str) and prior == "estimate":
            frequencies = estimate_prior(probability, self.class_prior_)
        else:
            frequencies = frequencies_of(prior, self.classes_, "prior", " or 'estimate'")
        return adjust_prior(probability, self.class_prior_, frequencies)

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        cost: ArrayLike | None = None,
    ) -> float:
        """Minus the mean cost of the predictions; without any costs the accuracy.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
            Test samples.
        y : array-like of shape (n_samples,)
            True labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Sample weights.
        cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
                (n_samples, n_classes, n_classes), default=None
            With two dimensions, the cost of each prediction for each sample, used only to score the
            predictions. With three, a cost matrix for each sample, used to decide, as in `predict`,
            and to score. Without it, `cost_matrix` of the constructor is used; a function is
            called once.

        Returns
        -------
        float
            Minus the mean cost, so that greater is better; or the accuracy, with a warning if
            the estimator was fitted with per-sample costs that are missing here, and an error if
            its decisions are not the classes.
        """
        if cost is None and self.cost_matrix is None:
            check_row_order(X=X, y=y, sample_weight=sample_weight)
            if self._kind_of_costs != "matrix":
                has_classes = columns_of(self.classes_, self.decisions_) is not None
                effect = ", which returns the accuracy" if has_classes else ""
                message = (
                    "The estimator was fitted with per-sample costs, but none reached "
                    f"score{effect}. Pass cost=. A Pipeline, a search or cross_validate passes it "
                    "on only with sklearn.set_config(enable_metadata_routing=True), a search also "
                    "needs scoring=cost_scorer."
                )
                if not has_classes:
                    raise ValueError(message)
                warn(message)
            with numpy_arrays():
                keywords = {"sample_weight": on_host(sample_weight)}
                return float(accuracy_score(on_host(y), self.predict(X), **keywords))
        cost_matrix = self.cost_matrix if cost is None else None
        owner = type(self).__name__
        costs = read_scored(X, y, cost, cost_matrix, sample_weight, owner=owner)
        # Another function than that of `fit` prices decisions that are made by that of `fit`.
        decides = costs.is_known and self._has_probabilities()
        decides = decides and (cost is not None or cost_matrix == self._fitted_cost_matrix)
        return score_by_costs(self, X, y, costs, sample_weight, decides=decides)


def frequencies_of(given: Any, classes: NDArray[Any], name: str, other: str = "") -> NDArray[Any]:
    """The class frequencies in a mapping of the labels."""
    if not isinstance(given, Mapping) or set(given) != set(classes.tolist()):
        raise ValueError(
            f"{name}={given!r}; expected the frequency of each class, as a mapping of the labels "
            f"{shorten(classes)}{other}."
        )
    return check_frequencies([given[label] for label in classes.tolist()], len(classes), name)
