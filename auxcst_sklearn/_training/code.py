"""The code of a user's classes and functions, as plain values that change with edits."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dis import get_instructions
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import joblib
import numpy as np
from torch import Tensor, nn

# Their versions are already in the key of a checkpoint, or do not affect a training.
_KNOWN = {"auxcst_sklearn", "joblib", "numpy", "pandas", "polars", "scipy", "sklearn", "torch"}
_INSTALLED = {"site-packages", "dist-packages"}
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def code_of(value: Any) -> list[Any]:
    """The code of functions and classes in a value, and of the user's code that they refer to.

    For an installed package it is the version. Compiled parts have no Python code and are omitted.
    """
    reader = _Reader()
    reader.visit(value)
    return sorted(reader.code, key=repr)


class _Reader:
    """Collects code, each class, function and object once."""

    def __init__(self) -> None:
        self.code: list[Any] = []
        self._seen: set[int | str] = set()

    def visit(self, value: Any) -> None:
        if isinstance(value, _PLAIN):
            return
        if isinstance(value, staticmethod | classmethod | MethodType):
            self.visit(value.__func__)
        elif isinstance(value, property):
            self._visit_all((value.fget, value.fset, value.fdel))
        elif isinstance(value, partial):
            self._visit_all((value.func, value.args, value.keywords))
        elif isinstance(value, Mapping):
            self._visit_all(value.values())
        elif isinstance(value, list | tuple | set | frozenset):
            self._visit_all(value)
        elif self._is_first(id(value)):
            self._visit_object(value)

    def _visit_all(self, values: Iterable[Any]) -> None:
        for value in values:
            self.visit(value)

    def _is_first(self, key: int | str) -> bool:
        first = key not in self._seen
        self._seen.add(key)
        return first

    def _visit_object(self, value: Any) -> None:
        if isinstance(value, type):
            for kind in value.__mro__:
                if self._is_users(kind.__module__) and (kind is value or self._is_first(id(kind))):
                    self._add_class(kind)
        elif isinstance(value, FunctionType):
            # By its globals, because a wrapper has the module name of the wrapped function: torch
            # wraps the method `step` of an optimizer class when its first instance is made.
            if self._is_users(value.__globals__.get("__name__")):
                self._add_function(value)
            self.visit(getattr(value, "__wrapped__", None))
        else:
            self.visit(type(value))
            if isinstance(value, nn.Module) or self._is_users(type(value).__module__):
                self._visit_all(getattr(value, "__dict__", {}).values())

    def _is_users(self, name: str | None) -> bool:
        """Whether a module is the user's own; adds the version of an installed one."""
        root = (name or "builtins").partition(".")[0]
        if root in _KNOWN or root in sys.stdlib_module_names:
            return False
        path = str(getattr(sys.modules.get(name or ""), "__file__", None) or "")
        # The main module of a worker is not that of the code which it runs.
        if root == "__main__" or _INSTALLED.isdisjoint(path.replace("\\", "/").split("/")):
            return True
        if self._is_first(root):
            self.code.append((root, str(getattr(sys.modules.get(root), "__version__", ""))))
        return False

    def _add_class(self, kind: type) -> None:
        attributes = {k: v for k, v in vars(kind).items() if not k.startswith("__") or callable(v)}
        self.code.append((kind.__qualname__, _plain(attributes)))
        self._visit_all(attributes.values())

    def _add_function(self, function: FunctionType) -> None:
        code, given = function.__code__, function.__globals__
        named = {name: given.get(name) for name in _names(code, of_globals=True)}
        for module in list(named.values()):
            if isinstance(module, ModuleType) and self._is_users(module.__name__):
                named |= {name: vars(module).get(name) for name in _names(code)}
        cells = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        known: dict[Any, Any] = {**named, **dict(zip(code.co_freevars, cells))}
        known |= dict(enumerate(function.__defaults__ or ()))
        known |= function.__kwdefaults__ or {}
        self.code.append((function.__qualname__, _describe(code), _plain(known)))
        self._visit_all(known.values())


def _plain(values: Mapping[Any, Any]) -> list[tuple[str, str]]:
    found = ((str(k), _shown(v)) for k, v in values.items())
    return sorted((k, shown) for k, shown in found if shown is not None)


def _shown(value: Any) -> str | None:
    """A plain value, or a collection of plain values or numbers, as a string; None for others."""
    if isinstance(value, np.ndarray | Tensor):
        return str(joblib.hash(value if isinstance(value, np.ndarray) else value.numpy(force=True)))
    if isinstance(value, Mapping):
        return repr([(str(k), _shown(v)) for k, v in value.items()])
    if isinstance(value, list | tuple):
        return repr([_shown(v) for v in value])
    return repr(value) if value is not None and isinstance(value, _PLAIN) else None


def _is_filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _nested(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _names(code: CodeType, *, of_globals: bool = False) -> list[str]:
    """Names of globals and attributes, or of globals, in a function and those within it."""
    names = list(code.co_names)
    if of_globals:
        names = [i.argval for i in get_instructions(code) if i.opname == "LOAD_GLOBAL"]
    return [*names, *(n for inner in _nested(code) for n in _names(inner, of_globals=of_globals))]


def _describe(code: CodeType) -> tuple[Any, ...]:
    """The behaviour of code, without its position in the file."""
    constants = [
        _describe(c) if isinstance(c, CodeType)
        # The order of a set differs between processes.
        else repr(sorted(map(repr, c)) if isinstance(c, frozenset) else c)
        for c in code.co_consts
    ]  # fmt: skip
    table = getattr(code, "co_exceptiontable", b"")  # Python 3.11 or later
    names = code.co_names, code.co_freevars, code.co_cellvars
    return code.co_name, code.co_argcount, code.co_code, table, names, constants
