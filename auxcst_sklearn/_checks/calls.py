"""Around a call: warnings, and errors, which leave an estimator as it was."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .bases import BaseEstimator

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
