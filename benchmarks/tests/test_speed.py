"""The speed benchmark: its loop by hand trains what the estimators train, and a tiny run ends."""

import json
from importlib.metadata import version

import numpy as np
import pytest
import torch
from sklearn.utils import check_random_state

from benchmarks.speed import bench_speed, raw_loop, report
from benchmarks.speed.methods import (
    METHODS,
    RECIPES,
    Case,
    Recipe,
    draw,
    make_network,
    ours,
    reference,
)
from benchmarks.speed.report import CaseTimes
from benchmarks.speed.startup import fresh, measure_pickle
from benchmarks.speed.worker import WARM_UP_ROWS, timed

ROWS = Case(320, (6,), n_classes=4, epochs=3, methods=(), width=8)
IMAGES = Case(64, (3, 16, 16), n_classes=4, epochs=2, methods=())


# ----------------------------------------------------------------------- the loop by hand


def start_bias(recipe, cost_matrix):
    """Where our estimators start a head, of classes of one size: mean costs, or equal shares."""
    if recipe.loss == "one_sided":
        return torch.from_numpy(cost_matrix.mean(axis=0)).float()
    return torch.full([len(cost_matrix)], 1 / len(cost_matrix)).log()


def train_by_hand(case, recipe, X, y, cost_matrix, *, dropout):
    """Losses and predictions of the loop, with the random numbers of an estimator."""
    random_state = check_random_state(0)
    init_seed, train_seed = (random_state.randint(np.iinfo(np.int32).max) for _ in range(2))
    torch.manual_seed(init_seed)
    network = make_network(case, recipe)
    network.dropout = dropout
    with torch.no_grad():
        for head in (network.output, *network.heads):
            head.bias.copy_(start_bias(recipe, cost_matrix))
    torch.manual_seed(train_seed)
    loss = recipe.loss or "cross_entropy"
    X, y, cost_matrix = map(torch.from_numpy, (X, y, cost_matrix.astype(np.float32)))
    losses = raw_loop.train(
        network,
        X,
        y,
        raw_loop.make_loss(loss, cost_matrix, recipe.smoothing),
        epochs=case.epochs,
        batch_size=case.batch_size,
        one_cycle=recipe.loss is None,
    )
    return losses, raw_loop.predict(network, X, cost_matrix, loss=loss).numpy()


@pytest.fixture(params=[ROWS, IMAGES], ids=["rows", "images"])
def case(request):
    return request.param


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda r: f"{r.loss} heads={r.heads}")
def test_the_loop_by_hand_trains_the_network_of_the_estimator(case, recipe):
    X, y, cost_matrix = draw(case)
    cost_matrix /= cost_matrix[cost_matrix > 0].mean()  # the unit of costs inside the estimator

    losses, predicted = train_by_hand(case, recipe, X, y, cost_matrix, dropout=0)
    estimator = ours(case, cost_matrix, recipe=recipe)
    estimator.set_params(**{} if case.images else {"dropout": 0}).fit(X, y)

    assert [epoch["train_loss"] for epoch in estimator.history_] == pytest.approx(losses, rel=1e-4)
    assert (predicted == estimator.predict(X)).mean() > 0.9


def test_dropout_is_that_of_the_estimator():
    X, y, cost_matrix = draw(ROWS)
    default = Recipe()

    losses, _ = train_by_hand(ROWS, default, X, y, cost_matrix, dropout=default.dropout)
    estimator = ours(ROWS, cost_matrix, recipe=default).fit(X, y)

    assert estimator.dropout == default.dropout > 0
    assert estimator.history_[-1]["train_loss"] == pytest.approx(losses[-1], rel=0.05)


@pytest.mark.parametrize("rows", [100, 2000, 20_000])
def test_batches_are_those_that_the_estimators_choose(rows):
    case = Case(rows, (2,), 2, epochs=1, methods=(), width=4, depth=1)
    X, y, cost_matrix = draw(case)
    estimator = ours(case, cost_matrix, recipe=Recipe()).fit(X, y)
    assert case.batch_size == estimator.net_.batch_size


# ----------------------------------------------------------------------------- the methods


@pytest.mark.parametrize("name", METHODS)
def test_every_method_learns_the_drawn_classes(name):
    case = Case(240, (20,), n_classes=3, epochs=10, methods=(), width=16)
    X, y, cost_matrix = draw(case)

    model = METHODS[name](case, cost_matrix)
    model.fit(X, y)

    assert (model.predict(X) == y).mean() > 0.6


def test_the_reference_has_the_same_loss_and_heads():
    assert reference("ours-ce-plain") == "raw-ce-plain"
    assert reference("raw") == "raw"
    assert reference("mlp") == "raw-ce-plain"


@pytest.mark.parametrize("name", bench_speed.CASES)
def test_the_cases_can_be_run(name):
    case = bench_speed.CASES[name]
    assert set(case.methods) <= set(METHODS) | {"allpairs-logistic", "allpairs-boosting"}
    assert case.n_classes <= WARM_UP_ROWS / 2  # every class is met in the warm-up
    assert all(reference(m) in case.methods for m in case.methods)


# -------------------------------------------------------------------------------- the times


