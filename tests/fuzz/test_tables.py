"""Tables whose columns make no difference to the problem, however badly they are scaled."""

import numpy as np
import pytest

from auxcst_sklearn import CostSensitiveAuxMLP
from tests.fuzz.conftest import FUZZ

N = 2000


def ranks(values):
    return np.argsort(np.argsort(values)) / len(values)


def percents(random, n_columns):
    return random.uniform(-10, 110, size=(N, n_columns)).clip(0, 100)


def rare(random, share, value, other):
    return np.where(random.uniform(size=np.shape(other)) < share, value, other)


# From the signal (N, 3) and a generator to a table; harmless columns are beside the signal.
TABLES = {
    "outlier in the signal": lambda s, r: np.where(np.arange(3 * N).reshape(N, 3) == 0, 1e12, s),
    "outlier beside": lambda s, r: np.c_[s, np.where(np.arange(N) == 3, 1e15, s[:, 0] ** 2)],
    "amounts, mostly zero": lambda s, r: np.c_[s, rare(r, 0.01, 1e6, np.zeros(N))],
    "code in many rows": lambda s, r: np.c_[s, rare(r, 0.5, 9999, r.normal(size=N))],
    "code in the signal": lambda s, r: rare(r, 0.02, -999, s),
    "large offset": lambda s, r: np.round(100 * s) + 1e9,
    "tiny": lambda s, r: 1e-9 * s,
    "huge": lambda s, r: 1e15 * s,
    "units of all sizes": lambda s, r: s * [1e-6, 1, 1e6],
    "heavy tails": lambda s, r: np.exp(2 * s),
    "years": lambda s, r: np.c_[2000 + np.floor(25 * ranks(s[:, 0])), s[:, 1:]],
    "dates": lambda s, r: np.c_[s, 737_000 + r.integers(1000, size=N)],
    "seconds since 1970": lambda s, r: np.c_[1.7e9 + 1e6 * ranks(s[:, 0]), s[:, 1:]],
    "percents": lambda s, r: np.c_[s, percents(r, 4)],
    "rates beside percents": lambda s, r: np.c_[
        percents(r, 8), np.where(np.arange(N) == 0, 0, 0.05 * ranks(s[:, 0])), s[:, 1:]
    ],
    "flags in bytes": lambda s, r: np.c_[s, 255.0 * (r.uniform(size=(N, 3)) < 0.5)],
    "places on a map": lambda s, r: s * [0.01, 0.01, 1] + [40, -73, 0],
    "nearly constant": lambda s, r: np.c_[s, 1e5 + (np.arange(N) < 3)],
    "constants": lambda s, r: np.c_[s, np.full((N, 20), 3e4), np.zeros((N, 20))],
    "noise of rounding": lambda s, r: np.c_[s, 2024 + 1e-10 * r.normal(size=N)],
    "no values": lambda s, r: np.c_[s, np.full(N, np.nan)],
    "no moments": lambda s, r: np.c_[s, r.standard_cauchy((N, 4))],
}
QUICK = ["constants", "code in the signal", "rates beside percents"]


def accuracy(make):
    random = np.random.default_rng(0)
    signal = random.normal(size=(N, 3))
    y = signal[:, 0] + signal[:, 1] * signal[:, 2] > 0
    X = make(signal, random)
    network = CostSensitiveAuxMLP(2, 32, n_networks=2, max_epochs=25, random_state=0)
    return network.fit(X[: N // 2], y[: N // 2]).score(X[N // 2 :], y[N // 2 :])


@pytest.fixture(scope="module")
def plain():
    return accuracy(lambda signal, random: signal)


@pytest.mark.parametrize("name", TABLES if FUZZ > 1 else QUICK)
def test_the_signal_is_learnt(name, plain):
    assert plain > 0.95
    assert accuracy(TABLES[name]) > plain - 0.05
