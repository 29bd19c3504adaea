"""Quantiles of the features must not depend on the order of the rows."""

import numpy as np
import pytest

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn._inputs.scaling import MOST_SAMPLED, SHARES, FeatureStatistics

N = 12 * 4096  # in every twelfth row, as in a table of months, the amounts are small


@pytest.fixture(scope="module")
def months():
    rng = np.random.default_rng(0)
    amount = np.where(np.arange(N) % 12 == 0, rng.uniform(0, 1, N), rng.lognormal(8, 1, N))
    return np.column_stack([rng.normal(size=N), amount])


def in_order(X, order):
    """Rows as they are, sorted, in blocks of one kind, or shuffled."""
    orders = {
        "periodic": np.arange(len(X)),
        "sorted": X[:, 1].argsort(),
        "blocked": (np.arange(len(X)) % 12).argsort(kind="stable"),
        "shuffled": np.random.default_rng(1).permutation(len(X)),
    }
    return X[orders[order]]


ORDERS = ["periodic", "sorted", "blocked", "shuffled"]


def expect_quantiles(statistics, X):
    """Quantiles of a sample lie between those of all rows at slightly different levels."""
    tolerance = 4 * 0.5 / np.sqrt(MOST_SAMPLED)
    for shift, sign in ((-tolerance, 1), (tolerance, -1)):
        bound = np.quantile(X, (SHARES + shift).clip(0, 1), axis=0)
        assert (sign * (statistics.quantiles - bound) >= 0).all()


@pytest.mark.parametrize("order", ORDERS)
def test_orders_of_many_rows(months, order):
    expect_quantiles(FeatureStatistics().update(in_order(months, order)), months)


@pytest.mark.parametrize("seed", range(5))
def test_keys_of_the_sample_are_not_the_data(seed):
    X = np.random.default_rng(seed).random((3 * MOST_SAMPLED, 1))
    expect_quantiles(FeatureStatistics().update(X), X)


@pytest.mark.parametrize("order", ORDERS)
def test_blocks_of_a_stream(months, order):
    statistics = FeatureStatistics()
    for block in np.array_split(in_order(months, order), 7):
        statistics.update(block)
    expect_quantiles(statistics, months)
    few = FeatureStatistics()
    for block in np.array_split(in_order(months[:6000], order), 9):
        few.update(block)
    np.testing.assert_allclose(few.quantiles, np.quantile(months[:6000], SHARES, axis=0))


@pytest.mark.parametrize("order", ORDERS)
def test_all_of_fewer_rows_count(months, order):
    X = months[:6000].copy()
    X[::3, 0] = np.nan
    found = FeatureStatistics().update(in_order(X, order)).quantiles
    np.testing.assert_array_equal(found, np.nanquantile(X, SHARES, axis=0))


def test_a_column_whose_few_values_are_not_sampled_has_their_mean():
    X = np.full((20 * MOST_SAMPLED, 1), np.nan)
    X[8] = 5.0
    found = FeatureStatistics().update(X)
    assert np.isnan(found.some_rows.rows).all()
    assert (found.quantiles == 5).all()


@pytest.mark.parametrize("order", ORDERS)
def test_a_network_learns_rows_in_any_order(months, order):
    X = in_order(months[:24_576], order)
    y = (X[:, 1] > np.exp(8)).astype(int)
    model = CostSensitiveAuxMLP(1, 16, n_networks=1, max_epochs=4, random_state=0)
    assert model.fit(X, y).score(X, y) > 0.93
