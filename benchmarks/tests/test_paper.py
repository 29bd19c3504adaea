"""The experiments on fully connected networks: what is drawn, one run, and what is chosen."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.paper import dense, tuning
from benchmarks.paper.dense import run
from benchmarks.paper.draws import draw
from benchmarks.tests.tiny_paper import TINY, finished

# --- what a seed draws -----------------------------------------------------------------------


def test_all_methods_meet_the_same_draw(data):
    reference = draw(TINY, data)
    others = [
        replace(TINY, method="csae", alpha=None),
        replace(TINY, method="blind", loss="cross_entropy"),
        replace(TINY, depth=5, width=8, epochs=7, alpha=1.0),
    ]
    for other in others:
        for drawn, expected in zip(draw(other, data), reference):
            np.testing.assert_array_equal(drawn, expected)
    other = draw(replace(TINY, seed=1), data)
    assert not np.array_equal(other.X_train, reference.X_train)
    assert not np.array_equal(other.cost_matrix, reference.cost_matrix)


def test_draw_takes_a_stratified_part_of_the_training_set(data):
    drawn = draw(TINY, data)
    np.testing.assert_array_equal(np.bincount(drawn.y_train), np.full(10, 10))
    np.testing.assert_array_equal(drawn.X_test, data.X[200:])
    np.testing.assert_array_equal(drawn.y_test, data.y[200:])
    whole = draw(replace(TINY, train_size=None), data)
    np.testing.assert_array_equal(whole.X_train, data.X[:200])


def test_only_the_training_set_is_thinned_out(data):
    drawn = draw(replace(TINY, dataset="mnist-imb"), data)
    assert sorted(np.bincount(drawn.y_train)) == [3] * 4 + [10] * 6
    np.testing.assert_array_equal(drawn.y_test, data.y[200:])
    balanced = draw(TINY, data)
    assert {row.tobytes() for row in drawn.X_train} < {row.tobytes() for row in balanced.X_train}


def test_costs_follow_the_class_counts_of_the_training_set(data):
    drawn = draw(replace(TINY, dataset="mnist-imb"), data)
    count = np.bincount(drawn.y_train)
    share = drawn.cost_matrix / (10 * count / count[:, None])
    assert (np.diag(share) == 0).all()
    off = share[~np.eye(10, dtype=bool)]
    assert (off > 0).all()
    assert (off < 1).all()
    assert np.ptp(off) > 0.9
    balanced = draw(TINY, data)
    np.testing.assert_allclose(share, balanced.cost_matrix / 10)


def test_a_tuning_run_never_meets_the_test_part(data):
    whole, drawn = (draw(replace(TINY, train_size=None, tuning=t), data) for t in (False, True))
    assert (len(drawn.X_train), len(drawn.X_test)) == (166, 34)
    rows = {row.tobytes() for row in np.concatenate([drawn.X_train, drawn.X_test])}
    assert rows == {row.tobytes() for row in whole.X_train}
    np.testing.assert_array_equal(drawn.cost_matrix, whole.cost_matrix)
    assert np.bincount(drawn.y_test).min() >= 3


@pytest.mark.parametrize(
    ("train_size", "message"),
    [
        (201, "--train-size is 201; expected 1 to 200"),
        (0, "--train-size is 0; expected 1 to 200"),
        (5, "--train-size 5 leaves some of the 10 classes"),
    ],
)
def test_impossible_train_size_is_named(data, train_size, message):
    with pytest.raises(ValueError, match=message):
        draw(replace(TINY, train_size=train_size), data)


# --- one run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "configuration",
    [
        TINY,
        replace(TINY, method="csae", alpha=None),
        replace(TINY, depth=1, alpha=None),
        replace(TINY, early_stopping=True),
    ],
)
def test_run_tests_what_it_trained(data, configuration):
    record = run(replace(configuration, curves=True), data, "cpu")
    drawn = draw(configuration, data)
    estimator = dense.make_estimator(configuration, drawn.cost_matrix, "cpu")
    y_pred = estimator.fit(drawn.X_train, drawn.y_train).predict(drawn.X_test)
    assert record["test_cost"] == pytest.approx(drawn.cost_matrix[drawn.y_test, y_pred].mean())
    constant = drawn.cost_matrix[drawn.y_test].mean(axis=0).min()
    assert record["savings"] == pytest.approx(1 - record["test_cost"] / constant)
    assert record["accuracy"] == pytest.approx(np.mean(drawn.y_test == y_pred))
    assert list(record["layer_losses"]) == [*estimator.hidden_layers_, "output"]
    last = estimator.history_[-1]["train_loss_output"]
    assert record["layer_losses"]["output"][-1] == pytest.approx(last, abs=1e-4)


def test_blind_and_bayes_share_the_network_and_differ_in_the_decision(data):
    bayes = replace(TINY, loss="cross_entropy", alpha=0.0, epochs=20, curves=True)
    of_bayes, of_blind = (run(c, data, "cpu") for c in (bayes, replace(bayes, method="blind")))
    assert of_blind["layer_losses"] == of_bayes["layer_losses"]
    assert of_blind["test_cost"] != of_bayes["test_cost"]


def test_a_network_that_diverges_is_reported(data):
    diverging = replace(TINY, alpha=1e9, loss="squared", learning_rate=0.05)
    assert run(diverging, data, "cpu") == {"diverged": True}


# --- what is chosen ---------------------------------------------------------------------------


@pytest.fixture
def candidates():
    longer = replace(TINY, epochs=20)
    return {"a": [replace(longer, learning_rate=rate) for rate in (1e-9, 0.05, 1e9)], "b": [TINY]}


def test_the_candidate_of_least_held_out_cost_is_chosen(options, candidates, tmp_path):
    chosen = tuning.choose(candidates, options)
    identities, results = zip(*finished(tmp_path))
    assert {(identity["tuning"], identity["seed"]) for identity in identities} == {(True, 100)}
    costs = [result.get("held_out_cost", np.inf) for result in results]
    assert costs[2] == np.inf
    assert chosen == {"a": candidates["a"][np.argmin(costs)], "b": TINY}
    assert not any("test_cost" in result for result in results)

    options.seeds = [3, 4]
    rows = tuning.run_seeds(chosen, options)
    assert [(name, row["seed"], row["tuning"]) for name, row in rows] == [
        (name, seed, False) for seed in (3, 4) for name in "ab"
    ]


def test_nothing_is_chosen_on_the_test_part(data, candidates):
    y = data.y.copy()
    y[200:] = (y[200:] + 1) % 10
    other = data._replace(y=y)
    tuned = replace(candidates["a"][1], tuning=True)
    of_both = [run(tuned, d, "cpu") for d in (data, other)]
    for result in of_both:
        del result["seconds"]
    assert of_both[0] == of_both[1]
    stopped = replace(TINY, width=16, epochs=40, loss="one_sided", early_stopping=True)
    one, two = (run(stopped, d, "cpu") for d in (data, other))
    assert one["test_cost"] != two["test_cost"]


def test_runs_that_diverged_are_left_out(options, candidates, capsys):
    options.seeds = [0]
    rows = tuning.run_seeds({"a": candidates["a"][2], "b": TINY}, options)
    assert [name for name, _ in rows] == ["b"]
    assert "1 of 2 runs diverged" in capsys.readouterr().out
