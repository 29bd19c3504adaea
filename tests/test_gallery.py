"""The scripts of the gallery: their form, and that one of them runs, another as a notebook."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
NOTEBOOKS = ["plot_threshold_budget"]


def environment() -> dict[str, str]:
    """The variables of this process, with this package and figures without a screen."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "MPLBACKEND": "agg"}


@pytest.mark.lint
def test_the_documentation_has_an_order_of_all_scripts():
    conf = (ROOT / "docs" / "conf.py").read_text()
    listed = re.search(r"^gallery = \[(.*?)\]", conf, re.DOTALL | re.MULTILINE)[1]
    assert sorted(re.findall(r"\w+", listed)) == [path.stem[5:] for path in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
@pytest.mark.lint
def test_script_is_a_short_page_with_a_title_cells_and_a_plot(script):
    text = script.read_text()
    compile(text, script, "exec")
    title, underline = (ast.get_docstring(ast.parse(text)) or "").split("\n")[:2]
    assert underline == "=" * len(title)
    assert 2 <= text.count("# %%\n") <= 7
    assert 1 <= text.count("plt.show()") <= 2
    assert 40 <= len(text.splitlines()) <= 100
    # A figure belongs to one cell: sphinx-gallery closes all figures at the end of a cell.
    for cell in text.split("# %%\n"):
        assert len(re.findall(r"plt\.subplots", cell)) <= 1


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_imports_what_the_package_has(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("auxcst_sklearn"):
            for alias in node.names:
                assert hasattr(import_module(node.module), alias.name)


@pytest.mark.slow
def test_script_runs(tmp_path):
    """All of them run when the documentation is built."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "gallery" / "plot_own_module.py"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "EUR" in done.stdout


@pytest.mark.parametrize("name", NOTEBOOKS)
@pytest.mark.slow
def test_script_runs_as_a_notebook(name, tmp_path, monkeypatch):
    converter = pytest.importorskip("sphinx_gallery.notebook")
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("ipykernel")
    script = Path(shutil.copy(ROOT / "examples" / "gallery" / f"{name}.py", tmp_path))
    converter.python_to_jupyter_cli([str(script)])
    notebook = nbformat.read(script.with_suffix(".ipynb"), as_version=4)
    first = re.search(r'"first_notebook_cell": "(.*)"', (ROOT / "docs" / "conf.py").read_text())[1]
    notebook.cells.insert(0, nbformat.v4.new_code_cell(first))
    monkeypatch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the notebook's own, figures below the cells
    folder = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=folder).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert any("EUR" in output.get("text", "") for output in outputs)
