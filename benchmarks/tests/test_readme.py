"""The numbers of the README and of the pages are the numbers of the results."""

from collections import defaultdict
from importlib.util import module_from_spec, spec_from_file_location
from itertools import islice, product

import numpy as np
import pytest
import sklearn

from benchmarks import first_page, quick_start
from benchmarks.common.json_files import from_json
from benchmarks.common.ledger import Ledger
from benchmarks.cost import bench_deep_tables
from benchmarks.cost.bench_extreme import DATA, KINDS, divided
from benchmarks.cost.ranks import geometric_error, geometric_mean
from benchmarks.cost.tables_keel import HELD_OUT
from benchmarks.cost.tables_results import by_cell, by_method
from benchmarks.paper import verdicts
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
        (0, "best of five others", "the cost of the best of five on rare classes"),
        (1, "gradient boosting", "gradient boosting on the sixteen tables"),
    ],
)
def test_the_network_alone(place, rival, of):
    row = first_page.network_alone()[place]
    low, high = row.intervals[rival]
    assert f"{row.ratios[rival]:.2f} ({low:.2f}-{high:.2f}) of {of}" in words("docs/models.rst")


def test_a_tenth_of_the_time():
    claims = {
        case["model"]: case["cpu_seconds"]
        for case in from_json((RESULTS / "growth.json").read_text(encoding="utf-8"))["cases"]
        if (case["kind"], case["rows"]) == ("claims", 1_000_000)
    }
    share = claims["boosting, early stop"] / claims["ours: ensemble"]
    assert share == pytest.approx(0.1, abs=0.01)
    assert "a tenth of the time" in words("docs/models.rst")


def test_losses_that_learn_labels():
    row = first_page.labels_or_costs()
    low, high = row.intervals.pop("all")
    page = words("docs/guide/auxcst.rst")
    ratio = f"{row.ratios['all']:.2f} times the cost of the four that learn costs"
    assert f"{ratio} (95 % interval {low:.2f}-{high:.2f})" in page
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
    assert [ratio(), ratio("cpu_seconds")] == pytest.approx([0.89, 1.05], abs=0.005)
    assert "11 % cheaper than plain torch on each of three seeds, in 5 % more time" in page
    assert "11 % cheaper on CIFAR-10" in guide
    for ours, plain in zip(*(of_set[(*data, method)] for method in ("ours", "plain"))):
        assert ours["seed"] == plain["seed"]
        assert ours["cost"] < plain["cost"]
    assert f"costs {mean('squeezenet'):.2f} and this network {mean('ours'):.2f}" in guide
    assert mean("squeezenet") / mean("ours") == pytest.approx(1.16, abs=0.005)
    assert "16 % dearer on CIFAR-10" in page
    data = "caltech101-39", 1200
    assert [ratio(), ratio("log_loss")] == pytest.approx([0.88, 0.87], abs=0.005)
    assert ratio("cpu_seconds") == pytest.approx(0.28, abs=0.005)
    assert "12 % cheaper, with a log loss that is 13 % lower, in 28 % of the time" in page
    assert "in 28 % of the time" in guide
    assert mean("squeezenet") / mean("ours") == pytest.approx(0.49, abs=0.005)
    assert "51 % cheaper than the default on Caltech-101" in page
    assert f"costs {mean('squeezenet'):.2f} and this network {mean('ours'):.2f}" in guide
    data = "mnist", 1000
    assert mean("ours") - mean("plain") == pytest.approx(0.005, abs=0.0005)
    errors = [run["error"] for method in ("ours", "plain") for run in of_set[(*data, method)]]
    assert np.hypot.reduce(errors) / 3 == pytest.approx(0.008, abs=0.0005)
    assert "0.005 higher (standard error 0.008)" in page


def test_services():
    services = from_json((RESULTS / "serving.json").read_text(encoding="utf-8"))["services"]
    page = words("docs/benchmarks.rst")
    texts = {
        "onnxruntime": "{megabytes} MB and starts in {wall:.1f} s",
        "examples/serve.py": "{megabytes} MB and starts in {wall:.1f} s",
        "a pickle": "{megabytes} MB and {wall:.1f} s",
    }
    for name, text in texts.items():
        assert text.format(**services[name]) in page


