"""What the repository says about itself in several places says the same."""

import re
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PYPROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
RECIPE = (ROOT / "conda" / "meta.yaml").read_text(encoding="utf-8")
VERSION = re.search(r'^version = "(.*)"', PYPROJECT, re.M)[1]
LISTED = re.search(r"^dependencies = \[\n(.*?)^\]", PYPROJECT, re.M | re.S)[1]
WANTED = [Requirement(text) for text in re.findall(r'"(.+)"', LISTED)]


@pytest.mark.parametrize(
    ("file", "pattern"),
    [
        ("CITATION.cff", r"^version: (\S+)"),
        ("conda/meta.yaml", r'set version = "(.*)"'),
        ("CHANGELOG.rst", r"^(\d\S*) \(.*\)\n---"),
    ],
)
def test_one_version(file, pattern):
    assert re.search(pattern, (ROOT / file).read_text(encoding="utf-8"), re.M)[1] == VERSION


def test_one_date_of_the_release_or_none():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    changelog = (ROOT / "CHANGELOG.rst").read_text(encoding="utf-8")
    cited = re.search(r"^date-released: (\S+)", citation, re.M)

    assert f"{VERSION} ({cited[1] if cited else 'unreleased'})" in changelog


def test_the_recipe_has_the_bounds_of_the_metadata():
    python = re.search(r'^requires-python = "(.*)"', PYPROJECT, re.M)[1]
    run = re.search(r"^  run:\n((?:    - .*\n)+)", RECIPE, re.M)[1]
    found = [Requirement(line.removeprefix("    - ")) for line in run.splitlines()]

    bounds = {
        "pytorch" if each.name == "torch" else each.name: each.specifier for each in WANTED
    } | {"python": Requirement(f"python{python}").specifier}
    assert {each.name: each.specifier for each in found} == bounds


def test_the_oldest_releases_are_the_lower_bounds():
    text = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8")
    oldest = dict(re.findall(r"^(.+)==(.+)$", text, re.M))

    for each in WANTED:
        lower = next(s.version for s in each.specifier if s.operator == ">=")
        assert f"{oldest[each.name]}.".startswith(f"{lower}.")


def test_hooks_have_the_versions_of_make_lint():
    hooks = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    pins = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = re.findall(r'"(\S+==\S+)"', hooks)

    assert pinned
    assert set(pinned) <= set(pins)


def test_classifiers_and_tools_agree_with_the_oldest_python():
    oldest = re.search(r'^requires-python = ">=3\.(\d+)"', PYPROJECT, re.M)[1]
    listed = re.findall(r'Python :: 3\.(\d+)"', PYPROJECT)
    mypy = re.search(r"^python_version = 3\.(\d+)", (ROOT / "setup.cfg").read_text("utf-8"), re.M)[
        1
    ]

    assert listed[0] == oldest
    assert f'target-version = "py3{oldest}"' in PYPROJECT
    assert mypy == oldest
