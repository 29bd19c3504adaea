"""Docstrings of estimators with common parameters and attributes, each described once."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc, signature
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_ENTRY = re.compile(r"^(?=[\w, `]+ : )", re.MULTILINE)


def described_like(source: type) -> Callable[[Class], Class]:
    """Complete the docstring of an estimator from that of another one.

    The parameters of its signature and the fitted attributes that it does not describe itself are
    described as there.
    """

    def complete(cls: Class) -> Class:
        given = _sections(cls)
        for title, entries in _sections(source).items():
            if title == "Parameters":
                names = [name for name in signature(cls).parameters if name != "self"]
                every = {**entries, **given[title]}
                given[title] = {name: every[name] for name in names}
            elif title == "Attributes":
                given[title] = {**given[title], **entries, **given[title]}
        doc = cleandoc(cls.__doc__ or "")
        for title, entries in given.items():
            if match := _section(title).search(doc):
                body = "\n".join(entry.rstrip("\n") for entry in entries.values())
                doc = f"{doc[: match.end(1)]}{body}\n\n{doc[match.end() :]}"
        cls.__doc__ = doc + "\n"
        return cls

    return complete


def _section(title: str) -> re.Pattern[str]:
    """A section's head and body, up to the head of the next one or the end."""
    return re.compile(rf"(^{title}\n-+\n)(.*?)(?=^[A-Z][^\n]*\n---|\Z)", re.MULTILINE | re.DOTALL)


def _sections(cls: type) -> dict[str, dict[str, str]]:
    """Parameters and attributes by name."""
    found = {}
    for title in ("Parameters", "Attributes"):
        match = _section(title).search(cleandoc(cls.__doc__ or ""))
        entries = [e for e in _ENTRY.split(match[2] if match else "") if " : " in e]
        found[title] = {entry.partition(" : ")[0]: entry for entry in entries}
    return found
