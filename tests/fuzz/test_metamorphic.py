"""What must not matter: the currency, a fee for all decisions, the order of training rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auxcst_sklearn._inputs.scaling import MOST_SAMPLED, SHARES, FeatureStatistics
from auxcst_sklearn.losses import LOSSES
from tests.factories import small_mlp, small_stack
from tests.fuzz.conftest import examples

RNG = np.random.default_rng(1)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0)
COST = RNG.exponential(size=(60, 3)) * (np.arange(3) != Y[:, None])
KINDS = st.sampled_from([small_mlp, small_stack])


@examples(12)
@given(KINDS, st.sampled_from([*LOSSES]), st.floats(-9, 9))
@pytest.mark.filterwarnings("ignore")
def test_currency(kind, loss, power):
    unit = 10.0**power
    one = kind(loss=loss).fit(X, Y, cost=COST)
    other = kind(loss=loss).fit(X, Y, cost=COST * unit)
    found = other.predict_cost(X) / unit
    np.testing.assert_allclose(found, one.predict_cost(X), rtol=2e-3, atol=2e-4)


@examples(12)
@given(KINDS, st.sampled_from([*LOSSES]), st.floats(0.1, 100))
@pytest.mark.filterwarnings("ignore")
def test_a_fee_for_every_decision(kind, loss, fee):
    one = kind(loss=loss).fit(X, Y, cost=COST)
    other = kind(loss=loss).fit(X, Y, cost=COST + fee)
    found = other.predict_cost(X) - fee
    np.testing.assert_allclose(found, one.predict_cost(X), rtol=2e-3, atol=2e-3 * (1 + fee))


@examples(12)
@given(st.sampled_from([700, 20_000]), st.integers(2, 40), st.integers(0, 9), st.booleans())
def test_orders_of_training_rows(n, period, seed, stream):
    """Sorted, periodic, blocked and shuffled rows have about the same quantiles."""
    rng = np.random.default_rng(seed)
    phase = np.arange(n) % period
    rows = (rng.lognormal(size=n) + 10.0 ** (3 * phase / period))[:, np.newaxis]
    tolerance = 0.0 if n <= MOST_SAMPLED else 0.02
    shares = [(SHARES + shift).clip(0, 1) for shift in (-tolerance, tolerance)]
    low, high = (np.quantile(rows, share, axis=0) for share in shares)
    for order in (np.arange(n), rows[:, 0].argsort(), phase.argsort(), rng.permutation(n)):
        statistics = FeatureStatistics()
        for block in np.array_split(rows[order], 3 if stream else 1):
            statistics.update(block)
        assert (statistics.quantiles >= low * (1 - 1e-12)).all()
        assert (statistics.quantiles <= high * (1 + 1e-12)).all()
        np.testing.assert_allclose(statistics.mean, rows.mean(axis=0))
