"""compare_costs: what the decisions of several models cost, on rows that they have not seen."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from itertools import product
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
from sklearn.utils import Bunch, _safe_indexing, check_consistent_length
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.parallel import Parallel, delayed

from .._checks.calls import described_like
from .._checks.classifiers import fitted, probabilities
from .._checks.data import check_row_order, holds_categories, holds_string, is_frame, select
from .._checks.labels import as_labels, check_groups
from ..costs._account import Costs
from ..costs._evaluation import check_one_source, chosen_columns, decided, is_search
from ._measures import mean_cost, mean_interval

MOST_PROBABLE = "most probable class"
MANY_DECISIONS = 5


@described_like(mean_cost)
def compare_costs(
    models: Mapping[str, Any],
    X: ArrayLike,
    y: ArrayLike,
    *,
    cost: ArrayLike | None = None,
    cost_matrix: ArrayLike | None = None,
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
        Models by name. Estimators of this package, also at the end of a pipeline or search, get
        the costs, unless they have a `cost_matrix` of their own. Others decide by expected costs
        under their probabilities, but for scikit-learn's tuned and fixed thresholds.
    X : array-like, DataFrame or sparse matrix of shape (n_samples, n_features)
        Samples, in any form that the models accept.
    y : array-like of shape (n_samples,)
        Labels.
    cost : array-like or DataFrame of shape (n_samples, n_classes), or array-like of shape \
            (n_samples, n_classes, n_decisions), default=None
        Cost of each prediction for each sample; or each sample's cost matrix, known when deciding.
        Pass either `cost` or `cost_matrix`.
    cv : int, cross-validation generator or iterable, default=5
        Folds, as in scikit-learn; a number with `groups` makes folds that split no group. Samples
        that are never tested, as of a :class:`~sklearn.model_selection.TimeSeriesSplit`, are left
        out.
    groups : array-like of shape (n_samples,), default=None
        Groups of samples that are not independent, such as the rows of one customer: for folds,
        intervals, and a `fit` that takes them.
    baseline : str, default=None
        The row from which differences are taken; None for the first model.
    n_jobs : int, default=None
        Number of fits at the same time, as in joblib.

    Returns
    -------
    DataFrame or Bunch
        Rows are the models, "most probable class" of the baseline or the first model, and
        "always ..." for each decision, of more than five for the cheapest. Columns are "cost", the
        mean; "difference" from the baseline, with "low" and "high", its 95 % interval, NaN for the
        baseline; "share of ..." each decision; "fit_seconds" and "predict_seconds", means of the
        folds. Without pandas, a Bunch of arrays with the names of the rows in `index`.

    Raises
    ------
    ValueError
        If costs, labels or names do not fit, or the fit of a model fails, which the message names.
    TypeError
        If `models` is no mapping, or a model has neither probabilities nor a decision by costs.

    Notes
    -----
    The intervals are those of :func:`cost_difference`, for the models of these folds. Folds share
    training rows, and intervals do not contain how much costs vary from one training set to
    another.

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
    if not isinstance(models, Mapping) or not models:
        raise TypeError(f"models={models!r}; expected a mapping of names to classifiers.")
    check_one_source(cost, cost_matrix)
    check_row_order(X=X, y=y, cost=cost, groups=groups)
    labels = as_labels(y, "y")
    check_consistent_length(X, labels)
    units = None if groups is None else check_groups(groups, labels)
    costs = Costs.of_fit(labels, cost, cost_matrix, classes, decisions, y)
    constants = _constants(costs)
    if baseline not in (None, MOST_PROBABLE, *models, *constants):
        raise ValueError(f"baseline={baseline!r}; expected one of {[*models, *constants]}.")
    whole = units is not None and isinstance(cv, int)
    splitter = StratifiedGroupKFold(cv) if whole else check_cv(cv, labels, classifier=True)
    folds = list(splitter.split(X, labels, units))
    parameters = {"cost_matrix": cost_matrix, "classes": costs.classes, "decisions": decisions}
    task = _Task(X, y, costs, {"cost": cost, "groups": units}, parameters)
    runs = Parallel(n_jobs=n_jobs)(
        delayed(task.run)(name, models[name], *fold) for fold, name in product(folds, models)
    )
    tested = np.concatenate([test for _, test in folds])
    chosen, seconds, probable = {}, {}, {}
    for i, name in enumerate(models):
        of_folds, probable[name], *times = zip(*runs[i :: len(models)])
        chosen[name], seconds[name] = np.concatenate(of_folds), np.mean(times, axis=1)
    source = str(baseline if baseline in models else next(iter(models)))
    if probable[source][0] is not None:
        chosen[MOST_PROBABLE], seconds[MOST_PROBABLE] = (
            np.concatenate(probable[source]),
            seconds[source],
        )
    elif baseline == MOST_PROBABLE:
        raise ValueError(f"models[{source!r}] has no probable classes; expected another baseline.")
    for name, j in constants.items():
        chosen.setdefault(name, np.full(len(tested), j))
    units = tested if units is None else units[tested]
    return _table(costs.part(tested), chosen, seconds, units, baseline or source)


def _constants(costs: Costs) -> dict[str, int]:
    """Columns of decisions that can be taken for all rows; of many that of the cheapest."""
    columns: Any = range(len(costs.decisions))
    if len(columns) > MANY_DECISIONS:
        columns = [int(costs.vectors().mean(axis=0).argmin())]
    return {f"always {costs.decisions[j]}": j for j in columns}


class _Task(NamedTuple):
    """The rows of a comparison, the arguments of `fit` for each row, and parameters of models."""

    X: Any
    y: Any
    costs: Costs
    per_row: dict[str, Any]
    parameters: dict[str, Any]

    def run(self, name: str, model: Any, train: NDArray[Any], test: NDArray[Any]) -> Any:
        """Columns of the decisions, and of the most probable classes, of a fold, and two times."""
        start = perf_counter()
        try:
            ready, decides = self._fit(model, train)
        except (TypeError, ValueError) as error:
            kind = TypeError if isinstance(error, TypeError) else ValueError
            raise kind(f"models[{name!r}]: {error}{_advice(self.X, model)}") from error
        middle, X = perf_counter(), _safe_indexing(self.X, test)
        chosen = (self._decided if decides else self._cheapest)(name, ready, X, train, test)
        end = perf_counter()
        return chosen, self._most_probable(ready, X), middle - start, end - middle

    def _fit(self, model: Any, train: NDArray[Any]) -> tuple[Any, bool]:
        """The fitted model, and whether it decides by itself."""
        X, y = (_safe_indexing(rows, train) for rows in (self.X, self.y))
        last, of_parameters, of_arguments = _last(model)
        if not hasattr(last, "predict_cost") and not isinstance(
            last, TunedThreshold | FixedThreshold
        ):
            return fitted(model, X, as_labels(y, "y")), False
        own = last.get_params(deep=False)
        new = {name: value for name, value in self.parameters.items() if own.get(name, 0) is None}
        model = clone(model).set_params(**{of_parameters + name: new[name] for name in new})
        taken = set(signature(last.fit).parameters)
        if get_config()["enable_metadata_routing"]:
            consumed = get_routing_for_object(model).consumes("fit", self.per_row)
            taken, of_arguments = {*consumed, *signature(model.fit).parameters}, ""
        if own.get("cost_matrix") is not None:
            taken.discard("cost")
        arguments = {
            of_arguments + name: _safe_indexing(rows, train)
            for name, rows in self.per_row.items()
            if rows is not None and name in taken
        }
        return model.fit(X, y, **arguments), True

    def _decided(self, name: str, model: Any, X: Any, _: Any, test: NDArray[Any]) -> Any:
        """Columns of the decisions of the model itself."""
        cost, what = self.per_row["cost"], f"predict of models[{name!r}]"
        given = decided(model, X, None if cost is None else _safe_indexing(cost, test))
        return chosen_columns(as_labels(given, what), self.costs.decisions, what)

    def _cheapest(
        self, name: str, model: Any, X: Any, train: NDArray[Any], test: NDArray[Any]
    ) -> Any:
        """Columns of the least expected cost."""
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                f"models[{name!r}] has neither predict_proba nor a decision by costs; pass "
                "BayesMinimumRiskClassifier(model, calibration='sigmoid')."
            )
        costs = self.costs.part(train if self.costs.matrices is None else test)
        if costs.matrices is None:  # the means of the classes in training
            costs = Costs.of_classes(costs.classes, costs.decisions, costs.matrix())
        return costs.expected_cost(probabilities(model, X, costs.classes)).argmin(axis=1)

    def _most_probable(self, model: Any, X: Any) -> NDArray[np.intp] | None:
        """Columns of the most probable classes; None if there are none."""
        classes, decisions = self.costs.classes, self.costs.decisions
        known = set(map(str, classes.tolist())) <= set(map(str, decisions.tolist()))
        if not known or not hasattr(model, "predict_proba"):
            return None
        most = classes[probabilities(model, X, classes).argmax(axis=1)]
        return chosen_columns(most, decisions, "y")


def _last(model: Any) -> tuple[Any, str, str]:
    """The last of unfitted pipelines and searches, and prefixes of its parameters and arguments."""
    of_parameters = of_arguments = ""
    while isinstance(model, Pipeline) or is_search(model):
        if isinstance(model, Pipeline):
            name, model = model.steps[-1]
            of_parameters, of_arguments = f"{of_parameters}{name}__", f"{of_arguments}{name}__"
        else:
            of_parameters, model = f"{of_parameters}estimator__", model.estimator
    return model, of_parameters, of_arguments


def _advice(X: Any, model: Any) -> str:
    """What to do for a model that needs numbers, if X has strings."""
    if is_frame(X):
        columns = [c for j, c in enumerate(X.columns) if holds_categories(select(X, j))]
    else:
        rows = np.asarray(X) if isinstance(X, np.ndarray | list) else np.empty((0, 0))
        columns = [j for j, column in enumerate(rows.T) if holds_string(column[:1].astype(object))]
    if not columns:
        return ""
    encoded = f"(OneHotEncoder(handle_unknown='ignore'), {columns})"
    return (
        f" X has strings. If the model needs numbers, pass make_pipeline(make_column_transformer("
        f"{encoded}, remainder='passthrough'), {type(model).__name__}(...)); for trees with "
        "OrdinalEncoder(handle_unknown='use_encoded_value', unknown_value=-1) instead."
    )


def _table(
    costs: Costs,
    chosen: dict[str, NDArray[np.intp]],
    seconds: dict[str, NDArray[np.float64]],
    units: NDArray[Any],
    baseline: str,
) -> Any:
    """A row for each name, in pandas if it is there."""
    paid = np.array([costs.paid(columns) for columns in chosen.values()])
    theirs = paid[list(chosen).index(baseline)]
    rows = []
    for name, of_name in zip(chosen, paid):
        difference = mean_interval(of_name - theirs, np.ones(len(units)), units)
        shares = np.bincount(chosen[name], minlength=len(costs.decisions)) / len(units)
        unknown = np.full(3, np.nan)
        rows.append(
            [
                of_name.mean(),
                *(unknown if name == baseline else difference),
                *shares,
                *seconds.get(name, (0.0, 0.0)),
            ]
        )
    names = [
        *("cost", "difference", "low", "high"),
        *(f"share of {label}" for label in costs.decisions.tolist()),
        *("fit_seconds", "predict_seconds"),
    ]
    columns = dict(zip(names, np.array(rows, dtype=np.float64).T))
    try:
        from pandas import DataFrame
    except ImportError:
        return Bunch(index=list(chosen), **columns)
    return DataFrame(columns, index=list(chosen))
