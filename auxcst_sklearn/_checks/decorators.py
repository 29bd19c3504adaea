"""scikit-learn's untyped decorators, with the types of the decorated functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from sklearn.utils import _param_validation, metaestimators

Function = TypeVar("Function", bound=Callable[..., Any])


def validate_params(
    constraints: dict[str, list[Any]], *, prefer_skip_nested_validation: bool
) -> Callable[[Function], Function]:
    """A decorator that checks the arguments of a function."""
    decorator: Callable[[Function], Function] = _param_validation.validate_params(
        constraints, prefer_skip_nested_validation=prefer_skip_nested_validation
    )
    return decorator


def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """A decorator for methods that some estimators have."""
    decorator: Callable[[Function], Function] = metaestimators.available_if(check)
    return decorator
