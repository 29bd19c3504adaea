"""Models inside of models: pipelines, searches, frozen estimators, and all composite ones."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import signature
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils.metadata_routing import get_routing_for_object

# Endings of attributes that hold fitted models.
KINDS = ("classifier", "estimator", "model", "transformer")
FITTED = tuple(f"{kind}{ending}" for kind in KINDS for ending in ("_", "s_"))


def is_search(model: Any) -> bool:
    """Whether a model is a search of scikit-learn, or like one."""
    has_both = hasattr(model, "error_score") and hasattr(model, "estimator")
    return has_both and not isinstance(model, FrozenEstimator)  # It delegates attributes.


def delegate(model: Any, *, fitted: bool = True) -> Any:
    """The model that a frozen one or a search predicts with, or else will fit; None for others."""
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_
    return model.estimator if is_search(model) and not fitted else None


def chain(model: Any, *, fitted: bool = True) -> Iterator[Any]:
    """A model, and what it ends in through pipelines, searches and frozen models, to the last."""
    while model is not None:
        yield model
        is_pipeline = isinstance(model, Pipeline)
        model = model.steps[-1][1] if is_pipeline else delegate(model, fitted=fitted)


def walk(model: Any) -> Iterator[Any]:
    """A model and all that are in it: the fitted ones, if it has some, or else its parameters."""
    if isinstance(model, np.ndarray) and model.dtype.kind == "O":
        model = model.ravel().tolist()  # as the trees of gradient boosting
    inner: Any = model if isinstance(model, list | tuple) else ()
    if not isinstance(model, list | tuple | type):
        yield model
        if hasattr(model, "get_params") or hasattr(model, "estimator"):
            of_fit = [part for name, part in vars(model).items() if name.endswith(FITTED)]
            inner = of_fit or vars(model).values()  # parameters are templates
    for part in inner:
        yield from walk(part)


# ------------------------------------------------------------------ fitted, and to be fitted


def final_estimator(model: Any) -> Any:
    """The estimator inside of fitted searches, pipelines and frozen models."""
    *_, last = chain(model)
    return last


def last_step(model: Any, X: Any) -> tuple[Any, Any]:
    """The same, and its X."""
    for step in chain(model):
        model, X = step, before_last(step, X) if isinstance(step, Pipeline) else X
    return model, X


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
    arguments, prefix = dict[str, str](), prefix + of_arguments
    passes = hasattr(last, "predict_cost") or isinstance(last, CalibratedClassifierCV)
    if passes and getattr(last, "estimator", None) is not None:
        arguments = fit_arguments(last.estimator, prefix)
    arguments |= {name: prefix + name for name in signature(last.fit).parameters}
    return arguments | ({"groups": "groups"} if not prefix and _splits_groups(model) else {})


def takes_costs(model: Any) -> bool:
    """Whether an unfitted model ends in an estimator of this package that has no costs yet."""
    last, *_ = last_of(model)
    if isinstance(last, CalibratedClassifierCV) and last.estimator is not None:
        return takes_costs(last.estimator)
    return hasattr(last, "predict_cost") and getattr(last, "cost_matrix", 0) is None


def _splits_groups(model: Any) -> bool:
    """Whether a search, also in a rule, makes its folds of groups."""
    if is_search(model) and hasattr(model.cv, "split"):
        return bool(get_routing_for_object(model.cv).consumes("split", {"groups"}))
    inner = getattr(model, "estimator", None)
    return not is_search(model) and inner is not None and _splits_groups(inner)
