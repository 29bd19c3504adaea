"""The benchmark of known costs, at sizes of no interest."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from benchmarks.cost import bench_fraud
from benchmarks.cost.fraud_data import ALERT, GENERATORS, draw
from benchmarks.cost.fraud_methods import DEFAULT, METHODS, FraudMethod, bayes, constant_cost
from benchmarks.cost.fraud_results import by_generator, by_method


@pytest.mark.parametrize("generator", GENERATORS)
def test_a_draw_has_rare_fraud_whose_amount_is_known(generator):
    drawn = draw(generator, 0, 3000, 2000)

    rate = np.concatenate([drawn.y_train, drawn.y_test]).mean()
    assert 0.005 < rate < 0.017
    amount = drawn.cost_test[:, 1, 0]
    assert np.corrcoef(np.log(amount), drawn.X_test[:, -1])[0, 1] == pytest.approx(1)
    np.testing.assert_array_equal(drawn.cost_test[:, :, 1], ALERT)
    np.testing.assert_array_equal(drawn.cost_test[:, 0, 0], 0)
    np.testing.assert_array_equal(drawn.X_train, draw(generator, 0, 3000, 2000).X_train)
    assert not np.array_equal(drawn.X_train, draw(generator, 1, 3000, 2000).X_train)


def test_amounts_go_with_fraud_in_one_generator():
    def gap(generator):
        drawn = draw(generator, 0, 8000, 10)
        return np.diff([drawn.X_train[drawn.y_train == k, -1].mean() for k in (0, 1)])[0]

    assert gap("large amounts") > 0.4
    assert abs(gap("overlap")) < 0.4


def test_what_a_method_pays_and_what_a_constant_pays():
    drawn = draw("large amounts", 0, 1500, 1000)
    known = FraudMethod(lambda seed: bayes(LogisticRegression(max_iter=1000)))
    amount, fraud = drawn.cost_test[:, 1, 0], drawn.y_test == 1

    alert = known.decide(drawn)[0] == 1
    found = known.run(drawn)

    p = LogisticRegression(max_iter=1000).fit(drawn.X_train, drawn.y_train)
    np.testing.assert_array_equal(alert, p.predict_proba(drawn.X_test)[:, 1] * amount > ALERT)
    assert found["test_cost"] == pytest.approx(np.where(alert, ALERT, amount * fraud).mean())
    assert found["alert_rate"] == alert.mean()
    assert found["recall"] == alert[fraud].mean()
    assert constant_cost(drawn) in (pytest.approx(ALERT), pytest.approx((amount * fraud).mean()))


def test_class_means_are_those_of_past_rows():
    drawn = draw("large amounts", 0, 1500, 1000)
    means = FraudMethod(lambda seed: bayes(LogisticRegression(max_iter=1000)), known_costs=False)
    lost = drawn.cost_train[drawn.y_train == 1, 1, 0].mean()

    found, _ = means.decide(drawn)

    p = LogisticRegression(max_iter=1000).fit(drawn.X_train, drawn.y_train)
    np.testing.assert_array_equal(found, p.predict_proba(drawn.X_test)[:, 1] * lost > ALERT)


def test_ratios_are_to_the_best_rival_of_a_generator():
    cost = {DEFAULT: (1, 3), "a": (2, 4), "b": (5, 3)}
    numbers = {"constant_cost": 6, "alert_rate": 0.1, "recall": 0.5, "cpu_seconds": 1}
    runs = [
        {"generator": "g", "seed": seed, "method": method, "test_cost": value, **numbers}
        for method, values in cost.items()
        for seed, value in enumerate(values)
    ]

    rows = {row["method"]: row for row in by_generator(runs)}

    assert {row["best_rival"] for row in rows.values()} == {"a"}
    assert [rows[m]["ratio"] for m in cost] == pytest.approx([2 / 3, 1, 4 / 3])
    assert rows["a"]["ratio_error"] == 0
    assert rows["b"]["to_constant"] == pytest.approx(4 / 6)
    assert by_method(list(rows.values()))[0]["worst_generator"] == "g"


def test_the_benchmark_writes_numbers_and_tables(tmp_path):
    quick = ["logistic", "boosting, class means"]
    sizes = ["--n-train", "600", "--n-test", "1500", "--seeds", "100", "101", "--n-jobs", "1"]
    folders = ["--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]

    for _ in range(2):  # the second time runs nothing anew
        bench_fraud.main([*sizes, "--methods", *quick, *folders])

    content = json.loads((tmp_path / "fraud.json").read_text())
    assert len(content["runs"]) == len(GENERATORS) * 2 * len(quick)
    assert len(list((tmp_path / "runs").iterdir())) == len(content["runs"])
    assert content["seeds"] == [100, 101]
    assert "scikit-learn" in content["versions"]
    text = (tmp_path / "fraud.rst").read_text()
    assert all(f"\n{name.capitalize()}\n---" in text for name in GENERATORS)


def test_the_network_decides_by_known_costs():
    drawn = draw("overlap", 0, 600, 600)
    method = FraudMethod(
        lambda seed: METHODS[DEFAULT].make(seed).set_params(width=8, depth=2, max_epochs=2)
    )
    model = method.make(drawn.random_state).fit(drawn.X_train, drawn.y_train, cost=drawn.cost_train)

    found, _ = method.decide(drawn)

    p = model.predict_proba(drawn.X_test)[:, 1]
    np.testing.assert_array_equal(found == 1, p * drawn.cost_test[:, 1, 0] > ALERT)
