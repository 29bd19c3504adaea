"""Payments with rare fraud, for `bench_fraud`: the amount of each is known when deciding.

An alert costs :data:`ALERT`, whether it finds fraud or not; missed fraud costs its amount. The
logarithm of the amount is the last feature of all generators, as any user would have it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit
from sklearn.datasets import make_classification
from sklearn.preprocessing import StandardScaler

from auxcst_sklearn.costs import binary_cost_matrices

ALERT = 5.0
RATE = 0.01
N_FEATURES = 20
# Half of the payments lie below exp(4) = 55, and a tenth above 250; their mean is 112.
LOG_MEAN, LOG_DEVIATION = 4.0, 1.2

# Features without the amount, whether each payment is fraud, and the standardised log amounts.
Payments = tuple[NDArray, NDArray, NDArray]


class FraudDraw(NamedTuple):
    """What a seed draws from a generator; costs are a matrix for each payment (n, 2, 2)."""

    X_train: NDArray
    y_train: NDArray
    cost_train: NDArray
    X_test: NDArray
    y_test: NDArray
    cost_test: NDArray
    random_state: int


def overlap(n: int, rng: RandomState) -> Payments:
    """Two clusters per class that lie close together; amounts have nothing to do with fraud."""
    X, y = make_classification(
        n,
        N_FEATURES,
        n_informative=6,
        n_redundant=4,
        weights=[1 - RATE],
        flip_y=0,
        class_sep=0.5,
        random_state=rng,
    )
    return X, y, rng.normal(size=n)


def interactions(n: int, rng: RandomState) -> Payments:
    """Four groups of customers, in which products and waves of features make fraud likely."""
    group = rng.randint(4, size=n)
    X = rng.normal(size=(n, N_FEATURES))
    X[:, 10:] += 2 * rng.normal(size=(4, N_FEATURES - 10))[group]
    sign = np.where(group % 2, 1, -1)
    logit = 2 * sign * X[:, 0] + 1.5 * X[:, 1] * X[:, 2] + 2 * np.sin(2 * X[:, 3]) * X[:, 4]
    return X, rare(logit, rng), rng.normal(size=n)


def large_amounts(n: int, rng: RandomState) -> Payments:
    """Fraud is likelier where amounts are large, the more so by one feature."""
    X, amount = rng.normal(size=(n, N_FEATURES)), rng.normal(size=n)
    logit = X[:, :6] @ np.array([1.0, -1.0, 0.7, -0.7, 0.5, 0.5]) + amount * (1 + 0.5 * X[:, 6])
    return X, rare(logit, rng), amount


def rare(logit: NDArray, rng: RandomState) -> NDArray:
    """Draw labels, 1 for fraud, after the logits are moved so that fraud has its rate."""
    move = brentq(lambda m: expit(logit + m).mean() - RATE, -100, 100)
    return (rng.uniform(size=len(logit)) < expit(logit + move)).astype(int)


GENERATORS: dict[str, Callable[[int, RandomState], Payments]] = {
    "overlap": overlap,
    "interactions": interactions,
    "large amounts": large_amounts,
}


def draw(generator: str, seed: int, n_train: int, n_test: int) -> FraudDraw:
    """Draw a problem and split it; features are standardised by the training rows."""
    of_data, random_state = map(
        int, np.random.SeedSequence([seed, crc32(generator.encode())]).generate_state(2)
    )
    X, y, amount = GENERATORS[generator](n_train + n_test, RandomState(of_data))
    X = np.column_stack([X, amount])
    X = StandardScaler().fit(X[:n_train]).transform(X)
    money = np.exp(LOG_MEAN + LOG_DEVIATION * amount)
    cost = binary_cost_matrices(
        fp_cost=ALERT, tp_cost=ALERT, fn_cost=money, classes=[0, 1], pos_label=1
    ).values
    train, test = slice(n_train), slice(n_train, None)
    return FraudDraw(X[train], y[train], cost[train], X[test], y[test], cost[test], random_state)
