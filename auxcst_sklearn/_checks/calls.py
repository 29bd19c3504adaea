"""Around a call: typed bases of estimators, methods that some have, warnings, and failures."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Self, TypeVar

from numpy.typing import NDArray
from sklearn.utils import metaestimators

if TYPE_CHECKING:
    # scikit-learn has no types, and a base class without types lets any argument of a constructor
    # pass. Type checkers read these declarations instead.
    class BaseEstimator:
        """What the estimators use of it, and their users."""

        def get_params(self, deep: bool = True) -> dict[str, Any]: ...
        def set_params(self, **params: Any) -> Self: ...
        def get_metadata_routing(self) -> Any: ...
        def set_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_partial_fit_request(self, **requests: bool | str | None) -> Self: ...
        def set_predict_request(self, **requests: bool | str | None) -> Self: ...
        def set_score_request(self, **requests: bool | str | None) -> Self: ...
        def _validate_params(self) -> None: ...
        def __sklearn_tags__(self) -> Any: ...
        def __getstate__(self) -> Any: ...
        def __setstate__(self, state: Any) -> None: ...
        @property
        def n_features_in_(self) -> int: ...
        @property
        def feature_names_in_(self) -> NDArray[Any]: ...

    class ClassifierMixin:
        """Only tags."""

        def __sklearn_tags__(self) -> Any: ...

    class MetaEstimatorMixin:
        """Nothing."""

    class BaseComposition(BaseEstimator):
        """Parameters of members."""

        def _get_params(self, attr: str, deep: bool = True) -> dict[str, Any]: ...
        def _set_params(self, attr: str, **params: Any) -> Self: ...
        def _validate_names(self, names: list[str]) -> None: ...

else:
    from sklearn.base import BaseEstimator as BaseEstimator
    from sklearn.base import ClassifierMixin as ClassifierMixin
    from sklearn.base import MetaEstimatorMixin as MetaEstimatorMixin
    from sklearn.utils.metaestimators import _BaseComposition as BaseComposition  # noqa: F401

Function = TypeVar("Function", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """A decorator for methods that some estimators have."""
    return metaestimators.available_if(check)


# Libraries between the user's code and the place of a warning.
_BETWEEN = {"auxcst_sklearn", "contextlib", "joblib", "skorch", "sklearn", "torch"}


_SAID: ContextVar[set[str] | None] = ContextVar("said", default=None)


@contextmanager
def warning_once() -> Iterator[None]:
    """Issue each warning once, however many networks or models in a fit give rise to it."""
    said = _SAID.get()
    token = _SAID.set(set() if said is None else said)
    try:
        yield
    finally:
        _SAID.reset(token)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning at the user's line, whatever calls of the package lie in between."""
    if (said := _SAID.get()) is not None:
        if message in said:
            return
        said.add(message)
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)


@contextmanager
def error_context(where: str) -> Iterator[None]:
    """Say where an error arose: in its message, or in a note if its class may mean something."""
    try:
        yield
    except (ValueError, TypeError) as error:  # of any class, which may need more than a message
        cls = ValueError if isinstance(error, ValueError) else TypeError
        raise cls(f"{where}: {error}") from error
    except Exception as error:
        error.add_note(where)
        raise


@contextmanager
def unchanged_on_error(estimator: BaseEstimator) -> Iterator[None]:
    """Restore the attributes of a fitted estimator when a new fit fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
