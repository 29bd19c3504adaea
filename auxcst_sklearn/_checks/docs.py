"""Docstrings with common parameters and attributes, each described once."""

from __future__ import annotations

import re
from collections.abc import Callable
from inspect import cleandoc, signature
from typing import Any, TypeVar

Documented = TypeVar("Documented", bound=Callable[..., Any])

_ENTRY = re.compile(r"^(?=[\w*, `]+ : )", re.MULTILINE)
_BOUND = ("self", "cls")


def described_like(source: Callable[..., Any]) -> Callable[[Documented], Documented]:
    """Complete the docstring of a class or function from that of another one.

    The parameters of its signature and the fitted attributes that it does not describe itself are
    described as there, or as in a base class.
    """
    known = [_sections(one) for one in getattr(source, "__mro__", [source])]

    def complete(target: Documented) -> Documented:
        doc, own = cleandoc(target.__doc__ or ""), _sections(target)
        for title, given in own.items():
            entries = given
            for one in known:  # the nearest description of a name, in the order of the first one
                entries = entries | one[title] | entries
            names = list(entries)
            if title == "Parameters":
                names = [name for name in signature(target).parameters if name not in _BOUND]
            body = "\n".join(dict.fromkeys(entries[name] for name in names))
            if match := _section(title).search(doc):
                doc = f"{doc[: match.end(1)]}{body}\n\n{doc[match.end() :]}"
        target.__doc__ = doc + "\n"
        return target

    return complete


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
