"""Links of the pages lead somewhere, on GitHub and in what Sphinx builds."""

import re

import pytest

from tests.test_docs import ROOT, texts

LINK = re.compile(r"`[^`<]*<([^`>]+)>`_")
# The README is also the page of the package index, where a relative link leads nowhere.
OF_MAIN = re.compile(
    r"https://(?:github\.com/auxcst/auxcst_sklearn/blob|raw\.githubusercontent\.com/auxcst/auxcst_sklearn)/main/"
)
HEADING = re.compile(r"^(\S.*)\n([-=~])\2{2,}$", re.M)
PAGES = [
    *(page for page, _ in texts()),
    *(ROOT / name for name in ("CHANGELOG.rst", "ARCHITECTURE.rst", "examples/README.rst")),
]


def anchors(page):
    """The anchors that docutils, on GitHub and in Sphinx, makes of the headings."""
    headings = HEADING.findall(page.read_text(encoding="utf-8"))
    return {re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") for text, _ in headings}


def wrong_links(page):
    """Links of a page to files or headings that do not exist."""
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        uri, _, anchor = "".join(target.split()).partition("#")
        if found := OF_MAIN.match(uri):
            uri = str(ROOT / uri[found.end() :])
        if ":" in uri:
            continue
        file = page.parent / uri if uri else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            yield target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
@pytest.mark.lint
def test_relative_links_lead_to_files_and_headings(page):
    assert not list(wrong_links(page))


def test_a_wrong_link_is_found(tmp_path):
    page = tmp_path / "page.rst"
    of_main = "https://github.com/auxcst/auxcst_sklearn/blob/main/"
    page.write_text(
        "A heading\n---------\n`a <page.rst#a-heading>`__ `b <page.rst#b>`_ `c <c.rst>`_ "
        f"`d <{of_main}README.rst#heads>`_ `e <{of_main}e.rst>`_"
    )
    assert list(wrong_links(page)) == ["page.rst#b", "c.rst", f"{of_main}e.rst"]


@pytest.mark.lint
def test_the_page_of_the_package_index_has_whole_links_and_pictures():
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    targets = [*LINK.findall(text), *re.findall(r"image:: (\S+)", text)]
    assert not [target for target in targets if not target.startswith("https://")]
    pictures = [OF_MAIN.sub("", target) for target in re.findall(r"image:: (\S+)", text)]
    assert all((ROOT / picture).exists() for picture in pictures)


def test_github_knows_the_roles_of_links():
    roles = re.compile(r":(?:doc|ref|download):`")
    assert not [page.name for page, text in texts() if roles.search(text)]


@pytest.mark.lint
def test_the_front_page_and_the_guide_link_every_page():
    docs = ROOT / "docs"
    lists = [docs / "index.rst", docs / "guide" / "index.rst"]
    linked = {
        (page.parent / link.split("#")[0]).resolve()
        for page in lists
        for link in LINK.findall(page.read_text("utf-8"))
    }
    pages = {page for page, _ in texts() if docs / "_templates" not in page.parents}
    unlinked = {docs / "index.rst", docs / "changelog.rst", ROOT / "README.rst"}
    assert pages - linked == unlinked


@pytest.mark.lint
def test_the_front_page_has_few_links():
    lines = (ROOT / "docs" / "index.rst").read_text("utf-8").splitlines()
    assert sum(line.startswith("- ") for line in lines) <= 9
