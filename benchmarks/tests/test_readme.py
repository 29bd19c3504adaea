"""The numbers of the README and of the pages are the numbers of the results."""

import re
from importlib.util import module_from_spec, spec_from_file_location

import pytest

from benchmarks import first_page
from benchmarks.common.json_files import from_json
from tests.test_docs import ROOT

RESULTS = ROOT / "benchmarks" / "results"
if not (RESULTS / "tables_wide.json").is_file():
    pytest.skip("the sdist has no results", allow_module_level=True)

# Rows of the README, and what the results call them.
ROWS = {
    "small tables, rare classes": "rare classes",
    "sixteen tables": "sixteen tables",
    "ten other tables": "ten tables",
    "texts of many classes": "texts",
    "images, pretrained network": "images",
    "a million rows": "a million rows",
}
COLUMNS = ["logistic regression", "calibrated boosting"]


@pytest.fixture(scope="module")
def readme():
    """Cells of the table, by the label of the row."""
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    table = re.search(r"^data  .*?\n=+ .*?\n(.*?)\n=+ ", text, re.M | re.S)[1]
    lines = [re.split(r"  +", line) for line in table.splitlines()]
    return {label: cells for label, *cells in lines[1:] if label} | {lines[0][0]: lines[0][1:]}


@pytest.mark.parametrize("row", first_page.rows(), ids=lambda row: row.data)
def test_a_row_of_the_readme(row, readme):
    (label,) = [label for label, name in ROWS.items() if name == row.data]
    cells = readme[label]
    for name, ratio in row.ratios.items():
        cell = cells[COLUMNS.index(name)] if name in COLUMNS else cells[2]
        assert cell.split()[0] == f"{ratio:.2f}"
    assert cells[3] == f"{row.seconds:.0f}"


def test_autogluon(readme):
    runs = first_page._runs("tables_wide", "method", "set")
    ratio = first_page._ratio(runs, "ours: ensemble", "AutoGluon")
    assert readme["sixteen tables"][2] == f"{ratio:.2f} (AutoGluon)"
    claims = {
        case["model"]: case["cpu_seconds"]
        for case in from_json((RESULTS / "growth.json").read_text(encoding="utf-8"))["cases"]
        if (case["kind"], case["rows"]) == ("claims", 1_000_000)
    }
    share = claims["boosting, early stop"] / claims["ours: ensemble"]
    assert share == pytest.approx(0.1, abs=0.01)  # "a tenth of the time"


def make_tables():
    """The script that writes the tables of the pages."""
    spec = spec_from_file_location("make_tables", ROOT / "docs" / "tables" / "make.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", make_tables().TABLES)
def test_a_table_of_the_pages_is_the_table_of_the_results(name):
    file = ROOT / "docs" / "tables" / f"{name}.csv"
    assert file.read_text(encoding="utf-8") == make_tables().text(name)


def test_the_pages_show_all_tables():
    pages = "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").rglob("*.rst"))
    assert all(f"tables/{name}.csv" in pages for name in make_tables().TABLES)
