"""The architecture, read from the imports of the package: they run one way."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import auxcst_sklearn

ROOT = Path(auxcst_sklearn.__file__).parent

# A file imports from the folder of its own concept and from those to the left of it.
ORDER = [
    "_checks",
    "costs",
    "decisions",
    "losses",
    "modules",
    "_inputs",
    "datasets",
    "metrics",
    "plotting",
    "_training",
    "_estimators",
    "onnx",
]

# What an estimator's file may import of its own folder.
STEPS = {
    *("base", "bayes_decision", "calibration", "continuing", "decision", "export", "fit_steps"),
    *("network_steps", "parameters", "prediction"),
}
BUILT_ON_OTHERS = {"members": {"table_models", "mlp"}, "ensemble": {"members"}}


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in ROOT.rglob("*.py")}


def imports(name):
    """Modules of the package that a module imports anywhere, for types as well."""
    path = MODULES[name]
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*(above if node.level else []), *filter(None, [node.module])])
            for alias in node.names:
                full = f"{base}.{alias.name}"
                found.add(full if full in MODULES else base)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return {target for target in found if target in MODULES} - {name}


GRAPH = {name: imports(name) for name in MODULES}


def top_package(name):
    """Folder or file at the top of the package."""
    return name.split(".")[1] if "." in name else "__init__"


def test_the_imports_are_found():
    assert "auxcst_sklearn.losses" in GRAPH["auxcst_sklearn._training.net"]
    assert "auxcst_sklearn.costs._statistics" in GRAPH["auxcst_sklearn.losses._loss"]


@pytest.mark.lint
def test_the_package_has_few_packages():
    assert {top_package(name) for name in MODULES} == {"__init__", *ORDER}
    assert len(ORDER) + 1 <= 13


def test_imports_run_one_way_between_packages():
    for name, targets in GRAPH.items():
        if top_package(name) != "__init__":
            known = ORDER[: ORDER.index(top_package(name)) + 1]
            assert {top_package(target) for target in targets} <= {*known}, name


def test_there_is_no_circle_of_imports():
    done, open_ = set(), []

    def visit(name):
        assert name not in open_, " > ".join([*open_[open_.index(name) :], name])
        if name not in done:
            open_.append(name)
            # The front door loads estimators on first use, and imports them for types alone.
            for target in GRAPH[name] if name != "auxcst_sklearn" else ():
                visit(target)
            open_.pop()
            done.add(name)

    for name in GRAPH:
        visit(name)


def test_estimators_do_not_import_each_other():
    for name, targets in GRAPH.items():
        if top_package(name) == "_estimators" and name.count(".") == 2:
            file = name.rpartition(".")[2]
            siblings = {t.rpartition(".")[2] for t in targets if top_package(t) == "_estimators"}
            assert siblings <= STEPS | BUILT_ON_OTHERS.get(file, set()), name


def test_skorch_is_for_the_training_and_its_estimators_alone():
    for name, path in MODULES.items():
        if top_package(name) in ORDER[: ORDER.index("_training")]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom):
                    assert not str(node.module).startswith("skorch"), name
