"""Assignments under limits against every assignment there is; shadow prices; class frequencies."""

import itertools
import math
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment, linprog
from scipy.special import expit
from scipy.stats import norm
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn import BayesMinimumRiskClassifier
from auxcst_sklearn.costs import binary_cost_matrices
from auxcst_sklearn.decisions import adjust_prior, assign, decide, estimate_prior, shadow_prices

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
        prices = shadow_prices(cost, capacity)

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
    rng = np.random.default_rng(0)
    for levels in (3, 50, 10**6):
        cost = rng.integers(0, levels, size=(5000, 4)).astype(float)
        each = sparse.kron(sparse.eye(5000), np.ones((1, 4)), format="csr")
        some = sparse.kron(np.ones((1, 5000)), sparse.eye(4, format="csr")[1:]).tocsr()
        least = linprog(cost.ravel(), some, [300, 20, 1000], each, np.ones(5000)).fun

        found = assign(cost, {1: 300, 2: 20, 3: 1000})

        assert (np.bincount(found)[1:] <= [300, 20, 1000]).all()
        assert cost[np.arange(5000), found].sum() == pytest.approx(least, rel=1e-9)


@pytest.mark.parametrize("n_rows", [60, 300, 1500])
def test_many_decisions_cost_what_the_shadow_prices_say(n_rows):
    """By duality. Scipy decides few rows for each decision, whose time grows with their cube."""
    rng = np.random.default_rng(0)
    cost = rng.integers(0, 1000, size=(n_rows, 40)) + np.arange(40.0)
    capacity = {j: int(np.ceil(1.1 * n_rows / 40)) for j in range(39)}
    limit, prices = [*capacity.values()], [*shadow_prices(cost, capacity).values()]

    found = assign(cost, capacity)

    assert (np.bincount(found, minlength=40)[:39] <= limit).all()
    least = (cost + [*prices, 0]).min(axis=1).sum() - np.dot(prices, limit)
    assert cost[np.arange(n_rows), found].sum() == pytest.approx(least, rel=1e-12)


def dearest(cost, rng):
    """Amounts that forbid a few rows a decision."""
    cost[rng.integers(len(cost), size=3), 1] = rng.choice([1e9, 1e10, 1e15])
    return cost


def best_of_all(cost, rng):
    """Benefits of a few rows that are far above all others."""
    cost[rng.integers(len(cost), size=3), rng.integers(3)] = -1e10
    return cost


def of_all_sizes(cost, rng):
    return np.exp(8 * rng.normal(size=cost.shape))


def of_a_few_grades(cost, rng):
    return rng.choice([0, 0.1, 0.2, 0.3], size=(len(cost), 1)) * cost[0]


def a_fee_apart(cost, rng):
    """Two decisions that differ by the same amount in all rows, but for rounding."""
    cost[:, 2] = cost[:, 1] + 5
    return cost


def on_a_large_common_amount(cost, rng):
    return cost + 1e9


def of_either_sign(cost, rng):
    return cost - 50


KINDS = [dearest, best_of_all, of_all_sizes, of_a_few_grades, a_fee_apart, of_either_sign]


def least_by_units(cost, limit):
    """The least total cost: a row for each unit of capacity, as an assignment problem of scipy."""
    column = np.repeat(np.arange(cost.shape[1]), np.minimum(limit, len(cost)).astype(int))
    rows, slots = linear_sum_assignment(cost[:, column])
    return math.fsum(cost[rows, column[slots]])


