"""Digests: equal for equal values, others for others and for another source."""

import subprocess
import sys
from functools import partial
from importlib import import_module
from pickle import PicklingError

import filelock
import joblib
import numpy as np
import pandas as pd
import pytest
import torch

from auxcst_sklearn._training.digests import digest, sources
from auxcst_sklearn.losses import Squared


class Noted(torch.optim.SGD):
    def step(self, closure=None):
        return super().step(closure)


class Double(torch.nn.Module):
    def forward(self, x):
        return 2 * x


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Writes modules of a package that import each other, and imports one of them."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def write(**texts):
        for name in [name for name in sys.modules if name.startswith("of_a_user")]:
            del sys.modules[name]
        (tmp_path / "of_a_user").mkdir(exist_ok=True)
        for name, text in {"__init__": "", **texts}.items():
            (tmp_path / "of_a_user" / f"{name}.py").write_text(text)
        return import_module("of_a_user.network").f

    yield write
    for name in [name for name in sys.modules if name.startswith("of_a_user")]:
        del sys.modules[name]


NETWORK = "from . import layers\nfrom .units import unit\ndef f(x): return unit(layers.A)\n"
TEXTS = {"network": NETWORK, "layers": "A = 1\n", "units": "def unit(x): return x\n"}


def test_files_count_with_what_they_import(package):
    first = digest(package(**TEXTS))
    assert digest(package(**TEXTS)) == first
    for name in TEXTS:
        edited = package(**{**TEXTS, name: TEXTS[name] + "B = 1"})
        assert digest(edited) != first
        assert digest([partial(edited, 1)]) != digest([partial(edited, 2)])
    assert set(sources(package(**TEXTS))) == set(TEXTS.values())


def test_modules_may_import_each_other(package):
    text = "from . import network\nA = 1\n"
    assert text in sources(package(**{**TEXTS, "layers": text}))


def test_a_class_counts_with_its_bases(package):
    texts = {"network": "from . import layers\nclass f(layers.B): pass", "layers": "class B: pass"}
    first = digest(package(**texts)())
    assert digest(package(**{**texts, "layers": "class B:\n a = 1"})()) != first


def test_torch_wraps_methods_of_an_optimizer():
    before = digest(Noted)
    Noted([torch.ones(1)])
    assert digest(Noted) == before


@pytest.mark.parametrize(
    "value",
    [torch.nn.Linear, torch.optim.SGD, torch.relu, np.sum, len, Squared, partial, joblib.hash],
    ids=lambda value: value.__name__,
)
def test_known_packages_have_no_source(value):
    assert sources(value) == []


def test_an_installed_package_has_its_version():
    assert sources(filelock.Timeout) == [f"filelock {filelock.__version__}"]


NOTEBOOK = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for text in (
    "def helper(x): return x",
    "class Network:\\n    def forward(self, x): return helper(x)",
    "from auxcst_sklearn._training.digests import sources",
    "print(len(sources(Network)), 'def helper' in str(sources(Network)))",
):
    shell.run_cell(text).raise_error()
"""


def test_cells_of_a_notebook():
    pytest.importorskip("IPython", reason="IPython is not installed")
    found = subprocess.run([sys.executable, "-c", NOTEBOOK], capture_output=True, text=True)
    assert found.stdout == "2 True\n", found.stderr


def test_what_has_no_source_or_no_name_is_refused():
    home = {"__name__": "of_a_user"}
    exec("def f(): pass", home)
    for value, reason in ((home["f"], "the source of f cannot"), (lambda: 1, "at the top of a")):
        with pytest.raises(PicklingError, match=reason):
            digest(value)
    with pytest.raises(PicklingError, match="generator"):
        digest(i for i in range(3))


@pytest.mark.parametrize(
    ("first", "second", "other"),
    [
        ([[0.0, 1.0]], np.array([[0.0, 1.0]]), [[0.0, 2.0]]),
        (np.eye(3)[:2], np.asfortranarray(np.eye(3)[:2]), np.eye(3)[1:]),
        (0.2, np.float64(0.2), 0.3),
        ([[0, 1], 0.3], [[0, 1], 0.3], [[0, 1], 0.4]),
        (torch.ones(2), torch.ones(4)[:2], torch.zeros(2)),
        (torch.nn.Sequential(Double()), torch.nn.Sequential(Double()), torch.nn.Sequential()),
        (pd.DataFrame({"a": [1]}), pd.DataFrame({"a": [1]}), pd.DataFrame({"b": [1]})),
    ],
)
def test_equal_values_have_equal_digests(first, second, other):
    assert digest(first) == digest(second) != digest(other)
