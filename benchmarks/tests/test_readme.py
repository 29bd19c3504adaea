"""The numbers of the README and of the pages are the numbers of the results."""

from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice

import numpy as np
import pytest
import sklearn

from benchmarks import first_page, quick_start
from benchmarks.common.json_files import from_json
from benchmarks.cost.bench_extreme import KINDS, divided
from tests.test_docs import ROOT

RESULTS = ROOT / "benchmarks" / "results"
if not (RESULTS / "tables_wide.json").is_file():
    pytest.skip("the sdist has no results", allow_module_level=True)


def make_tables():
    """The script that writes the tables of the pages."""
    spec = spec_from_file_location("make_tables", ROOT / "docs" / "tables" / "make.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKE = make_tables()


@pytest.mark.parametrize("page", MAKE.PAGES, ids=lambda page: page.stem)
def test_the_tables_of_a_page_are_the_tables_of_the_results(page):
    text = page.read_text(encoding="utf-8")
    assert MAKE.with_tables(text) == text


def test_the_pages_show_all_tables():
    pages = "".join(page.read_text(encoding="utf-8") for page in MAKE.PAGES)
    shown = {found[2].replace("-", "_") for found in MAKE.DIRECTIVE.finditer(pages)}
    assert shown == MAKE.TABLES.keys()


def test_a_wrong_number_in_a_table_is_found():
    page = ".. csv-table::\n   :name: table-keel\n   :header-rows: 1\n\n   ensemble,0.01\n\nText"
    assert MAKE.with_tables(page).endswith("\n\nText")
    assert "0.01" not in MAKE.with_tables(page)


def words(page="README.rst"):
    return " ".join((ROOT / page).read_text(encoding="utf-8").split())


@pytest.mark.parametrize(
    ("place", "rival", "of"),
    [
        (0, "best of five others", "the best of five on rare classes"),
        (1, "gradient boosting", "gradient boosting on the sixteen tables"),
    ],
)
def test_the_network_alone(place, rival, of):
    row = first_page.network_alone()[place]
    low, high = row.intervals[rival]
    assert f"{row.ratios[rival]:.2f} ({low:.2f}-{high:.2f}) of {of}" in words()


def test_a_tenth_of_the_time():
    claims = {
        case["model"]: case["cpu_seconds"]
        for case in from_json((RESULTS / "growth.json").read_text(encoding="utf-8"))["cases"]
        if (case["kind"], case["rows"]) == ("claims", 1_000_000)
    }
    share = claims["boosting, early stop"] / claims["ours: ensemble"]
    assert share == pytest.approx(0.1, abs=0.01)
    assert "a tenth of the time" in words()


def test_heads_hardly_matter_for_tables():
    (line,) = [line for line in MAKE.ablation() if line[0] == "auxiliary heads"]
    ratio, error = line[1].rstrip(")").split(" (")
    assert f"the mean cost {ratio} times as high (standard error {error})" in words()
    page = words("docs/guide/auxcst.rst")
    assert f"{ratio} times as high (standard error {error}" in page


def test_heads_in_averaged_networks():
    cost = {name: f"{mean:.2f}" for name, (mean, _) in quick_start.summary("digits").items()}
    with_heads, without = cost["8 layers"], cost["8 layers, without heads"]
    assert f"({with_heads} with, {without} without)" in words()
    assert f"Three layers have a lower cost ({cost['3 layers']})" in words()
    page = words("docs/guide/pipelines.rst")
    assert f"a lower cost still, {cost['one network, 3 layers']} on average" in page


def test_networks_on_series():
    ratio = {line[0]: line[1].rstrip(")").split(" (") for line in MAKE.series()}
    page = words("docs/guide/networks.rst")
    cost, error = ratio["MiniROCKET in the rule"]
    assert (
        f"MiniROCKET cost {cost} times as much as the default on average (standard error {error})"
        in page
    )
    cost, error = ratio["``alpha=0``, no heads"]
    assert f"Without heads, the cost is {cost} times as high (standard error {error})" in page
    _, *sets = MAKE.series_sets()  # by the number of training samples, MiniROCKET before networks
    rocket, best, worst = zip(*((c[0], min(c[1:]), max(c[1:])) for c in map(known_costs, sets)))
    assert np.less(rocket, best).tolist() == [True] * 4 + [False] * 3
    assert np.less(rocket, worst)[4:].sum() == 2


def test_extreme_costs():
    runs = from_json((RESULTS / "extreme.json").read_text(encoding="utf-8"))["runs"]
    ratio = {kind: f"{divided(runs, kind, 'wrong labels', 1000).mean():.2f}" for kind in KINDS}
    assert ratio["network"] == ratio["ensemble"]
    page = words("docs/benchmarks.rst")
    assert f"cost {ratio['network']} times as much, a small module of one's own" in page
    assert f"{ratio['module']} times" in page


def known_costs(line):
    return [float(cell) for cell in line[3:] if cell != "-"]


def test_rare_classes():
    low, high = first_page.rows()[0].intervals["best of five others"]
    assert f"(95 % interval {low:.2f} to {high:.2f})" in words("docs/guide/why.rst")


def test_a_tuned_threshold_is_dearer():
    saved, *interval = quick_start.difference(
        "boosting, tuned threshold", "boosting, expected cost"
    )
    text = "saves EUR {:.2f} (95 % interval {:.2f}-{:.2f}) over the tuned threshold"
    assert text.format(saved, *interval) in words()


def test_what_decides_by_expected_cost_does_not_differ():
    rivals = ["boosting, expected cost", "network without heads", "ensemble"]
    for rival in rivals:
        _, low, high = quick_start.difference("network", rival)
        assert low < 0 < high


def test_the_rivals_of_the_quick_start_run():
    stored = from_json((RESULTS / "quick_start.json").read_text(encoding="utf-8"))["payments"]
    with sklearn.config_context(enable_metadata_routing=True):
        for run, expected in zip(islice(quick_start.payments(), 4), stored):  # those of boosting
            assert run["method"] == expected["method"]
            assert run["cost"] == pytest.approx(expected["cost"], abs=0.1)  # of other releases