@pytest.mark.parametrize("kind", [*KINDS, on_a_large_common_amount])
def test_a_few_large_amounts_do_not_hide_the_small_ones(kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        cost = kind(rng.random((60, 4)) * [100, 50, 30, 80], rng)
        limit = np.array([np.inf, 12, 12, rng.choice([7, np.inf])])
        capacity = {j: int(limit[j]) for j in range(4) if limit[j] < np.inf}

        found = assign(cost, capacity)
        prices = shadow_prices(cost, capacity)

        assert (np.bincount(found, minlength=4) <= limit).all()
        least, chosen = least_by_units(cost, limit), cost[np.arange(60), found]
        rounding = 1e-14 * np.abs(chosen).sum()
        assert math.fsum(chosen) == pytest.approx(least, rel=0, abs=rounding)
        for j, price in prices.items():
            more = least_by_units(cost, limit + (np.arange(4) == j))
            assert price == pytest.approx(least - more, rel=0, abs=10 * rounding)


def test_the_largest_floats_forbid_a_decision():
    largest = np.finfo(float).max
    cost = np.array([[9.0, largest, 1.0], [9.0, 2.0, 1.0], [9.0, 3.0, -largest], [9.0, 1.0, 1.0]])

    np.testing.assert_array_equal(assign(cost, {1: 1, 2: 1}), [0, 0, 2, 1])
    np.testing.assert_array_equal(assign(cost[:, 1:], {0: 2, 1: 2}), [1, 0, 1, 0])


@pytest.mark.parametrize("levels", [1, 3, 40])
def test_rows_that_are_equal_are_counted(levels):
    """12,000 rows of a few grades, against the linear programme of how many of a grade get what."""
    rng = np.random.default_rng(0)
    of_grade, grade = rng.random((levels, 4)) * 100, rng.integers(levels, size=12_000)
    slots = np.array([1200, 2400, 600])
    linked = np.kron(np.eye(levels), np.ones((1, 4)))
    limited = np.tile(np.eye(4)[1:], (1, levels))
    counts = np.bincount(grade, minlength=levels)
    least = linprog(of_grade.ravel(), limited, slots, linked, counts).fun

    found = assign(of_grade[grade], dict(zip([1, 2, 3], slots, strict=True)))

    assert (np.bincount(found, minlength=4)[1:] <= slots).all()
    assert of_grade[grade, found].sum() == pytest.approx(least, rel=1e-9)
    for g in range(levels):  # the first of equal rows come first
        assert (np.diff((found[grade == g] > 0).astype(int)) <= 0).all()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, float])
@pytest.mark.parametrize(
    ("share", "n", "slots"),
    [(0.0, 100, 0), (0.02, 99, 1), (0.29, 100, 29), (1.0, 100, 100)]
    + [(0.01, 300, 3), (0.1, 300, 30), (0.29, 300, 87), (0.3, 300, 90)],
)
def test_a_float_of_any_precision_is_a_share_rounded_down(share, n, slots, kind):
    cost = np.tile([5.0, 1.0], (n, 1))

    assert assign(cost, {"b": kind(share)}, decisions=["a", "b"]).sum() == slots


@pytest.mark.parametrize(
    ("capacity", "message"),
    [
        ({"b": 1, "a": 1}, r"to \{'b': 1, 'a': 1\}, which leaves 1 of 3 samples"),
        ({"c": 1}, "capacity names 'c'; expected some of the decisions .'a', 'b'."),
        ({"b": -1}, r"capacity\['b'\]=-1"),
        ({"b": 1.5}, r"capacity\['b'\]=1.5"),
        ({"b": True}, r"capacity\['b'\]=True"),
        ({"b": float("nan")}, r"capacity\['b'\]=nan"),
        ({"b": "3"}, r"capacity\['b'\]='3'"),
    ],
)
def test_limits_that_cannot_be_kept_are_named(capacity, message):
    for function in (assign, shadow_prices):
        with pytest.raises(ValueError, match=message):
            function(np.ones((3, 2)), capacity, decisions=["a", "b"])


def test_costs_and_labels_must_fit():
    for capacity in ([1], 0.5, -1, None, True, float("nan")):
        with pytest.raises(TypeError, match=rf"capacity={re.escape(repr(capacity))}; expected a m"):
            assign(np.ones((3, 2)), capacity)
    with pytest.raises(ValueError, match="names 3 columns, but expected_cost has 2"):
        assign(np.ones((3, 2)), {}, decisions=["a", "b", "c"])
    with pytest.raises(ValueError, match="names 1 columns, but expected_cost has 2"):
        assign(np.ones((3, 2)), {"a": 1}, decisions=["a", "a"])
    with pytest.raises(ValueError, match="expected_cost contains NaN"):
        assign([[1.0, np.nan]], {})


