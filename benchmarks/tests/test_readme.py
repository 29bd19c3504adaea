"""The numbers of the README and of the pages are the numbers of the results."""

from collections import defaultdict
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice

import numpy as np
import pytest
import sklearn

from benchmarks import first_page, quick_start
from benchmarks.common.json_files import from_json
from benchmarks.common.ledger import Ledger
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


def test_losses_that_learn_labels():
    row = first_page.labels_or_costs()
    low, high = row.intervals.pop("all")
    ratio = f"{row.ratios['all']:.2f} times"
    assert f"{ratio} (95 % interval {low:.2f}-{high:.2f}) the cost" in words()
    page = words("docs/guide/auxcst.rst")
    assert f"{ratio} the cost of the four that learn costs (95 % interval {low:.2f}-" in page
    clear = [name for name, (_, high) in row.intervals.items() if high < 1]
    assert clear == ["loss: squared, alpha 0.2"]
    assert "only the squared loss is clearly dearer" in page


def runs_of(name):
    return from_json((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["runs"]


def test_one_network_instead_of_five():
    found = {(run["method"], run["set"]): run for run in runs_of("tables_ablation_0")}
    one, five = (
        [found[method, name] for method_, name in found if method_ == method]
        for method in ("ours: one network", "ours: default")
    )
    ratio = np.exp(np.mean([np.log(a["test_cost"] / b["test_cost"]) for a, b in zip(one, five)]))
    share = np.sum([a["cpu_seconds"] for a in one]) / np.sum([b["cpu_seconds"] for b in five])
    assert share == pytest.approx(1 / 3, abs=0.05)
    assert f"the cost is {ratio:.2f} times as high, in a third" in words("docs/benchmarks.rst")


def test_a_review_desk():
    costs = defaultdict(dict)
    for run in runs_of("desk"):
        costs[run["set"], run["seed"]][run["method"]] = run["cost"]
    assert len(costs) == 12
    assert all(min(found, key=found.get) == "decide" for found in costs.values())
    assert "lowest cost in all twelve splits" in words("docs/benchmarks.rst")


def test_images():
    of_set = defaultdict(list)
    for run in runs_of("images"):
        of_set[run["set"], run["rows"], run["method"]].append(run)

    def mean(method, measure="cost"):
        return np.mean([run[measure] for run in of_set[(*data, method)]])

    def ratio(measure="cost"):
        return mean("ours", measure) / mean("plain", measure)

    page, guide = words("docs/benchmarks.rst"), words("docs/guide/images.rst")
    data = "cifar10", 2000
    assert ratio() == pytest.approx(0.93, abs=0.005)
    assert ratio("cpu_seconds") == pytest.approx(1.06, abs=0.005)
    assert "the default costs 0.93 of plain torch, in 1.06 of its time" in page
    assert "0.93 as much on CIFAR-10" in guide
    for ours, plain in zip(*(of_set[(*data, method)] for method in ("ours", "plain"))):
        assert ours["seed"] == plain["seed"]
        assert ours["cost"] < plain["cost"]
    data = "caltech101-39", 1200
    assert [ratio(), ratio("log_loss")] == pytest.approx([0.98, 1.04], abs=0.005)
    assert ratio("cpu_seconds") == pytest.approx(0.275, abs=0.005)
    assert "the default costs 0.98 of plain torch. Its log loss is 1.04 times as high" in page
    assert "0.98 as much on Caltech-101" in guide
    assert "in 0.28 of its time" in page
    assert "in 0.28 of the time" in guide
    assert mean("squeezenet") / mean("ours") == pytest.approx(0.44, abs=0.005)
    assert "cost 0.44 of the default on Caltech-101" in page
    data = "mnist", 1000
    assert mean("ours") - mean("plain") == pytest.approx(0.007, abs=0.0005)
    errors = [run["error"] for method in ("ours", "plain") for run in of_set[(*data, method)]]
    assert np.hypot.reduce(errors) / 3 == pytest.approx(0.008, abs=0.0005)
    assert "0.007 higher (standard error 0.008)" in page


def test_a_service_with_onnx():
    services = from_json((RESULTS / "serving.json").read_text(encoding="utf-8"))["services"]
    onnx, pickle = services["onnxruntime"], services["a pickle"]
    assert onnx["megabytes"] / pickle["megabytes"] == pytest.approx(1 / 6, abs=0.02)
    assert onnx["wall"] / pickle["wall"] == pytest.approx(1 / 20, abs=0.01)
    page = words("docs/benchmarks.rst")
    assert "a sixth of the memory" in page
    assert "a twentieth of the time" in page


def test_two_processes():
    rows = from_json((RESULTS / "distributed.json").read_text(encoding="utf-8"))["rows"]
    wall = {(row["case"].split(":")[0], row["kind"]): row["wall"] for row in rows}
    wide, small = (
        wall[name, "two processes"] / wall[name, "one process"] for name in ("wide", "small")
    )
    assert wide == pytest.approx(3 / 4, abs=0.05)
    assert small > 1
    assert "three quarters of the time with 1,024 neurons" in words("docs/scale.rst")


def test_the_rule_takes_less_than_half_of_the_time():
    for name in ("tables_wide", "tables_held_out"):
        seconds = defaultdict(list)
        for run in runs_of(name):
            seconds[run["method"]].append(run["cpu_seconds"])
        assert np.mean(seconds["boosting, isotonic"]) < np.mean(seconds["ours: ensemble"]) / 2
    assert "less than half of the time of the ensemble" in words("docs/guide/troubleshooting.rst")


def test_the_hours_of_the_experiments():
    hours = sum(
        result.get("seconds", 0) / 3600
        for path in (RESULTS / "paper").glob("*/runs.jsonl")
        for _, result in Ledger(path).runs.values()
    )
    assert f"about {hours:.0f} hours of one core" in words("docs/experiments.rst")


def test_heads_hardly_matter_for_tables():
    (line,) = [line for line in MAKE.ablation() if line[0] == "auxiliary heads"]
    ratio, error = line[1].rstrip(")").split(" (")
    assert f"the mean cost is {ratio} times as high (standard error {error})" in words()
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
