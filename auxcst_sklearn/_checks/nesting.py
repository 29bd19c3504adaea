"""Models inside of models: pipelines, searches, frozen estimators, and all composite ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

# Endings of attributes that hold fitted models.
KINDS = ("classifier", "estimator", "model", "transformer")
FITTED = tuple(f"{kind}{ending}" for kind in KINDS for ending in ("_", "s_"))


def is_search(model: Any) -> bool:
    """Whether a model is a search of scikit-learn, or like one."""
    has_both = hasattr(model, "error_score") and hasattr(model, "estimator")
    return has_both and not isinstance(model, FrozenEstimator)  # It delegates attributes.


def delegate(model: Any) -> Any:
    """The model that a frozen one or a search predicts with, or will fit; None for others."""
    if isinstance(model, FrozenEstimator):
        return model.estimator
    if hasattr(model, "best_estimator_"):
        return model.best_estimator_
    return model.estimator if is_search(model) else None


def chain(model: Any) -> Iterator[Any]:
    """A model, and what it ends in through pipelines, searches and frozen models, to the last."""
    while model is not None:
        yield model
        model = model.steps[-1][1] if isinstance(model, Pipeline) else delegate(model)


def walk(
    model: Any, *, fitted: bool = True, into: Callable[[Any], bool] = lambda model: True
) -> Iterator[Any]:
    """A model and all that are in it: the fitted ones, if it has some, or else its parameters.

    Only the models for which `into` is true are entered.
    """
    if not isinstance(model, list | tuple):
        yield model
    for inner in _inside(model, fitted) if into(model) else ():
        yield from walk(inner, fitted=fitted, into=into)


def _inside(model: Any, fitted: bool) -> list[Any]:
    if isinstance(model, list | tuple):
        return [*model]
    if isinstance(model, type) or not (hasattr(model, "get_params") or hasattr(model, "estimator")):
        return []
    found = [part for name, part in vars(model).items() if fitted and name.endswith(FITTED)]
    if found:  # the parameters are templates
        return found
    params = model.get_params(deep=False) if hasattr(model, "get_params") else vars(model)
    return [*params.values()]
