import pkgutil
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch

import auxcst_sklearn

ROOT = Path(__file__).parents[2]
PUBLIC = [info.name for info in pkgutil.iter_modules(auxcst_sklearn.__path__)]
PUBLIC = [name for name in PUBLIC if not name.startswith("_")]


def test_public_names():
    assert dir(auxcst_sklearn) == sorted([*auxcst_sklearn.__all__, *PUBLIC])
    for name in auxcst_sklearn.__all__:
        assert getattr(auxcst_sklearn, name) is not None


@pytest.mark.parametrize("name", PUBLIC)
def test_a_submodule_shows_its_public_names(name):
    if name == "onnx":
        pytest.importorskip("onnx")
    module = getattr(auxcst_sklearn, name)

    assert dir(module) == sorted(module.__all__)
    for member in module.__all__:
        assert not member.startswith("_")
        assert getattr(module, member) is not None


@pytest.mark.slow
def test_submodules_are_attributes_that_load_on_first_use():
    code = (
        "import sys, auxcst_sklearn as a\n"
        "assert 'auxcst_sklearn.costs' not in sys.modules\n"
        "print(a.costs.ordinal_cost_matrix(2).tolist(), 'torch' in sys.modules)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[[0.0, 1.0], [1.0, 0.0]] False\n"


def test_version_is_that_of_the_metadata():
    assert auxcst_sklearn.__version__ == version("auxcst_sklearn")


def test_unknown_names():
    with pytest.raises(AttributeError, match="has no attribute 'CostSensitiveForest'"):
        auxcst_sklearn.CostSensitiveForest  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import auxcst_sklearn", {"torch", "sklearn", "skorch", "matplotlib"}),
        ("from auxcst_sklearn.costs import cost_vectors", {"torch", "skorch"}),
        ("from auxcst_sklearn import BayesMinimumRiskClassifier, metrics", {"torch", "skorch"}),
        ("from auxcst_sklearn import CostSensitiveAuxMLP", {"matplotlib", "PIL"}),
    ],
)
def test_imports_are_lazy(statement, absent):
    code = f"{statement}; import sys; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()

    assert absent.isdisjoint(loaded)


def test_a_checkout_that_is_not_installed_can_be_imported(tmp_path):
    package = Path(auxcst_sklearn.__file__).parent
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("__pycache__"))
    code = (
        "import sys, importlib.metadata as m; sys.path.insert(0, sys.argv[1])\n"
        "def missing(name): raise m.PackageNotFoundError(name)\n"
        "m.version = missing\n"
        "import auxcst_sklearn; print(auxcst_sklearn.__file__, auxcst_sklearn.__version__)"
    )

    found = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True
    ).stdout.split()

    assert found == [str(tmp_path / package.name / "__init__.py"), "0+unknown"]


def test_notebooks_link_estimators_to_pages_of_the_api():
    api = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    for name in auxcst_sklearn.__all__:
        kind = getattr(auxcst_sklearn, name)
        if isinstance(kind, type):
            model = kind(torch.nn.Linear(2, 2)) if name == "CostSensitiveAuxNet" else kind()
            assert f"/generated/auxcst_sklearn.{name}.html" in model._repr_html_()
            assert f"\n   {name}\n" in api
