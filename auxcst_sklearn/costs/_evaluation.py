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
from sklearn.utils.validation import _num_samples

from .._checks.data import (
    as_labels,
    check_row_order,
    check_some_weight,
    check_weight,
    label_index,
    numpy_arrays,
    sorted_labels,
)
from ._account import Costs, find_labels, warn_of_lost_order
from ._reading import CostArray, read_source


@numpy_arrays()
def evaluated(
    labels: Mapping[str, Any],
    cost: Any,
    cost_matrix: Any,
    classes: Any = None,
    decisions: Any = None,
    sample_weight: Any = None,
    *,
    of_model: bool = False,
) -> tuple[Costs, list[NDArray[np.intp]], NDArray[np.float64] | None]:
    """The costs of samples, the columns of their predictions, and their weights.

    `labels` are the true labels, and one or several predictions. With `of_model`, a fitted model
    determines the order of the decisions.
    """
    check_row_order(**labels, cost=cost, sample_weight=sample_weight)
    true_name, *names = labels
    y, *predictions = (as_labels(y, name, mixed=name in names) for name, y in labels.items())
    check_consistent_length(y, *predictions)
    if not len(y):
        raise ValueError(
            f"{true_name} holds no samples; expected at least one to take the mean of."
        )
    costs = read_evaluated(cost, cost_matrix, len(y))
    if classes is None:  # in the order of the costs
        warn_of_lost_order(costs, decisions, **labels)
        classes = costs.class_labels(decisions_are_named=decisions is not None)
    # Without any names, predictions may have classes that have no sample.
    is_unnamed = classes is None and decisions is None
    present = sorted_labels(y, *(predictions if is_unnamed else ()), name=" or ".join(labels))
    rows, columns = find_labels(costs, present, classes, decisions, of_model=of_model)
    account = Costs.of_labels(label_index(y, rows, name=true_name), rows, columns, costs)
    chosen = [label_index(p, account.decisions, name=n) for n, p in zip(names, predictions)]
    weight = check_weight(sample_weight, y)
    if weight is not None:
        check_some_weight(weight)
    return account, chosen, weight


def mean_paid(*arguments: Any, of_model: bool = False) -> float:
    """The mean cost of a prediction; arguments are the arguments of `evaluated`."""
    costs, (chosen,), weight = evaluated(*arguments, of_model=of_model)
    return float(np.average(costs.paid(chosen), weights=weight))


def read_evaluated(cost: Any, cost_matrix: Any, n_samples: int) -> CostArray:
    """The costs of samples or of classes, of which there must be one."""
    costs = read_source(cost, cost_matrix, n_samples)
    if costs is None:
        raise ValueError(
            "Got neither cost nor cost_matrix; expected exactly one: cost= with one row per "
            "sample, or cost_matrix= with one row per class."
        )
    return costs


def read_scored(
    X: Any, y: Any, cost: Any, cost_matrix: Any, sample_weight: Any, classes: Any = None
) -> CostArray:
    """The costs of a score, whose classes are those of an estimator if nothing names others."""
    check_row_order(X=X, y=y, cost=cost, sample_weight=sample_weight)
    costs = read_evaluated(cost, cost_matrix, _num_samples(y))
    warn_of_lost_order(costs, classes, y=y)
    return costs


def decided(estimator: Any, X: Any, known: ArrayLike | None) -> Any:
    """Predictions, by cost matrices of the samples if they are known when deciding."""
    last = final_estimator(estimator)
    # Without probabilities, costs of each sample decide nothing.
    has_use = (
        known is not None
        and "cost" in signature(last.predict).parameters
        and hasattr(last, "predict_proba")
    )
    of_classes = decisions_of(estimator) is None
    if of_classes and not has_use:
        return estimator.predict(X)
    last, inputs = last_step(estimator, X)  # the predict of a search takes no costs
    decide = last.predict if of_classes else last.decide
    return decide(inputs, cost=known) if has_use else decide(inputs)


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
