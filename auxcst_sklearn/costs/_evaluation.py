"""The costs of predictions that are known, and the estimators that have made them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.metadata_routing import get_routing_for_object

from .._checks.data import (
    as_labels,
    check_row_order,
    check_some_weight,
    check_weight,
    label_index,
    numpy_arrays,
)
from ._account import Costs, labels_of_evaluation
from ._named import same_labels, stack_costs
from ._validation import (
    check_cost_matrix,
    is_per_sample_matrix,
    warn_if_order_is_lost,
    warn_of_permutation,
)


@numpy_arrays()
def evaluated(
    given: Mapping[str, Any],
    cost: Any,
    cost_matrix: Any,
    classes: Any = None,
    decisions: Any = None,
    sample_weight: Any = None,
    *,
    of_model: bool = False,
) -> tuple[Costs, list[NDArray[np.intp]], NDArray[np.float64] | None]:
    """The costs of rows, the columns of their predictions, and their weights.

    `given` are the true labels, and one or several predictions. With `of_model`, a fitted model
    determines the order of the decisions.
    """
    check_one_source(cost, cost_matrix)
    cost, cost_matrix = stack_costs(cost), stack_costs(cost_matrix)
    ys = [as_labels(y, name) for name, y in given.items()]
    check_row_order(**given, cost=cost, sample_weight=sample_weight)
    check_consistent_length(*ys)
    true_name, *names = given
    if not len(ys[0]):
        raise ValueError(
            f"{true_name} holds no samples; expected at least one to take the mean of."
        )
    rows, columns = labels_of_evaluation(cost, cost_matrix, classes, decisions, given, *ys)
    if not of_model and columns is not None and same_labels(columns, rows):
        warn_of_permutation(columns, rows)
    if cost is None:  # of the right shape, before labels are looked for in it
        cost_matrix = check_cost_matrix(cost_matrix, classes=rows, decisions=columns)
    label = label_index(ys[0], rows, name=true_name)
    costs = Costs.of_labels(label, rows, columns, cost, cost_matrix)
    chosen = [chosen_columns(y, costs.decisions, name) for name, y in zip(names, ys[1:])]
    weight = check_weight(sample_weight, label)
    if weight is not None:
        check_some_weight(weight)
    return costs, chosen, weight


def mean_paid(*arguments: Any, of_model: bool = False) -> float:
    """The mean cost of a prediction; arguments are the arguments of `evaluated`."""
    costs, (chosen,), weight = evaluated(*arguments, of_model=of_model)
    return float(np.average(costs.paid(chosen), weights=weight))


def check_one_source(cost: Any, cost_matrix: Any) -> None:
    """Raise an error unless there are costs of samples, or of classes."""
    if (cost is None) == (cost_matrix is None):
        which = "both cost and cost_matrix" if cost is not None else "neither cost nor cost_matrix"
        raise ValueError(
            f"Got {which}; expected exactly one: cost= with one row per sample, or cost_matrix= "
            "with one row per class."
        )


def chosen_columns(y: NDArray[Any], decisions: NDArray[Any], name: str) -> NDArray[np.intp]:
    """The column of each decision."""
    if decisions.dtype.kind == "U" and y.dtype.kind in "biu":
        y = y.astype(str)  # classes among texts
    return label_index(y, decisions, name=name)


def check_evaluated(
    X: Any, y: Any, cost: Any, cost_matrix: Any, sample_weight: Any, classes: Any = None
) -> None:
    """Check that the rows belong together, and have the order of classes of the costs."""
    check_row_order(X=X, y=y, cost=cost, sample_weight=sample_weight)
    warn_if_order_is_lost(cost, cost_matrix, classes, y=y)


def decided(estimator: Any, X: Any, cost: ArrayLike | None) -> Any:
    """Predictions by the costs, where these are matrices of samples, and known when deciding."""
    last = final_estimator(estimator)
    # Without probabilities, costs of each row decide nothing.
    has_use = (
        is_per_sample_matrix(cost)
        and "cost" in signature(last.predict).parameters
        and hasattr(last, "predict_proba")
    )
    of_classes = decisions_of(estimator) is None
    if of_classes and not has_use:
        return estimator.predict(X)
    last, inputs = last_step(estimator, X)  # the predict of a search takes no costs
    decide = last.predict if of_classes else last.decide
    return decide(inputs, cost=cost) if has_use else decide(inputs)


def decisions_of(estimator: Any) -> Any:
    """Labels of the decisions of the last step, if they are not the classes."""
    last = final_estimator(estimator)
    decisions = getattr(last, "decisions_", None)
    return None if decisions is None or np.array_equal(decisions, last.classes_) else decisions


def is_search(estimator: Any) -> bool:
    """Whether an estimator is a search of scikit-learn, or like one."""
    has_both = hasattr(estimator, "error_score") and hasattr(estimator, "estimator")
    return has_both and not isinstance(estimator, FrozenEstimator)  # It delegates attributes.


def final_estimator(estimator: Any) -> Any:
    """The estimator inside of searches and pipelines."""
    return last_step(estimator, None)[0]


def last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The same, and its X, unless that is None."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif isinstance(estimator, FrozenEstimator):
            estimator = estimator.estimator
        elif isinstance(estimator, Pipeline):
            X = None if X is None else before_last(estimator, X)
            estimator = estimator[-1]
        else:
            return estimator, X


def before_last(pipeline: Any, X: Any) -> Any:
    """X after the steps before the last; steps that resample do nothing when predicting."""
    for _, step in pipeline.steps[:-1]:
        if step not in (None, "passthrough") and not hasattr(step, "fit_resample"):
            X = step.transform(X)
    return X


def last_of(model: Any) -> tuple[Any, str, str]:
    """The last of unfitted pipelines and searches, and prefixes of its parameters and arguments."""
    of_parameters = of_arguments = ""
    while isinstance(model, Pipeline) or is_search(model):
        if isinstance(model, Pipeline):
            name, model = model.steps[-1]
            of_parameters, of_arguments = f"{of_parameters}{name}__", f"{of_arguments}{name}__"
        else:
            of_parameters, model = f"{of_parameters}estimator__", model.estimator
    return model, of_parameters, of_arguments


def fit_arguments(model: Any, prefix: str = "") -> dict[str, str]:
    """Arguments of `fit`, with the prefixes of pipelines, also of classifiers that get them all."""
    last, _, of_arguments = last_of(model)
    found, prefix = dict[str, str](), prefix + of_arguments
    passes = hasattr(last, "predict_cost") or isinstance(last, CalibratedClassifierCV)
    if passes and getattr(last, "estimator", None) is not None:
        found = fit_arguments(last.estimator, prefix)
    found |= {name: prefix + name for name in signature(last.fit).parameters}
    return found | ({"groups": "groups"} if not prefix and _splits_groups(model) else {})


def _splits_groups(model: Any) -> bool:
    """Whether a search, also in a rule, makes its folds of groups."""
    if is_search(model) and hasattr(model.cv, "split"):
        return bool(get_routing_for_object(model.cv).consumes("split", {"groups"}))
    inner = getattr(model, "estimator", None)
    return not is_search(model) and inner is not None and _splits_groups(inner)
