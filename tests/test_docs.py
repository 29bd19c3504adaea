"""The code of the README and of the guide runs, page by page."""

import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
import sklearn

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.rst", *sorted((ROOT / "docs" / "guide").glob("*.rst"))]
PAGES = [page for page in PAGES if ".. code-block:: python" in page.read_text(encoding="utf-8")]
BLOCK = re.compile(
    r"^\.\. (code-block:: python|literalinclude:: (\S+\.py))\n(.*?)(?=^\S|\Z)", re.M | re.S
)
# What a page needs beside the extra of tests.
NEEDS = {
    "service": ["onnxruntime", "onnxscript"],
    "worked_case": ["empulse", "onnxruntime", "onnxscript", "skl2onnx"],
}
FIGURE, SECONDS = re.compile(r"\b\d+\.\d+\b"), re.compile(r"\b[\d.]+ s\b")


def blocks(page):
    """Code blocks, and the files that a page includes."""
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        file, text = match[2], match[3]
        if file:
            yield (page.parent / file).read_text(encoding="utf-8")
        else:
            yield "\n".join(line[4:] for line in text.splitlines())


def test_the_documentation_is_short():
    made = {"generated", "gallery", "_build"}  # by Sphinx
    pages = [page for page in (ROOT / "docs").rglob("*.rst") if not made & set(page.parts)]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 22_000


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs(page, monkeypatch, tmp_path, capsys):
    for name in NEEDS.get(page.stem, ()):
        pytest.importorskip(name)
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    with sklearn.config_context():
        names = {"__name__": page.stem}
        for block in blocks(page):
            exec(compile(block, str(page), "exec"), names)
    if page.stem == "README":
        text = page.read_text(encoding="utf-8")
        expected = re.search(r"code-block:: text\n\n(.*?)\n\n", text, re.S)[1]
        printed, expected = (SECONDS.sub("", t) for t in (capsys.readouterr().out, expected))
        assert FIGURE.sub("", printed).split() == FIGURE.sub("", expected).split()
        # Other releases of scikit-learn train other trees.
        costs = [[float(cost) for cost in FIGURE.findall(text)] for text in (printed, expected)]
        np.testing.assert_allclose(*costs, atol=0.1)