def test_shadow_prices_are_a_mapping():
    X = pd.DataFrame({"a": [0.0, 1.0, 2.0]})
    model = rule().fit(X, [0, 1, 1])
    for function in (model.decide, partial(decide, make_pipeline("passthrough", model))):
        with pytest.raises(TypeError, match=r"shadow_prices=\[1.0, 0.0\]; expected a mapping"):
            function(X, shadow_prices=[1.0, 0.0])


def rule():
    return BayesMinimumRiskClassifier(GaussianNB(), cost_matrix=[[0, 1], [5, 0]])


def through(kind, X, y):
    """The same model inside of what scikit-learn fits, and alone."""
    grid = {"calibration": [None]}
    scaler, name = StandardScaler(), "bayesminimumriskclassifier__estimator__var_smoothing"
    pipeline = make_pipeline(scaler, rule())
    model = {
        "alone": rule(),
        "pipeline": pipeline,
        "nested": make_pipeline(make_pipeline("passthrough", scaler), make_pipeline(rule())),
        "search": GridSearchCV(pipeline, {name: [1e-9]}, cv=3),
        "random": make_pipeline(scaler, RandomizedSearchCV(rule(), grid, n_iter=1)),
        "frozen": FrozenEstimator(pipeline.fit(X, y)),
    }[kind].fit(X, y)
    inner = X if kind == "alone" else StandardScaler().fit_transform(X)
    return model, rule().fit(inner, y), inner


def test_decisions_of_several_types():
    cost = [[9.0, 6.0, 1.0], [4.0, 5.0, 1.0], [20.0, 5.0, 1.0]]
    choice = assign(cost, {1: 1, "review": 1}, decisions=[0, 1, "review"])
    np.testing.assert_array_equal(choice, [2, 0, 1])


@pytest.mark.parametrize("kind", ["alone", "pipeline", "nested", "search", "random", "frozen"])
def test_decide_through_pipelines_and_searches(kind):
    X, y = make_classification(120, weights=[0.8], random_state=0)
    fn_cost = y + np.arange(120) / 20
    C = binary_cost_matrices(fp_cost=1, fn_cost=fn_cost, classes=[0, 1], pos_label=1)
    model, alone, inner = through(kind, X, y)

    for given in (
        {"capacity": {1: 5}},
        {"cost": C, "shadow_prices": {1: 0.5}},
        {"prior": {0: 0.5, 1: 0.5}},
    ):
        np.testing.assert_array_equal(decide(model, X, **given), alone.decide(inner, **given))
    new = [[0, 1], [30, 0]]
    np.testing.assert_array_equal(decide(model, X, new), alone.decide(inner, [new] * 120))
    assert decide(model, X, capacity={1: 5}).sum() <= 5


@pytest.mark.filterwarnings("ignore::FutureWarning")  # of LogisticRegressionCV
def test_models_that_cannot_decide_are_named():
    X, y = make_classification(60, random_state=0)
    search = GridSearchCV(rule(), {"calibration": [None]}, cv=3)
    for unfitted in (rule(), make_pipeline(StandardScaler(), rule()), search):
        with pytest.raises(NotFittedError):
            decide(unfitted, X)
    with pytest.raises(TypeError, match="has no decide"):
        decide(search.set_params(refit=False).fit(X, y), X)
    for foreign in (GaussianNB(), make_pipeline(StandardScaler(), LogisticRegressionCV(cv=3))):
        with pytest.raises(TypeError, match=r"has no decide; .*BayesMinimumRiskClassifier"):
            decide(foreign.fit(X, y), X)


def test_the_costs_of_the_caller_stay_as_they_are():
    cost = np.random.default_rng(0).normal(size=(50, 3))
    before = cost.copy()
    cost.setflags(write=False)

    shadow_prices(cost, {0: 5, 1: 5})

    np.testing.assert_array_equal(cost, before)


