"""The settings of the cost benchmark: data, costs and draws are what their names say."""

import numpy as np
import pytest

from benchmarks.cost.costs import COSTS, draw_tree, tumour
from benchmarks.cost.data import DATA, synthetic
from benchmarks.cost.settings import SETTINGS, Setting

TABLES = ["digits", "wine", "breast-cancer"]


# --- settings ---------------------------------------------------------------------------------


def test_settings_cover_all_data_and_costs():
    assert len({s.name for s in SETTINGS}) == len(SETTINGS) == 21
    assert {s.data for s in SETTINGS} == set(DATA)
    assert {s.cost for s in SETTINGS} == set(COSTS)


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: s.name)
def test_draw_is_what_the_setting_says(setting):
    draw = setting.draw(0)[0]
    n_classes = setting.n_classes
    np.testing.assert_array_equal(np.unique(draw.y_train), np.arange(n_classes))
    for X, y, cost in [draw[:3], draw[3:6]]:
        assert cost.shape == (len(X), n_classes) == (len(y), n_classes)
        assert (cost[np.arange(len(y)), y] == 0).all()
        assert (np.delete(cost.ravel(), np.arange(len(y)) * n_classes + y) > 0).all()
    if DATA[setting.data].n_train:
        assert len(draw.y_train) == DATA[setting.data].n_train
    assert (draw.test_matrices is not None) == setting.costs_differ == (draw.cost_matrix is None)


def flat(draw):
    return np.concatenate([np.ravel(part) for part in draw if part is not None])


@pytest.mark.parametrize("name", ["wine/squared", "overlap5/scaled", "rare2/individual"])
def test_seed_determines_the_draws(name):
    setting = next(s for s in SETTINGS if s.name == name)
    for drawn, again in zip(setting.draw(3), setting.draw(3)):
        np.testing.assert_array_equal(flat(drawn), flat(again))
    different = [*setting.draw(3), *setting.draw(4), *setting.draw(103)]
    assert len(different) == 3 * DATA[setting.data].n_draws
    assert len({draw.X_train.tobytes() for draw in different}) == len(different)
    assert len({draw.random_state for draw in different}) == len(different)


def test_development_has_costs_and_trees_of_its_own():
    for name in ["digits/proportional", "digits/tree", "digits/lognormal"]:
        setting = next(s for s in SETTINGS if s.name == name)
        matrices = [setting.draw(seed)[0].cost_matrix for seed in (0, 1, 100, 101)]
        assert len({matrix.tobytes() for matrix in matrices}) == 4


@pytest.mark.parametrize("name", TABLES)
def test_development_never_sees_what_the_benchmark_tests_on(name):
    def rows(seed, development):
        split = DATA[name].draw(n_train=None, seed=seed, development=development)
        return [{row.tobytes() for row in X} for X in (split.X_train, split.X_test)]

    tested, seen = set(), set()
    for seed in range(10):
        train, test = rows(seed, False)
        assert not train & test
        tested |= test
        train, test = rows(seed, True)
        assert not train & test
        seen |= train | test
    assert tested
    assert not tested & seen


def test_wrong_labels_stand_in_the_training_part_alone():
    kwargs = {"n_train": 2000, "seed": 0, "development": False}
    clean, wrong = (synthetic(10, wrong=share, **kwargs) for share in (0, 0.5))
    np.testing.assert_array_equal(clean.X_train, wrong.X_train)
    np.testing.assert_array_equal(clean.y_test, wrong.y_test)
    assert np.mean(clean.y_train != wrong.y_train) == pytest.approx(0.45, abs=0.04)


# --- costs ------------------------------------------------------------------------------------


def draw_costs(kind, n_classes=6, seed=0):
    rng = np.random.RandomState(seed)
    X, y = rng.normal(size=(120, 4)), np.arange(120) % n_classes
    return X, COSTS[kind](X, y, np.random.RandomState(seed))


def test_random_tree_has_a_leaf_for_every_class():
    for seed in range(20):
        rng = np.random.RandomState(seed)
        paths = draw_tree(rng.permutation(9), rng)
        assert sorted(paths) == list(range(9))
        leaves = sorted(paths.values())
        assert all(b[: len(a)] != a for a, b in zip(leaves, leaves[1:]))
    _, costs = draw_costs("tree")
    matrix = costs.cost_matrix
    np.testing.assert_array_equal(matrix, matrix.T)
    assert matrix[matrix > 0].min() == 2


def test_class_level_costs():
    distance = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    np.testing.assert_array_equal(draw_costs("absolute")[1].cost_matrix, distance)
    np.testing.assert_array_equal(draw_costs("squared")[1].cost_matrix, distance**2)
    off = ~np.eye(60, dtype=bool)
    log = np.log(draw_costs("lognormal", n_classes=60)[1].cost_matrix[off])
    assert log.mean() == pytest.approx(0, abs=0.1)
    assert log.std() == pytest.approx(1.5, abs=0.1)
    proportional = draw_costs("proportional", n_classes=60)[1].cost_matrix[off]
    assert proportional.mean() == pytest.approx(5, abs=0.3)
    assert proportional.max() < 10


def test_scaled_costs_are_multiples_of_the_matrix():
    X, costs = draw_costs("scaled")
    factor = costs.matrices(X)[:, 0, 1] / costs.cost_matrix[0, 1]
    np.testing.assert_allclose(
        costs.matrices(X), factor[:, np.newaxis, np.newaxis] * costs.cost_matrix
    )
    assert np.log(factor).std() == pytest.approx(1, abs=0.05)


def test_individual_costs_follow_the_features():
    X, costs = draw_costs("individual")
    first, second = costs.matrices(X), costs.matrices(X)
    assert (first[:, np.arange(6), np.arange(6)] == 0).all()
    np.testing.assert_array_equal(first[:, 1, 0], first[:, 2, 0])  # the price of predicting 0
    noise = np.log(first[:, 1, 0] / second[:, 1, 0])
    assert noise.std() == pytest.approx(0.3 * np.sqrt(2), abs=0.1)
    assert np.log(first[:, 1, 0]).std() == pytest.approx(1.04, abs=0.1)


def test_large_tumours_are_dear_to_miss():
    X = np.zeros((2, 30))
    X[:, 3] = [100, 2500]
    matrices = tumour(X, np.array([0, 1]), np.random.RandomState(0)).matrices(X)
    np.testing.assert_array_equal(matrices, [[[0, 6], [1, 0]], [[0, 30], [1, 0]]])


def test_known_test_costs_are_those_that_are_billed():
    draw = Setting("breast-cancer", "tumour").draw(0)[0]
    billed = draw.test_matrices[np.arange(len(draw.y_test)), draw.y_test]
    np.testing.assert_array_equal(billed, draw.cost_test)