def test_a_fresh_process_pays_for_what_it_does():
    assert fresh("sum(range(3_000_000))")["cpu"] > fresh("pass")["cpu"]


def test_what_is_short_is_repeated():
    calls = []
    times = timed(lambda: calls.append(0), at_least=0.1)
    assert len(calls) > 1
    assert 0.1 <= times["wall"] * len(calls) < 1


def test_a_pickle_is_compared_with_all_its_weights():
    sizes = measure_pickle()
    assert sizes["weight_bytes"] == 4 * (100 * 256 + 256 * 256 + 2 * 256 + 2 * (256 * 10 + 10))
    assert sizes["pickle_bytes"] > sizes["weight_bytes"]


# -------------------------------------------------------------------------------- the report


def times(*seconds):
    return [{"cpu": s, "wall": 2 * s, "peak_megabytes": 10 + s} for s in seconds]


@pytest.fixture
def run():
    records = {
        "ours": {"fit": times(1, 4, 9), "predict 1": times(1, 1, 1)},
        "raw": {"fit": times(1, 2, 3), "predict 1": times(2, 2, 2)},
        "mlp": {"fit": times(2, 2, 2)},
    }
    return CaseTimes("medium", bench_speed.CASES["medium"], 1, records)


def test_ratios_are_taken_within_each_turn(run):
    rows = {(row["method"], row["quantity"]): row for row in report.summarize(run)}

    assert rows["ours", "fit"]["cpu_seconds"] == [2.5, 4, 6.5]
    assert rows["ours", "fit"]["wall_seconds"] == [5, 8, 13]
    assert rows["ours", "fit"]["cpu_ratio"] == [1.5, 2, 2.5]
    assert rows["ours", "fit"]["reference"] == "raw"
    assert rows["ours", "predict 1"]["cpu_ratio"][1] == 0.5
    assert rows["ours", "fit"]["peak_megabytes"] == 11
    assert "cpu_ratio" not in rows["mlp", "fit"]  # its reference is not in the run


def test_targets_are_met_or_missed(run):
    verdicts = {(row["what"], row["where"]): row for row in report.ratio_targets([run])}

    missed = verdicts["fit / loop by hand", "medium: ours / raw"]
    assert (missed["measured"][1], missed["limit"], missed["met"]) == (2, 1.1, False)
    assert not verdicts["fit / MLPClassifier", "medium: ours / mlp"]["met"]
    assert len(verdicts) == 2
    faster = run._replace(records={"ours": {"fit": times(1, 1)}, "raw": {"fit": times(1, 2)}})
    assert next(report.ratio_targets([faster]))["met"]
    assert not list(report.ratio_targets([run._replace(threads=2)]))


def test_imports_may_cost_a_little_more_than_torch():
    startup = {"import torch": times(1.0, 2.0), "import auxcst_sklearn": times(1.1, 2.5)}
    verdict = report.import_target(startup)
    assert verdict["measured"][1] == pytest.approx(0.3)
    assert report.pickle_target({"pickle_bytes": 12, "weight_bytes": 10})["met"] is False


# ------------------------------------------------------------------------------ a whole run


@pytest.mark.slow
def test_a_tiny_benchmark_from_end_to_end(monkeypatch, tmp_path, capsys):
    tiny = Case(64, (3,), 2, epochs=1, methods=("ours", "raw"), width=4, predict_rows=(1,))
    monkeypatch.setitem(bench_speed.CASES, "tiny", tiny)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # put back after the run has set it
    out = tmp_path / "results" / "speed.json"

    bench_speed.main(
        ["--cases", "tiny", "--threads", "1", "--repeats", "2", "--no-startup"]
        + ["--out", str(out)]
    )

    result = json.loads(out.read_text())
    rows = {(row["method"], row["quantity"]): row for row in result["rows"]}
    assert set(rows) == {(m, q) for m in ("ours", "raw") for q in ("fit", "predict 1")}
    assert all(row["cpu_seconds"][0] > 0 and row["threads"] == 1 for row in rows.values())
    assert rows["ours", "fit"]["peak_megabytes"] > rows["raw", "fit"]["peak_megabytes"] > 50
    assert rows["raw", "fit"]["cpu_ratio"] == [1, 1, 1]
    assert [t["where"] for t in result["targets"]] == ["tiny: ours / raw"]
    assert result["versions"]["torch"] == version("torch")
    assert result["cases"][0]["rows"] == 64
    assert "tiny, threads: 1" in (printed := capsys.readouterr().out)
    assert "fit / loop by hand" in printed


def test_options():
    quick = bench_speed.parse_options(["--quick"])
    assert (quick.repeats, quick.threads, quick.out) == (2, ["1"], None)
    assert all(case.rows <= 20_000 for _, case, _ in bench_speed.choose(quick))
    options = bench_speed.parse_options(["--threads", "3", "all", "--methods", "ours", "raw"])
    assert options.repeats == 5
    chosen = bench_speed.choose(options)
    assert all(set(case.methods) <= {"ours", "raw"} for _, case, _ in chosen)
    assert sum(threads == 3 for _, _, threads in chosen) == len(bench_speed.CASES)
