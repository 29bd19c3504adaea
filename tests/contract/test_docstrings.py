"""numpydoc's rules for all that is public: every parameter, its type, what is returned."""

from __future__ import annotations

import importlib
import inspect
from functools import cache

import pytest

validate = pytest.importorskip("numpydoc.validate").validate

ROOMS = ["", "costs", "losses", "modules", "metrics", "decisions", "datasets", "plotting", "onnx"]

# Rules of taste: no See Also, summaries in any person and of one sentence, returns with a name.
# An example stands in every class and function, and not in every method.
# (RT04 takes the fields of a Bunch for a description.)
LEFT_OUT = {"SA01", "ES01", "SS05", "RT02", "RT04", "EX01"}
# A method says once, in the base class, what it is, takes and returns; modules of torch need no
# more than a line.
OF_BASE = {"GL08", "PR01", "RT01", "YD01"}


def public():
    for room in ROOMS:
        name = ".".join(filter(None, ["auxcst_sklearn", room]))
        module = importlib.import_module(name)
        for member in module.__all__:
            value = getattr(module, member)
            if inspect.isclass(value) or inspect.isfunction(value):
                yield f"{name}.{member}", None
            if inspect.isclass(value):
                for method, function in inspect.getmembers(value, inspect.isfunction):
                    ours = (function.__module__ or "").startswith("auxcst_sklearn")
                    if ours and not method.startswith("_"):
                        yield f"{name}.{member}.{method}", value


@cache
def errors_of(name):
    return [(code, text) for code, text in validate(name)["errors"] if code not in LEFT_OUT]


@pytest.mark.parametrize(("name", "kind"), list(public()), ids=lambda value: str(value)[:80])
def test_the_docstring_is_complete(name, kind):
    method = name.rpartition(".")[2]
    overrides = kind is not None and any(method in vars(base) for base in kind.__mro__[1:])
    shorter = overrides or name.startswith("auxcst_sklearn.modules.")
    assert not [found for found in errors_of(name) if not (shorter and found[0] in OF_BASE)]
