"""The costs of predictions that are known, and the estimators that have made them."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import _num_samples

from .._checks.calls import warn
from .._checks.data import check_row_order, check_weight, numpy_arrays
from .._checks.labels import as_labels, label_index, sorted_labels
from .._checks.nesting import chain, final_estimator, last_step
from ._labels import find_labels, own_classes, warn_of_lost_order
from ._problem import Problem
from ._reading import AROUND, CostArray, CostFunction, costs_of, read_source


@numpy_arrays()
def read_predictions(
    labels: Mapping[str, Any],
    cost: Any,
    cost_matrix: Any,
    classes: Any = None,
    decisions: Any = None,
    sample_weight: Any = None,
    *,
    of_model: bool = False,
) -> tuple[Problem, list[NDArray[np.intp]]]:
    """Samples with costs and weights, and the columns of their predictions.

    `labels` are the true labels, and one or several predictions. With `of_model`, a fitted model
    determines the order of the decisions.
    """
    check_row_order(**labels, cost=cost, sample_weight=sample_weight)
    true_name, *names = labels
    y, *predictions = (as_labels(y, name, mixed=name in names) for name, y in labels.items())
    check_consistent_length(y, *predictions)
    if not len(y):
        raise ValueError(
            f"{true_name} contains no samples; expected at least one to take the mean of."
        )
    costs = read_source(cost, cost_matrix, len(y), required=True)
    if classes is None:  # in the order of the costs
        warn_of_lost_order(costs, decisions, **labels)
        classes = own_classes(costs, named=decisions is not None)
    # Without any names, predictions may have classes that have no sample.
    is_unnamed = classes is None and decisions is None
    present = sorted_labels(y, *(predictions if is_unnamed else ()), name=" or ".join(labels))
    axes = find_labels(costs, present, classes, decisions, of_model=of_model)
    weight = check_weight(sample_weight, y)
    label = label_index(y, axes[0], name=true_name)
    data = Problem.of(label, *axes, costs, weight=weight)
    return data, [label_index(p, data.decisions, name=n) for n, p in zip(names, predictions)]


def mean_paid(*arguments: Any, of_model: bool = False) -> float:
    """The mean cost of a prediction; arguments are the arguments of `read_predictions`."""
    data, (chosen,) = read_predictions(*arguments, of_model=of_model)
    return float(np.average(data.paid(chosen), weights=data.weight))


def read_scored(
    X: Any,
    y: Any,
    cost: Any,
    cost_matrix: Any,
    sample_weight: Any,
    classes: Any = None,
    *,
    owner: str,
) -> CostArray:
    """The costs of a score, whose classes are those of an estimator if nothing names others."""
    check_row_order(X=X, y=y, cost=cost, sample_weight=sample_weight)
    costs: Any = read_source(cost, cost_matrix, _num_samples(y), X, owner, required=True)
    warn_of_lost_order(costs, classes, y=y)
    return costs


def function_of(model: Any) -> CostFunction | None:
    """The function of X by which the last step of a fitted model decides, if there is one."""
    function = getattr(final_estimator(model), "_fitted_cost_matrix", None)
    if not callable(function):
        return None
    before = [
        type(step).__name__
        for pipeline in chain(model)
        if isinstance(pipeline, Pipeline)
        for _, step in pipeline.steps[:-1]
        if step not in (None, "passthrough")
    ]
    if before:
        warn(
            f"The costs are computed from X after the steps {', '.join(before)}. If these change "
            f"the columns that the function reads, the costs are wrong. {AROUND}"
        )
    return function


def with_own_costs(model: Any, X: Any, y: Any) -> tuple[Any, Any, CostArray | None]:
    """The last step of a model that decides by a function of X, its X, and these costs.

    Of other models the model and X as they are, without costs. `y` has as many samples as X.
    """
    function = function_of(model)
    if function is None:
        return model, X, None
    last, X = last_step(model, X)
    return last, X, costs_of(function, X, _num_samples(y), type(last).__name__)


def read_of_model(
    model: Any, X: Any, y: Any, cost: Any, cost_matrix: Any, sample_weight: Any, owner: str
) -> tuple[Any, Any, CostArray]:
    """A fitted model and its X, with the costs that are given, or else those of the model."""
    if cost is None and cost_matrix is None:
        model, X, cost = with_own_costs(model, X, y)
    if cost is None and cost_matrix is None:
        cost_matrix = getattr(final_estimator(model), "cost_matrix", None)
    return model, X, read_scored(X, y, cost, cost_matrix, sample_weight, owner=owner)


def predict_by_costs(estimator: Any, X: Any, known: Any) -> Any:
    """Predictions, by cost matrices of the samples if they are known when deciding."""
    last = final_estimator(estimator)
    # Without probabilities, costs of each sample decide nothing.
    if not ("cost" in signature(last.predict).parameters and hasattr(last, "predict_proba")):
        known = None
    of_classes = decisions_of(estimator) is None
    if of_classes and known is None:
        return estimator.predict(X)
    last, X = last_step(estimator, X)  # the predict of a search takes no costs
    return (last.predict if of_classes else last.decide)(X, cost=known)


def score_by_costs(
    model: Any, X: Any, y: Any, costs: CostArray, sample_weight: Any, *, decides: bool
) -> float:
    """Minus the mean cost of the predictions, which the costs themselves may decide."""
    labels = {"y_true": y, "y_pred": predict_by_costs(model, X, costs if decides else None)}
    axes = (model.classes_, decisions_of(model))
    return -mean_paid(labels, costs, None, *axes, sample_weight, of_model=True)


def decisions_of(estimator: Any) -> Any:
    """Labels of the decisions of the last step, if they are not the classes."""
    last = final_estimator(estimator)
    decisions = getattr(last, "decisions_", None)
    return None if decisions is None or np.array_equal(decisions, last.classes_) else decisions