def test_where_heads_pay_with_the_training_of_the_paper():
    judged = verdicts.verdicts()["AuxDNN is cheaper than NaiveDNN at every depth"]
    places = {(j.comparison.where, j.comparison.data) for j in judged if j.verdict == "holds"}
    assert ("ReLU, 5-8 layers", "mnist") in places
    assert "heads lower the cost of perceptrons with five to eight layers on MNIST" in words()


def mean_costs(folder):
    """Mean costs on MNIST by depth and alpha."""
    runs, shape = verdicts.Experiment(folder), ([3, 5, 8], [0.0, 0.2, 0.6, 1.0])
    costs = [
        [run["test_cost"] for run in runs("mnist", "aux", *network).values()]
        for network in product(*shape)
    ]
    return np.mean(costs, axis=1).reshape(3, 4)


def test_two_starts_of_sigmoid_layers():
    torch, authors = map(mean_costs, ("sigmoid_sgd", "sigmoid_authors"))
    assert (authors < torch + 1e-3).all()
    three, five, eight = (f"{100 - 100 * row[2] / row[0]:.0f} %" for row in authors)
    page = words("docs/experiments.rst")
    assert f"five layers cost {authors[1, 0]:.3f} instead of {torch[1, 0]:.3f}" in page
    assert five == eight
    assert f"by {three} with three layers, and by {five} with five and eight" in page


def test_networks_for_tables():
    runs, rival, numbers = runs_of("deep_tables"), "RealMLP, five folds", {}
    for name, ours in (("network", "ours: default"), ("ensemble", "ours: ensemble")):
        cost, time = (
            bench_deep_tables.ratios(runs, ours, rival, measure)
            for measure in ("test_cost", "cpu_seconds")
        )
        unseen = np.array([ratio for (table, _), ratio in cost.items() if table in HELD_OUT])
        of_all = np.array([*cost.values()])
        share = f"{100 * geometric_mean(np.array([*time.values()])):.0f} %"
        parts = (f"{geometric_mean(of):.2f} ({geometric_error(of):.2f})" for of in (of_all, unseen))
        numbers[name] = *parts, share, len(of_all), len(unseen)
    (of_all, unseen, share, n_all, n_unseen), ensemble = numbers.values()
    page = words("docs/benchmarks.rst")
    assert f"ran on {n_all} tables" in page
    assert f"network costs {of_all} times as much as RealMLP on five folds, in {share} of" in page
    assert f"and the ensemble {ensemble[0]} times as much, in {ensemble[2]}." in page
    assert f"{n_unseen} tables by which no default was chosen, {unseen} and {ensemble[1]}." in page
    assert f"{n_all} tables, it costs {of_all[:4]} times as much" in words("README.rst")


def test_the_ten_tables_without_texture():
    cells = by_cell([run for run in runs_of("tables_held_out") if run["set"] != "texture"])
    ensemble, network, *_ = (
        "{geometric_mean:.2f} ({standard_error:.2f})".format(**row) for row in by_method(cells)
    )
    text = f"the ensemble has {ensemble} and the network {network}:"
    assert text in words("docs/benchmarks.rst")


@pytest.mark.skipif(not (RESULTS / "heads.json").is_file(), reason="heads were not measured yet")
def test_what_heads_save():
    _, *lines = ((line[0], line[4].split(" ")[0]) for line in MAKE.heads())
    saved = {name: 100 - 100 * float(ratio) for name, ratio in lines if ratio}
    page = words()
    for text, found in {
        "{} and {} % cheaper, but only": ("digits, {} convolutions", (8, 12)),
        "but only {} and {} % with batch": ("digits, {} convolutions, batch norm", (8, 12)),
    }.items():
        name, depths = found
        assert text.format(*(f"{saved[name.format(depth)]:.0f}" for depth in depths)) in page


