"""What must not matter: the currency, names and order of classes, other rows, a fee for all."""

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
    np.testing.assert_allclose(
        other.predict_cost(X) / unit, one.predict_cost(X), rtol=2e-3, atol=2e-4
    )


@examples(12)
@given(KINDS, st.sampled_from([*LOSSES]), st.floats(0.1, 100))
@pytest.mark.filterwarnings("ignore")
def test_a_fee_for_every_decision(kind, loss, fee):
    one = kind(loss=loss).fit(X, Y, cost=COST)
    other = kind(loss=loss).fit(X, Y, cost=COST + fee)
    np.testing.assert_allclose(
        other.predict_cost(X) - fee, one.predict_cost(X), rtol=2e-3, atol=2e-3 * (1 + fee)
    )


@examples(12)
@given(KINDS, st.permutations(range(60)))
def test_order_of_test_rows(kind, order):
    model = kind().fit(X, Y)
    np.testing.assert_allclose(
        model.predict_cost(X[order]), model.predict_cost(X)[order], rtol=1e-6, atol=1e-9
    )


@examples(12)
@given(st.sampled_from([700, 20_000]), st.integers(2, 40), st.integers(0, 9), st.booleans())
def test_orders_of_training_rows(n, period, seed, stream):
    """Sorted, periodic, blocked and shuffled rows have about the same quantiles."""
    rng = np.random.default_rng(seed)
    phase = np.arange(n) % period
    rows = (rng.lognormal(size=n) + 10.0 ** (3 * phase / period))[:, np.newaxis]
    tolerance = 0.0 if n <= MOST_SAMPLED else 0.02
    low, high = (
        np.quantile(rows, (SHARES + t).clip(0, 1), axis=0) for t in (-tolerance, tolerance)
    )
    for order in (np.arange(n), rows[:, 0].argsort(), phase.argsort(), rng.permutation(n)):
        statistics = FeatureStatistics()
        for block in np.array_split(rows[order], 3 if stream else 1):
            statistics.update(block)
        assert (statistics.quantiles >= low * (1 - 1e-12)).all()
        assert (statistics.quantiles <= high * (1 + 1e-12)).all()
        np.testing.assert_allclose(statistics.mean, rows.mean(axis=0))


@examples(8)
@given(KINDS, st.permutations(["ant", "bee", "cat"]))
def test_names_of_classes(kind, names):
    names = np.array(names)
    one = kind(max_epochs=1).fit(X, np.array(["a", "b", "c"])[Y])
    other = kind(max_epochs=1).fit(X, names[Y])
    assert set(other.predict(X)) <= set(names)
    if list(names) == sorted(names):
        np.testing.assert_array_equal(one.predict_cost(X), other.predict_cost(X))


@examples(8)
@given(st.integers(2, 4))
def test_duplicated_rows_are_weights(times):
    """Full batches of float32, where only the order of sums differs."""
    given = {"loss": "one_sided", "dropout": 0.0, "batch_size": 1000, "standardize": False}
    several = small_mlp(**given).fit(np.repeat(X, times, axis=0), np.repeat(Y, times))
    weighted = small_mlp(**given).fit(X, Y, sample_weight=np.full(60, float(times)))
    np.testing.assert_allclose(
        several.predict_cost(X), weighted.predict_cost(X), rtol=1e-3, atol=1e-4
    )
