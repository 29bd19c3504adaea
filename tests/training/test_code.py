"""Code as plain values: equal where it does the same, another where it was edited."""

from functools import partial

import numpy as np
import pytest
import torch

from auxcst_sklearn._training.code import code_of
from auxcst_sklearn.losses import Squared


def defined(source, name="f"):
    """What a source defines, in a module of its own."""
    home = {"__name__": "of_a_user", "torch": torch}
    exec(source, home)
    return home[name]


SAME = [
    ("def f(x):\n return x + 1", "\n\ndef f(x):\n  # more\n  return x + 1"),
    ("def f(x):\n return x in {'a', 'b', 'c'}", "def f(y):\n return y in {'c', 'b', 'a'}"),
    (
        "def f(x):\n def g(): return f(x)\n return g",
        "def f(x):\n\n def g(): return f(x)\n return g",
    ),
]
OTHER = [
    ("def f(x): return x + 1", "def f(x): return x + 2"),
    ("def f(x): return x + 1", "def f(x): return x - 1"),
    ("def f(x): return x.sum()", "def f(x): return x.mean()"),
    ("def f(x, a=1): return x", "def f(x, a=2): return x"),
    ("def f(x, *, a=1): return x", "def f(x, *, a=2): return x"),
    ("def f(x): return lambda: x + 1", "def f(x): return lambda: x + 2"),
    ("A = 1\ndef f(x): return A", "A = 2\ndef f(x): return A"),
    ("def g(): return 1\ndef f(x): return g()", "def g(): return 2\ndef f(x): return g()"),
    ("class f:\n a = 1", "class f:\n a = 2"),
    ("class f:\n @property\n def a(s): return 1", "class f:\n @property\n def a(s): return 2"),
    ("class f:\n @staticmethod\n def a(): return 1",
     "class f:\n @staticmethod\n def a(): return 2"),
    ("class g:\n a = 1\nclass f(g): pass", "class g:\n a = 2\nclass f(g): pass"),
    ("def g(a):\n def f(x): return x + a\n return f\nf = g(1)",
     "def g(a):\n def f(x): return x + a\n return f\nf = g(2)"),
]  # fmt: skip


@pytest.mark.parametrize(("first", "second"), SAME)
def test_what_does_the_same(first, second):
    assert code_of(defined(first)) == code_of(defined(second)) != []


@pytest.mark.parametrize(("first", "second"), OTHER)
def test_what_does_something_else(first, second):
    found = code_of(defined(first)), code_of(defined(second))
    assert found[0] != found[1]
    assert code_of([partial(defined(first))]) == found[0]


def test_objects_within_objects():
    class Double(torch.nn.Module):
        def forward(self, x):
            return 2 * x

    network = torch.nn.Sequential(torch.nn.Linear(2, 2), Double())
    assert code_of(network) == code_of(Double())
    hooked = torch.nn.Linear(2, 2)
    hooked.register_forward_hook(lambda *args: None)
    assert code_of(hooked)


def test_torch_wraps_methods_of_an_optimizer():
    class Noted(torch.optim.SGD):
        def step(self, closure=None):
            return super().step(closure)

    before = code_of(Noted)
    Noted([torch.ones(1)])
    assert code_of(Noted) == before != []


@pytest.mark.parametrize(
    "value",
    [None, "relu", 3, [0.1, 0.2], np.eye(2), torch.ones(2), torch.nn.Linear(2, 2), torch.optim.SGD,
     Squared(), np.sum, len, torch.relu, {"a": (1, 2)}],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)  # fmt: skip
def test_what_is_no_code_of_a_user(value):
    assert code_of(value) == []


SETTINGS = {"width": [3], "weights": np.ones(2)}


def uses_settings():
    return SETTINGS["width"]


def test_values_in_containers_of_a_module_count(monkeypatch):
    before = code_of(uses_settings)
    assert before == code_of(uses_settings)
    monkeypatch.setitem(SETTINGS, "width", [4])
    wider = code_of(uses_settings)
    monkeypatch.setitem(SETTINGS, "weights", np.zeros(2))
    assert len({repr(before), repr(wider), repr(code_of(uses_settings))}) == 3
