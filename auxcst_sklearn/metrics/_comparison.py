"""compare_costs: what the decisions of several models cost, on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import signature
from itertools import product
from numbers import Integral
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn import get_config
from sklearn.base import clone
from sklearn.model_selection import FixedThresholdClassifier as FixedThreshold
from sklearn.model_selection import StratifiedGroupKFold, check_cv
from sklearn.model_selection import TunedThresholdClassifierCV as TunedThreshold
from sklearn.pipeline import Pipeline
from sklearn.utils import Bunch, _safe_indexing, indexable
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed

from .._checks.calls import error_context
from .._checks.classifiers import probabilities
from .._checks.data import sliceable
from .._checks.labels import as_labels, label_index
from .._checks.nesting import before_last, chain, final_estimator, fit_arguments, is_search, last_of
from ..costs._evaluation import function_of, predict_by_costs
from ..costs._labels import columns_of
from ..costs._problem import Problem, read_problem
from ..costs._reading import CostFunction
from ._measures import mean_interval

MOST_PROBABLE = "most probable class"
# With more decisions, the table has no columns of shares, and one row of a constant decision.
MANY_DECISIONS = 15


def compare_costs(
    models: Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    cost_matrix: ArrayLike | CostFunction | None = None,
    classes: ArrayLike | None = None,
    decisions: ArrayLike | None = None,
    cv: Any = 5,
    groups: ArrayLike | None = None,
    baseline: str | None = None,
    n_jobs: int | None = None,
) -> Any:
    """Compare the costs of models by cross-validation, with intervals of their differences.

    Parameters
    ----------
    models : mapping of str to classifier
        Models by name. Estimators of this package, including those in a pipeline or search, get
        the costs, unless they have a `cost_matrix` of their own. scikit-learn's tuned and fixed
        thresholds decide themselves. Other classifiers decide by minimum expected cost.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Samples, in any form that the models accept.
    y : array-like of shape (n_samples,)
        Labels.
    cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
            (n_samples, n_classes, n_decisions), default=None
        Cost of each prediction for each sample, or a cost matrix for each sample if costs are known
        when deciding. Pass either `cost` or `cost_matrix`.
    cost_matrix : array-like or DataFrame of shape (n_classes, n_classes), or callable, default=None
        Cost of each prediction (column) for each true class (row). A function gets `X` and returns
        a cost matrix for each sample. It is called once, and models get its result like `cost`.
        Only searches call it for each fit: it becomes the `cost_matrix` of their estimator.
    classes : array-like of shape (n_classes,), default=None
        All labels, sorted, if `y` may lack one.
    decisions : array-like of shape (n_decisions,), default=None
        Labels of the cost columns, if predictions are decisions other than the classes; `classes`
        then names the rows. By default the names of the costs, from
        :func:`~auxcst_sklearn.costs.cost_matrices` or from the columns of a DataFrame whose index
        contains the classes. Costs with labels are matched by their labels, while plain arrays must
        be in this order.
    cv : int, cross-validation generator or iterable, default=5
        Folds, as in scikit-learn. With `groups`, the folds of an int split no group. Samples that
        are never tested, as with :class:`~sklearn.model_selection.TimeSeriesSplit`, are left out.
    groups : array-like of shape (n_samples,), default=None
        Groups of samples that are not independent, such as the samples of one customer. They are
        used for folds and intervals, and passed to a `fit` that takes them.
    baseline : str, default=None
        The row that differences are taken from. If None, the first model.
    n_jobs : int, default=None
        Number of fits at the same time, as in joblib.

    Returns
    -------
    DataFrame or Bunch
        Rows are the models, "most probable class" (of the baseline or the first model; if classes
        are not decisions, the cheapest decision for this class), and "always ..." for each
        decision.

        Columns are the mean "cost", the "difference" from the baseline, the ends "low" and "high"
        of its 95 % interval (NaN for the baseline), "share of ..." for each decision, and
        "fit_seconds" and "predict_seconds" as means of the folds.

        With more than 15 decisions, only the cheapest constant decision is a row, and only
        ``table.attrs["shares"]`` contains the shares. Without pandas, the result is a Bunch of
        arrays, with the names of the rows in `index`.

    Raises
    ------
    ValueError
        If costs, labels or names do not fit, or the fit of a model fails, including a search all
        of whose scores are NaN.
    TypeError
        If `models` is not a mapping, or a model has neither probabilities nor a decision by costs.

    Notes
    -----
    If an interval lies below zero, the model is cheaper than the baseline. If it contains zero, the
    data do not show which of the two is cheaper.

    :func:`cost_difference` computes the intervals. Folds share training samples, and the intervals
    do not include how much costs vary between training sets. In simulations with 300 and 1,000
    samples, 93 to 95 % of 400 intervals contained the mean difference of other training sets.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from auxcst_sklearn.metrics import compare_costs
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> models = {"logistic": LogisticRegression(max_iter=5000), "naive Bayes": GaussianNB()}
    >>> table = compare_costs(models, X, y, cost_matrix=[[0, 20], [1, 0]])
    >>> print(table["cost"].round(1))
    logistic               0.2
    naive Bayes            0.7
    most probable class    0.6
    always 0               0.6
    always 1               7.5
    Name: cost, dtype: float64
    """
    _check_models(models)
    data = read_problem(
        X,
        y,
        lambda X, y: indexable(sliceable(X), as_labels(y, "y")),
        cost=cost,
        cost_matrix=cost_matrix,
        groups=groups,
        classes=classes,
        decisions=decisions,
        owner="compare_costs",
        required=True,
    )
    function = cost_matrix if callable(cost_matrix) else None
    if function is not None:
        cost, cost_matrix = data.with_labels(), None
    constants = {f"always {label}": j for j, label in enumerate(data.decisions)}
    _check_names(models, [MOST_PROBABLE, *constants], baseline)
    folds = _folds(cv, data)
    parameters = {"cost_matrix": cost_matrix, "classes": data.classes, "decisions": decisions}
    of_samples = {"cost": cost, "groups": data.groups}
    per_row = {name: values for name, values in of_samples.items() if values is not None}
    task = _Task(data, y, per_row, parameters, function)
    runs = Parallel(n_jobs=n_jobs)(
        delayed(task.run)(name, models[name], *fold) for fold, name in product(folds, models)
    )
    tested = np.concatenate([test for _, test in folds])
    chosen, seconds, probable = {}, {}, {}
    for i, name in enumerate(models):
        of_folds, probable[name], *times = zip(*runs[i :: len(models)])
        chosen[name], seconds[name] = np.concatenate(of_folds), np.mean(times, axis=1)
    source: Any = baseline if baseline in models else next(iter(models))
    if probable[source][0] is not None:
        chosen[MOST_PROBABLE] = np.concatenate(probable[source])
        seconds[MOST_PROBABLE] = seconds[source]
    elif baseline == MOST_PROBABLE:
        raise ValueError(f"baseline={baseline!r}, but models[{source!r}] has no predict_proba.")
    priced = replace(data, X=None).take(tested)
    if priced.groups is None:  # a sample that is tested twice is not two
        priced = replace(priced, groups=tested)
    if len(constants) > MANY_DECISIONS:
        cheapest = int(priced.vectors().mean(axis=0).argmin())
        constants = {n: j for n, j in constants.items() if j == cheapest or n == baseline}
    chosen |= {name: np.full(len(tested), j) for name, j in constants.items()}
    return _table(priced, chosen, seconds, source if baseline is None else baseline)


def _check_models(models: Any) -> None:
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models={models!r}; expected a mapping of names to classifiers.")
    for name, model in models.items():
        if isinstance(model, type) or not hasattr(model, "get_params"):
            raise TypeError(f"models[{name!r}]={model!r}; expected a classifier, not fitted.")


def _check_names(models: Mapping[str, Any], added: list[str], baseline: str | None) -> None:
    if taken := [name for name in added if name in models]:
        raise ValueError(f"models has the names {taken}, of rows that the table adds; rename them.")
    if baseline not in (None, *models, *added):
        raise ValueError(f"baseline={baseline!r}; expected one of {[*models, *added]}.")


def _folds(cv: Any, data: Problem) -> list[Any]:
    """Numbers of the rows of each fold, which may come as masks."""
    whole = data.groups is not None and isinstance(cv, Integral)
    labels, rows = data.labels, np.arange(len(data))
    splitter = StratifiedGroupKFold(cv) if whole else check_cv(cv, labels, classifier=True)
    splits = splitter.split(data.X, labels, data.groups)
    # Of few groups, a fold may get none.
    return [(rows[train], rows[test]) for train, test in splits if len(test)]


class _Task(NamedTuple):
    """The rows of a comparison, arguments of `fit` for each row, and parameters of estimators."""

    data: Problem
    y: Any
    per_row: dict[str, Any]
    parameters: dict[str, Any]
    function: CostFunction | None

    def run(self, name: str, model: Any, train: NDArray[Any], test: NDArray[Any]) -> Any:
        """Columns of the decisions, and of the most probable classes, of a fold, and two times."""
        times = [perf_counter()]
        with error_context(f"models[{name!r}]"):
            ready = self._fit(model, train)
            times.append(perf_counter())
            chosen = self._columns(ready, train, test)
            times.append(perf_counter())
        return chosen, self._most_probable(ready, train, test), *np.diff(times)

    def _fit(self, model: Any, train: NDArray[Any]) -> Any:
        X, y = (_safe_indexing(rows, train) for rows in (self.data.X, self.y))
        last, of_parameters, _ = last_of(model)
        names = fit_arguments(model)
        if get_config()["enable_metadata_routing"]:
            consumed = get_routing_for_object(model).consumes("fit", self.per_row)
            names = {name: name for name in (*consumed, *signature(model.fit).parameters)}
        own = last.get_params(deep=False)
        is_set = self._sets_function(model, last)
        if not _has_rule(last) or own.get("cost_matrix") is not None or is_set:
            names.pop("cost", None)
        arguments = {name: values for name, values in self.per_row.items() if name in names}
        parts = {names[name]: _safe_indexing(values, train) for name, values in arguments.items()}
        if not _has_rule(last):
            return clone(model).fit(X, as_labels(y, "y"), **parts)
        parameters = self.parameters | ({"cost_matrix": self.function} if is_set else {})
        new = {name: value for name, value in parameters.items() if own.get(name, 0) is None}
        model = clone(model)
        if new:  # a FrozenEstimator takes none
            model.set_params(**{of_parameters + name: new[name] for name in new})
        model.fit(X, y, **parts)
        _check_best_score(model, X, y)
        return model

    def _sets_function(self, model: Any, last: Any) -> bool:
        """Whether the function of X becomes a parameter, because a search passes no costs on."""
        steps = [*chain(model, fitted=False)]
        takes_it = getattr(last, "cost_matrix", 0) is None
        if self.function is None or not takes_it or not any(map(is_search, steps)):
            return False
        if not any(isinstance(step, Pipeline) for step in steps):
            return True
        if get_config()["enable_metadata_routing"]:
            return False
        raise ValueError(
            "cost_matrix is a function of X, but the search and its pipeline pass no costs on, "
            "and inside of the pipeline X is another one. Search the parameters of "
            "BayesMinimumRiskClassifier(pipeline, cost_matrix=function), which gets X as it came; "
            "or call sklearn.set_config(enable_metadata_routing=True), with scoring=cost_scorer."
        )

    def _columns(self, model: Any, train: NDArray[Any], test: NDArray[Any]) -> Any:
        """Columns of the decisions, by the rule of the model itself or by expected costs."""
        X, data = _safe_indexing(self.data.X, test), self.data
        if _has_rule(last_of(model)[0]):
            cost = self.per_row.get("cost")
            own = getattr(final_estimator(model), "cost_matrix", None)
            function_of(model)  # for its warning of an X that a pipeline changes
            is_known = own is None and data.is_known
            made = predict_by_costs(model, X, _safe_indexing(cost, test) if is_known else None)
            made = as_labels(made, "predict", mixed=True)
            return label_index(made, data.decisions, name="predict")
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                "The model has neither predict_proba nor a decision by costs. Pass "
                "BayesMinimumRiskClassifier(model, calibration='sigmoid')."
            )
        return self._cheapest(probabilities(model, X, data.classes), train, test)

    def _cheapest(self, p: NDArray[np.float64], train: NDArray[Any], test: NDArray[Any]) -> Any:
        """Columns of least expected cost: of known matrices, or of the means in training."""
        rows = test if self.data.is_known else train
        return replace(self.data, X=None).take(rows).expected_cost(p).argmin(axis=1)

    def _most_probable(self, model: Any, train: NDArray[Any], test: NDArray[Any]) -> Any:
        """Columns of the most probable classes, or their cheapest decisions; None without."""
        if not hasattr(model, "predict_proba"):
            return None
        classes, decisions = self.data.classes, self.data.decisions
        most = probabilities(model, _safe_indexing(self.data.X, test), classes).argmax(axis=1)
        columns = columns_of(classes, decisions)
        if columns is not None:
            return columns[most]
        return self._cheapest(np.eye(len(classes))[most], train, test)


def _check_best_score(model: Any, X: Any, y: Any) -> None:
    """Raise the error of the scorer if a search has scores of NaN only, and so has chosen nothing.

    scikit-learn takes the first candidate then, which looks like a tuned model.
    """
    for step in chain(model):
        if np.isnan(getattr(step, "best_score_", 0.0)):
            scorer = step.scorer_
            try:
                (scorer[step.refit] if isinstance(scorer, dict) else scorer)(
                    step.best_estimator_, X, y
                )
            except Exception as error:
                raise ValueError(
                    f"All scores of the search are NaN, so that it chooses nothing: {error} Call "
                    "sklearn.set_config(enable_metadata_routing=True), or pass costs that are a "
                    "function of X as cost_matrix=."
                ) from error
        X = before_last(step, X) if isinstance(step, Pipeline) else X


def _has_rule(model: Any) -> bool:
    """Whether an estimator decides by costs, or by a threshold, itself."""
    model = final_estimator(model)
    return hasattr(model, "predict_cost") or isinstance(model, TunedThreshold | FixedThreshold)


def _table(
    data: Problem,
    chosen: dict[str, NDArray[np.intp]],
    seconds: dict[str, NDArray[np.float64]],
    baseline: str,
) -> Any:
    """A row for each name, in pandas if it is there."""
    paid = {name: data.paid(columns) for name, columns in chosen.items()}
    labels, n_decisions = data.decisions.tolist(), len(data.decisions)
    rows, shares = [], {}
    for name, columns in chosen.items():
        interval = mean_interval(paid[name] - paid[baseline], np.ones(len(data)), data.groups)
        difference = 3 * [np.nan] if name == baseline else interval
        shares[name] = np.bincount(columns, minlength=n_decisions) / len(columns)
        rows.append([paid[name].mean(), *difference, *seconds.get(name, (0.0, 0.0))])
    *values, fit_seconds, predict_seconds = np.array(rows).T
    table: dict[str, Any] = dict(zip(("cost", "difference", "low", "high"), values))
    if n_decisions <= MANY_DECISIONS:
        of_each = np.array([*shares.values()]).T
        table |= {f"share of {label}": column for label, column in zip(labels, of_each)}
    table |= {"fit_seconds": fit_seconds, "predict_seconds": predict_seconds}
    all_shares = {name: dict(zip(labels, p.tolist())) for name, p in shares.items()}
    try:
        from pandas import DataFrame
    except ImportError:
        return Bunch(index=list(chosen), attrs={"shares": all_shares}, **table)
    frame = DataFrame(table, index=list(chosen))
    frame.attrs["shares"] = all_shares
    return frame
