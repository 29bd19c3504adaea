"""Digests of what a fit depends on: compared between processes, and with checkpoints."""

from __future__ import annotations

import inspect
import linecache
import sys
from contextlib import suppress
from pathlib import Path
from pickle import PicklingError
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import numpy as np
from joblib.hashing import NumpyHasher

from .._checks.frames import is_frame
from .._inputs.reading import LazyRows, row_blocks
from .state import to_state

# Packages whose versions are in the key of a fit, or do not affect it.
_KNOWN = {"auxcst_sklearn", "joblib", "numpy", "pandas", "polars", "scipy", "sklearn", "torch"}
_INSTALLED = {"site-packages", "dist-packages"}


def digest(value: Any) -> str:
    """The same for equal values in any process; the user's code counts by the text of its files.

    A value that cannot be pickled, or whose code cannot be read, raises a PicklingError.
    """
    if is_frame(value):
        index = [str(label) for label in value.index] if hasattr(value, "index") else None
        value = [str(c) for c in value.columns], np.asarray(value).tolist(), index
    elif isinstance(value, LazyRows):
        value = [digest(value[rows]) for rows in row_blocks(value)]
    elif isinstance(value, list | tuple | np.ndarray | np.generic):
        with suppress(ValueError):  # of unequal lengths: they stay as they are, as do objects
            array = np.asarray(value)
            if array.dtype.kind != "O":
                value = np.ascontiguousarray(array) if array.ndim else array.item()
    try:  # not of the value itself, because pickles of equal tensors differ
        of_state: str = _Hasher("sha1").hash(to_state(value))
    except PicklingError as error:  # joblib adds a description of the whole value
        raise PicklingError(str(error.args[0])) from error
    except (AttributeError, TypeError) as error:
        raise PicklingError(str(error)) from error
    return of_state


class _Hasher(NumpyHasher):
    """joblib's hasher, but with classes and functions by name and source, importable or not."""

    def save_global(self, obj: Any, name: str | None = None, **kwargs: Any) -> None:
        name = name or obj.__qualname__
        if "<" in name:  # what a lambda or a local function refers to has no name
            raise PicklingError(f"{name} is not defined at the top of a module")
        self.save([f"{obj.__module__}.{name}", *sources(obj)])

    dispatch = {**NumpyHasher.dispatch}  # noqa: RUF012
    dispatch.update(dict.fromkeys((type, FunctionType, BuiltinFunctionType), save_global))


def sources(value: Any) -> list[str]:
    """The text of the files of a class or function, and of the user's modules that these import.

    An installed package has its version instead, and what `_KNOWN` lists has none.
    """
    texts: dict[str, str] = {}
    for part in getattr(value, "__mro__", (value,)):
        if _is_users(part.__module__, texts) and not _add_definition(part, texts):
            raise PicklingError(f"the source of {part.__qualname__} cannot be read")
    return sorted(set(texts.values()))


def _add_definition(part: Any, texts: dict[str, str]) -> bool:
    """Add the files, or the cells, of a class or function; return whether any can be read.

    Functions name them, as the main module is no file in a notebook, and another one in a worker.
    Methods may be wrapped, as torch does with those of an optimizer.
    """
    members = (part, *getattr(part, "__dict__", {}).values())
    functions = [f for f in map(inspect.unwrap, members) if isinstance(f, FunctionType)]
    files = [(f.__code__.co_filename, f.__globals__) for f in functions]
    module = sys.modules.get(part.__module__)
    if module is not None and part.__module__ != "__main__":
        files.append((getattr(module, "__file__", None) or "", vars(module)))
    for path, names in files:
        _add_file(path, names, texts)
    return any(path in texts for path, _ in files)


def _add_file(path: str, names: dict[str, Any], texts: dict[str, str]) -> None:
    """Add a file with these globals, and the user's files that define them."""
    if path not in texts:
        linecache.checkcache(path)
        if lines := linecache.getlines(path, names):
            texts[path] = "".join(lines)
            for value in list(names.values()):
                _add_global(value, texts)


def _add_global(value: Any, texts: dict[str, str]) -> None:
    if isinstance(value, type | FunctionType):
        if value.__module__ == "__main__":
            _add_definition(value, texts)
        value = sys.modules.get(value.__module__)
    if isinstance(value, ModuleType) and _is_users(value.__name__, texts):
        _add_file(getattr(value, "__file__", None) or "", vars(value), texts)


def _is_users(name: str | None, texts: dict[str, str]) -> bool:
    """Whether a module is the user's own; adds the version of an installed one."""
    root = (name or "builtins").partition(".")[0]
    if root == "__main__":
        return True
    if root in _KNOWN or root in sys.stdlib_module_names:
        return False
    path = getattr(sys.modules.get(name or ""), "__file__", None)
    if _INSTALLED.isdisjoint(Path(path or "").parts):
        return True
    texts[root] = f"{root} {getattr(sys.modules.get(root), '__version__', '')}"
    return False
