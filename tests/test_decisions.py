"""Assignments under limits against every assignment there is; prices; class frequencies."""

import itertools

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from auxcst_sklearn.decisions import adjust_prior, assign, capacity_prices, estimate_prior

N_ROWS = {2: 7, 3: 6, 4: 5, 5: 5, 6: 4}


def least_total(cost, limit):
    """The least cost of all assignments within the limits; infinite if there is none."""
    n, n_decisions = cost.shape
    every = np.array(list(itertools.product(range(n_decisions), repeat=n)))
    counts = (every[:, :, None] == np.arange(n_decisions)).sum(axis=1)
    totals = cost[np.arange(n), every].sum(axis=1)
    return totals[(counts <= limit).all(axis=1)].min(initial=np.inf)


def draw(rng, n_decisions):
    """Costs of any size or with ties, and limits of some decisions, perhaps infeasible."""
    n = int(rng.integers(1, N_ROWS[n_decisions] + 1))
    cost = [
        rng.normal(size=(n, n_decisions)) * 10.0 ** rng.integers(-6, 7),
        rng.integers(0, 4, size=(n, n_decisions)),
        np.tile(rng.integers(0, 3, size=n_decisions), (n, 1)),
        rng.normal(size=(n, n_decisions)) + 1e6,
    ][rng.integers(4)].astype(float)
    limited = rng.permutation(n_decisions)[: rng.integers(0, n_decisions + 1)]
    return cost, {int(j): int(rng.integers(0, n + 1)) for j in limited}


@pytest.mark.parametrize("n_decisions", [2, 3, 4, 5, 6])
def test_no_assignment_within_the_limits_costs_less(n_decisions):
    rng = np.random.default_rng(n_decisions)
    infeasible = 0
    for _ in range(60):
        cost, capacity = draw(rng, n_decisions)
        limit = np.array([capacity.get(j, np.inf) for j in range(n_decisions)])
        least = least_total(cost, limit)
        if least == np.inf:
            infeasible += 1
            with pytest.raises(ValueError, match="capacity limits all decisions"):
                assign(cost, capacity)
            continue

        found = assign(cost, capacity)
        prices = capacity_prices(cost, capacity)

        assert (np.bincount(found, minlength=n_decisions) <= limit).all()
        tolerance = {"abs": 1e-9 * np.abs(cost).max() * len(cost)}
        total = cost[np.arange(len(cost)), found].sum()
        assert total == pytest.approx(least, **tolerance), (cost.tolist(), capacity)
        for j in capacity:
            more = least_total(cost, limit + (np.arange(n_decisions) == j))
            assert prices[j] == pytest.approx(least - more, **tolerance), (cost.tolist(), capacity)
    assert infeasible < 30


def test_many_rows_cost_what_the_linear_programme_of_all_does():
    """Three limits on rows with few different costs, so that most prices leave ties."""
    optimize, sparse = pytest.importorskip("scipy.optimize"), pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    for levels in (3, 50, 10**6):
        cost = rng.integers(0, levels, size=(5000, 4)).astype(float)
        each = sparse.kron(sparse.eye(5000), np.ones((1, 4)), format="csr")
        some = sparse.kron(np.ones((1, 5000)), sparse.eye(4, format="csr")[1:]).tocsr()
        least = optimize.linprog(
            cost.ravel(), A_ub=some, b_ub=[300, 20, 1000], A_eq=each, b_eq=np.ones(5000)
        ).fun

        found = assign(cost, {1: 300, 2: 20, 3: 1000})

        assert (np.bincount(found)[1:] <= [300, 20, 1000]).all()
        assert cost[np.arange(5000), found].sum() == pytest.approx(least, rel=1e-9)


def test_of_equal_rows_the_first_ones_get_the_places():
    one = assign(np.tile([5.0, 1.0], (6, 1)), {1: 2})
    two = assign(np.tile([5.0, 1.0, 2.0], (6, 1)), {1: 1, 2: 2})

    np.testing.assert_array_equal(one, [1, 1, 0, 0, 0, 0])
    assert sorted(two[:3]) == [1, 2, 2]
    np.testing.assert_array_equal(two[3:], 0)


@pytest.mark.parametrize(("share", "places"), [(0.0, 0), (0.02, 1), (0.29, 29), (1.0, 100)])
def test_a_float_is_a_share_rounded_down(share, places):
    cost = np.tile([5.0, 1.0], (100, 1))
    n = 99 if share == 0.02 else 100

    assert assign(cost[:n], {"b": share}, decisions=["a", "b"]).sum() == places