def test_how_many_scripts_the_gallery_has():
    scripts = [*(ROOT / "examples" / "gallery").glob("plot_*.py")]
    assert len(scripts) == 20
    assert "Twenty short scripts" in words("examples/README.rst")


def test_two_processes():
    rows = from_json((RESULTS / "distributed.json").read_text(encoding="utf-8"))["rows"]
    wall = {(row["case"].split(":")[0], row["kind"]): row["wall"] for row in rows}
    wide, small = (
        wall[name, "two processes"] / wall[name, "one process"] for name in ("wide", "small")
    )
    assert wide == pytest.approx(3 / 4, abs=0.05)
    assert small > 1
    assert "three quarters of the time with 1,024 neurons" in words("docs/scale.rst")


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
    page = words("docs/guide/auxcst.rst")
    assert f"{ratio} times as high (standard error {error}" in page


def test_heads_in_averaged_networks():
    cost = {name: f"{mean:.2f}" for name, (mean, _) in quick_start.summary("digits").items()}
    assert cost["3 layers"] < min(cost["8 layers"], cost["8 layers, without heads"])
    page = words("docs/guide/pipelines.rst")
    assert f"a lower cost still, {cost['one network, 3 layers']} on average" in page


def rows(name):
    return [line for line in MAKE.rst_table(name) if len(line) > 2]


def test_networks_on_series():
    found = {name: (cost.rstrip(")").split(" ("), cells) for name, cost, *cells in rows("series")}
    page = words("docs/benchmarks.rst")
    (cost, error), (*_, fits) = found["MiniROCKET, logistic regression"]
    text = "Over {} fits, MiniROCKET cost {:.2f} times as much as the default on average"
    assert text.format(fits, float(cost)) + f" (standard error {float(error):.2f})" in page
    (cost, error), (*_, seconds, _) = found["plain torch"]
    assert f"cost {float(cost):.2f} times as much ({float(error):.2f})" in page
    assert float(seconds) < 0.5
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
    most = max(divided(runs, kind, data, 10_000).mean() for kind, data in product(KINDS, DATA))
    assert f"cost at most {most:.2f} times as much as the best constant decision" in page


def known_costs(line):
    return [float(cell) for cell in line[3:] if cell != "-"]


def test_rare_classes():
    low, high = first_page.rows()[0].intervals["best of five others"]
    assert f"(95 % interval {low:.2f} to {high:.2f})" in words("docs/benchmarks.rst")


def test_what_expected_cost_saves():
    texts = {
        "most probable class": "saves EUR {:.2f} a payment (95 % interval {:.2f} to {:.2f}) over",
        "tuned threshold": "EUR {:.2f} ({:.2f} to {:.2f}) over a tuned threshold",
    }
    for rival, text in texts.items():
        saved = quick_start.difference(f"boosting, {rival}", "boosting, expected cost")
        assert text.format(*saved) in words()
    saved = quick_start.difference("boosting, expected cost", "network")
    assert "The network saves EUR {:.2f} ({:.2f} to {:.2f}) more".format(*saved) in words()


def test_the_ensemble_and_gradient_boosting():
    row = first_page.rows()[1]
    low, high = (100 - 100 * bound for bound in row.intervals["gradient boosting"])
    saved = 100 - 100 * row.ratios["gradient boosting"]
    text = f"{saved:.0f} % cheaper than the best gradient boosting on sixteen tables"
    assert f"{text} (95 % interval {high:.0f} to {low:.0f} %)" in words()


@pytest.mark.parametrize("rival", ["network without heads", "ensemble"])
def test_what_does_not_differ_from_the_network(rival):
    _, low, high = quick_start.difference("network", rival)
    assert low < 0 < high


@pytest.mark.slow
def test_the_rivals_of_the_quick_start_run():
    stored = from_json((RESULTS / "quick_start.json").read_text(encoding="utf-8"))["payments"]
    with sklearn.config_context(enable_metadata_routing=True):
        for run, expected in zip(islice(quick_start.payments(), 4), stored):  # those of boosting
            assert run["method"] == expected["method"]
            assert run["cost"] == pytest.approx(expected["cost"], abs=0.1)  # of other releases