def test_shadow_prices_of_one_day_keep_the_budget_of_the_next_on_average():
    rng = np.random.default_rng(0)

    def day():
        p, amount = rng.beta(0.5, 5, size=1000), rng.lognormal(4, 1, size=1000)
        calls = np.c_[p * amount, np.full(1000, 8.0) + 0.1 * p * amount, 0.7 * p * amount + 2]
        return calls, np.array([0, 50, 75])

    used, (cost, limit) = [], day()
    for _ in range(12):
        prices = shadow_prices(cost, {1: 50, 2: 75})
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


def log_likelihood(p, before, now):
    return np.log((p / before) @ now).mean()


@pytest.mark.parametrize("spread", [0.03, 0.3, 2])
def test_the_estimated_frequencies_are_the_most_likely_ones(spread):
    """Two classes, on a grid; expectation maximisation takes 100,000 steps where they overlap."""
    rng = np.random.default_rng(1)
    x, before = rng.normal(size=500) + spread * (rng.random(500) < 0.3), np.array([0.9, 0.1])
    p = expit(np.log(1 / 9) + spread * x - spread**2 / 2)
    p = np.c_[1 - p, p]
    grid = np.linspace(0, 1, 10_001)
    best = grid[np.argmax([log_likelihood(p, before, [1 - q, q]) for q in grid])]

    found = estimate_prior(p, before)

    assert found.sum() == pytest.approx(1)
    assert found[1] == pytest.approx(best, abs=1e-4)


def test_the_frequencies_of_many_rare_classes_are_the_most_likely_ones():
    """No class could have more: its mean ratio would be above 1."""
    rng = np.random.default_rng(0)
    before = np.geomspace(1, 1e-5, 30)
    before /= before.sum()
    p = rng.dirichlet(np.full(30, 0.3), 2000) * before
    p /= p.sum(axis=1, keepdims=True)
    ratio = p / before
    found = estimate_prior(p, before)
    gain = (ratio / (ratio @ found)[:, None]).mean(axis=0)
    assert gain.max() < 1 + 1e-6
    np.testing.assert_allclose(gain[found > 1e-6], 1, atol=1e-6)


def test_classes_without_rows_in_the_training_get_no_frequency():
    p = [[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]]
    np.testing.assert_allclose(estimate_prior(p, [0, 0.5, 0.5]), [0, 1, 0], atol=1e-8)
    np.testing.assert_allclose(estimate_prior([[1, 0]], [0, 1]), [0, 1])


def test_probabilities_of_no_rows_are_refused():
    half = [0.5, 0.5]
    for call in (lambda p: adjust_prior(p, half, half), lambda p: estimate_prior(p, half)):
        with pytest.raises(ValueError, match="probability has no rows"):
            call(np.empty((0, 2)))


@pytest.mark.parametrize("n_decisions", [3, 5])
def test_few_rows_are_decided_as_among_many_that_need_no_limited_decision(n_decisions):
    """Rows that take the free decision change no price and no choice."""
    for seed in range(100):
        rng = np.random.default_rng(seed)
        cost = rng.integers(0, 6, size=(9, n_decisions)) * rng.choice([1.0, 0.1])
        capacity = {j: int(rng.integers(0, 4)) for j in range(1, n_decisions)}
        others = np.tile([0.0, *[100.0] * (n_decisions - 1)], (60, 1))

        few, many = (assign(c, capacity)[:9] for c in (cost, np.vstack([cost, others])))

        paid = [cost[np.arange(9), choice].sum() for choice in (few, many)]
        assert paid[0] == pytest.approx(paid[1], abs=1e-12)
        prices = [shadow_prices(c, capacity) for c in (cost, np.vstack([cost, others]))]
        assert prices[0] == pytest.approx(prices[1], abs=1e-12)
        for i, j in itertools.combinations(range(9), 2):
            if (cost[i] == cost[j]).all():  # the first gets the limited one
                assert (few[i] > 0) >= (few[j] > 0)