def test_limits_of_one_decision_less_than_all_are_always_feasible():
    np.testing.assert_array_equal(assign([[1.0, 0.0], [1.0, 0.0]], {1: 0}), [0, 0])


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ({"b": 1, "a": 1}, r"to \{'b': 1, 'a': 1\}, which leaves 1 of 3 samples"),
        ({"c": 1}, "capacity names 'c'; expected some of .'a', 'b'."),
        ({"b": -1}, r"capacity\['b'\]=-1"),
        ({"b": 1.5}, r"capacity\['b'\]=1.5"),
        ({"b": True}, r"capacity\['b'\]=True"),
        ({"b": float("nan")}, r"capacity\['b'\]=nan"),
        ({"b": "3"}, r"capacity\['b'\]='3'"),
    ],
)
def test_limits_that_cannot_be_kept_are_named(capacity, message):
    for function in (assign, capacity_prices):
        with pytest.raises(ValueError, match=message):
            function(np.ones((3, 2)), capacity, decisions=["a", "b"])


def test_costs_and_labels_must_fit():
    with pytest.raises(TypeError, match="expected a mapping"):
        assign(np.ones((3, 2)), [1])
    with pytest.raises(ValueError, match="names 3 columns, but expected_cost has 2"):
        assign(np.ones((3, 2)), {}, decisions=["a", "b", "c"])
    with pytest.raises(ValueError, match="expected_cost contains NaN"):
        assign([[1.0, np.nan]], {})


def test_the_costs_of_the_caller_stay_as_they_are():
    cost = np.random.default_rng(0).normal(size=(50, 3))
    before = cost.copy()
    cost.setflags(write=False)

    capacity_prices(cost, {0: 5, 1: 5})

    np.testing.assert_array_equal(cost, before)


def test_prices_of_one_day_keep_the_budget_of_the_next_on_average():
    rng = np.random.default_rng(0)

    def day():
        p, amount = rng.beta(0.5, 5, size=1000), rng.lognormal(4, 1, size=1000)
        calls = np.c_[p * amount, np.full(1000, 8.0) + 0.1 * p * amount, 0.7 * p * amount + 2]
        return calls, np.array([0, 50, 75])

    used, (cost, limit) = [], day()
    for _ in range(12):
        prices = capacity_prices(cost, {1: 50, 2: 75})
        cost, limit = day()
        used.append(np.bincount((cost + [0, prices[1], prices[2]]).argmin(axis=1), minlength=3))

    np.testing.assert_allclose(np.mean(used, axis=0)[1:], limit[1:], rtol=0.08)


def test_probabilities_are_multiplied_by_the_ratio_of_frequencies():
    rng = np.random.default_rng(0)
    p, before, now = (rng.dirichlet(np.ones(3), size=n) for n in (20, 1, 1))
    expected = [[q[k] * now[0, k] / before[0, k] for k in range(3)] for q in p]
    expected /= np.sum(expected, axis=1, keepdims=True)

    np.testing.assert_allclose(adjust_prior(p, before[0], now[0]), expected, rtol=1e-13)
    np.testing.assert_allclose(adjust_prior(p, before[0], before[0]), p, rtol=1e-13)


def test_a_class_of_frequency_zero_has_no_probability():
    p = [[0.0, 1.0], [0.5, 0.5]]

    np.testing.assert_array_equal(adjust_prior(p, [0.5, 0.5], [1, 0]), [[1, 0], [1, 0]])
    np.testing.assert_array_equal(adjust_prior(p, [0, 1], [0, 1]), [[0, 1], [0, 1]])
    with pytest.raises(ValueError, match="of which the training had no rows"):
        adjust_prior(p, [0, 1], [0.5, 0.5])


@pytest.mark.parametrize("prior", [[0.5, 0.6], [1.5, -0.5], [1.0], [np.nan, 1]])
def test_frequencies_sum_to_one(prior):
    with pytest.raises(ValueError, match="expected 2 frequencies"):
        adjust_prior([[0.5, 0.5]], [0.5, 0.5], prior)


def test_changed_frequencies_are_recovered_from_calibrated_probabilities():
    """Two normal distributions, whose probabilities are known; rows with other frequencies."""
    rng = np.random.default_rng(0)
    is_rare = rng.random(20000) < 0.05
    x = rng.normal(size=20000) + 2 * is_rare
    at_half = expit(norm.logpdf(x, 2) - norm.logpdf(x, 0))
    p = np.c_[1 - at_half, at_half]

    found = estimate_prior(p, [0.5, 0.5])

    np.testing.assert_allclose(found, [0.95, 0.05], atol=0.005)
    at_found = adjust_prior(p, [0.5, 0.5], found)[:, 1]
    assert at_found.mean() == pytest.approx(0.05, abs=0.005)
