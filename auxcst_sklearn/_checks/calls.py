"""Around a call: its checked arguments, its docstring, its warnings, and its failure."""

from __future__ import annotations

import re
import sys
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from inspect import Parameter, cleandoc, signature
from typing import Any, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils import metaestimators

Function = TypeVar("Function", bound=Callable[..., Any])


def available_if(check: Callable[[Any], bool]) -> Callable[[Function], Function]:
    """A decorator for methods that some estimators have."""
    return metaestimators.available_if(check)


# Libraries between the user's code and the place of a warning.
_BETWEEN = {"auxcst_sklearn", "contextlib", "joblib", "skorch", "sklearn", "torch"}


_SAID: ContextVar[set[str] | None] = ContextVar("said", default=None)


@contextmanager
def warning_once() -> Iterator[None]:
    """Issue each warning once, however many networks of a fit give rise to it."""
    token = _SAID.set(set())
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
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{where}: {error}") from error
    except Exception as error:
        if hasattr(error, "add_note"):  # from Python 3.11 on
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


_ENTRY = re.compile(r"^(?=[\w*, `]+ : )", re.MULTILINE)
_BOUND = ("self", "cls")


def inherit_docs(*sources: Callable[..., Any]) -> Callable[[Function], Function]:
    """Complete the docstring of a class or function from other docstrings.

    The parameters of its signature and the fitted attributes that it does not describe itself are
    described as there, or as in a base class, with its own defaults; what it returns, if it does
    not say so, as in the first one.
    """
    known = [_sections(one) for source in sources for one in getattr(source, "__mro__", [source])]
    returns = _section("Returns").search(cleandoc(sources[0].__doc__ or ""))

    def complete(target: Function) -> Function:
        doc, own = cleandoc(target.__doc__ or ""), _sections(target)
        parameters = {k: p for k, p in signature(target).parameters.items() if k not in _BOUND}
        if parameters and not _section("Parameters").search(doc):
            match = re.search(r"^\w+\n---|\Z", doc, re.MULTILINE)
            at = match.start() if match else len(doc)
            doc = f"{doc[:at].rstrip()}\n\nParameters\n----------\n{doc[at:]}"
        for title, given in own.items():
            entries = given
            for one in known:  # the nearest description of a name, in the order of the first one
                entries = entries | one[title] | entries
            if title == "Parameters":
                entries = {k: _with_default(entries[k], p.default) for k, p in parameters.items()}
            body = "\n".join(dict.fromkeys(entries.values()))
            if match := _section(title).search(doc):
                doc = f"{doc[: match.end(1)]}{body}\n\n{doc[match.end() :]}"
        match = _section("Parameters").search(doc)
        at = match.end() if match else len(doc)
        if returns and not re.search("^(Returns|Yields)\n", doc, re.MULTILINE):
            doc = f"{doc[:at].rstrip()}\n\n{returns[0].rstrip()}\n\n{doc[at:]}"
        target.__doc__ = doc.rstrip() + "\n"
        return target

    return complete


def _with_default(entry: str, default: Any) -> str:
    """The description of a parameter, with the default of a signature."""
    head, found, rest = entry.partition(", default=")
    given, end, text = rest.partition("\n")
    if not found or default is Parameter.empty or literal_eval(given) == default:
        return entry
    return f"{head}, default={default!r}".replace("'", '"') + end + text


def _section(title: str) -> re.Pattern[str]:
    """A section's head and body, up to the head of the next one or the end."""
    return re.compile(rf"(^{title}\n-+\n)(.*?)(?=^[A-Z][^\n]*\n---|\Z)", re.MULTILINE | re.DOTALL)


def _sections(documented: Any) -> dict[str, dict[str, str]]:
    """Descriptions of parameters and attributes by name; several names may have a common one."""
    sections: dict[str, dict[str, str]] = {"Parameters": {}, "Attributes": {}}
    for title, entries in sections.items():
        match = _section(title).search(cleandoc(documented.__doc__ or ""))
        for entry in _ENTRY.split(match[2] if match else ""):
            if " : " in entry:
                names = entry.partition(" : ")[0].split(", ")
                entries.update({name.lstrip("*"): entry.rstrip("\n") for name in names})
    return sections
