"""The code of the README and of the guide runs, page by page."""

import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import matplotlib
import pytest
import sklearn

from tests.try_wheel import is_printed, printed_by

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.rst", *sorted((ROOT / "docs" / "guide").glob("*.rst"))]
PAGES = [page for page in PAGES if ".. code-block:: python" in page.read_text(encoding="utf-8")]
PAGES = [page for page in PAGES if page.stem != "with_your_tools"]  # runs in make test-tools
BLOCK = re.compile(
    r"^\.\. (code-block:: python|literalinclude:: (\S+\.py))\n(.*?)(?=^\S|\Z)", re.M | re.S
)
# What a page needs beside the extra of tests.
NEEDS = {"worked_case": ["empulse", "onnxruntime", "onnxscript", "skl2onnx"]}
# Packages that a page uses in a block of its own.
OPTIONAL = {"lightgbm", "optuna", "skrub", "timm", "tokenizers", "transformers"}


def blocks(page):
    """Code blocks, and the files that a page includes."""
    for match in BLOCK.finditer(page.read_text(encoding="utf-8")):
        file, text = match[2], match[3]
        if file:
            yield (page.parent / file).read_text(encoding="utf-8")
        else:
            yield "\n".join(line[4:] for line in text.splitlines())


def outputs(page):
    """What the page says that a code block prints, by the number of the block."""
    number, found = -1, {}
    text = page.read_text(encoding="utf-8")
    for match in re.finditer(
        r"^\.\. (literalinclude::.*py|code-block:: (python|text))\n", text, re.M
    ):
        if match[2] == "text":
            found[number] = dedent(re.match(r"\n((?: {4}.*\n)+)", text[match.end() :])[1])
        else:
            number += 1
    return found


def texts():
    """The text of each page that people write, by its file."""
    made = {"generated", "gallery", "_build", "sg_execution_times.rst"}  # by Sphinx
    for page in [ROOT / "README.rst", *(ROOT / "docs").rglob("*.rst")]:
        if not made & set(page.parts):
            yield page, page.read_text(encoding="utf-8")


@pytest.mark.lint
def test_the_documentation_is_short():
    words = {page.name: len(text.split()) for page, text in texts()}
    assert words["README.rst"] <= 900
    assert words["with_your_tools.rst"] <= 1500
    apart = words["README.rst"] + words["with_your_tools.rst"]
    assert sum(len(text.split()) for _, text in texts()) - apart <= 19_000


def test_the_part_of_the_readme_on_the_first_page_has_no_link_to_another_part():
    readme = (ROOT / "README.rst").read_text(encoding="utf-8")
    part = readme.partition("documentation starts here.")[2].partition(".. It ends here.")[0]

    assert part.count("code-block:: python") == 3
    assert not re.findall(r"(?<!`)`[^`<]+`_", part)


@pytest.mark.lint
def test_pages_use_the_words_of_the_field():
    habits = "the pool|boostings|hands for|one more place|set up all|those of|that of|wants 0"
    assert not {page.name: found for page, text in texts() if (found := re.findall(habits, text))}


@pytest.mark.lint
def test_pictures_of_pages_exist():
    for page, text in texts():
        for name in re.findall(r"\.\. image:: (?!https:)(\S+)", text):
            assert (page.parent / name).exists(), f"{page.name}: {name}"


@pytest.mark.parametrize("name", ["README.rst", "CHANGELOG.rst", "ARCHITECTURE.rst"])
@pytest.mark.lint
def test_a_page_reads_well_where_sphinx_does_not_render_it(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not re.search(r":(doc|ref|class|func|meth|mod):`|^\.\. (toctree|autoclass)", text, re.M)


def test_functions_of_the_readme_see_its_names_in_the_wheel():
    assert printed_by("def f():\n    return x\n\nx = 3\nprint(f())") == "3\n"


def test_what_differs_from_the_readme_is_found():
    printed = "0.16 per digit, 2.5 s: boosting\n4 look"
    assert is_printed("0.21 per digit, 31.0 s: boosting\n4 look\n", printed)
    assert not is_printed("0.31 per digit, 2.5 s: boosting\n4 look", printed)
    assert not is_printed("0.16 per digit, 2.5 s: boosting\n4 8", printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.slow
def test_the_code_of_a_page_runs(page, monkeypatch, tmp_path, capsys):
    for name in NEEDS.get(page.stem, ()):
        pytest.importorskip(name)
    matplotlib.use("agg")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    expected = outputs(page)
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    # With another torch, networks without heads fail at other costs.
    is_pinned = f"torch=={version('torch').split('+')[0]}\n" in pins
    # Gradient boosting of scikit-learn grew other trees before 1.9.
    grows_the_same = tuple(map(int, version("scikit-learn").split(".")[:2])) >= (1, 9)
    with sklearn.config_context():
        names, missing = {"__name__": page.stem}, set()
        for number, block in enumerate(blocks(page)):
            used = {
                name for name in OPTIONAL if re.search(rf"^(from|import) {name}\b", block, re.M)
            }
            if without := {name for name in used if not find_spec(name)}:
                missing |= without
                continue
            exec(compile(block, str(page), "exec"), names)
            printed = capsys.readouterr().out
            if number in expected and (grows_the_same if page.stem == "README" else is_pinned):
                # Other releases may find another setting, at nearly the same cost.
                shown, said = (re.sub(r"(?m)^{.*}\n", "", t) for t in (printed, expected[number]))
                assert is_printed(shown, said), printed
    if missing:
        pytest.skip(f"all ran but the lines for {sorted(missing)}, which are not installed")
