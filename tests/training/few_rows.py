"""Few rows for the tests of rows and batches."""

from __future__ import annotations

import numpy as np

from auxcst_sklearn._training.batches import Rows
from tests.factories import training_set

X = np.arange(12, dtype=np.float32).reshape(6, 2)
LABEL = np.array([0, 1, 2, 2, 1, 0])
COST = np.arange(18, dtype=np.float64).reshape(6, 3)
MATRIX = np.arange(9, dtype=np.float64).reshape(3, 3)


def make_rows(X=X, label=LABEL, cost=COST, weight=None, per_class=False):
    return Rows(training_set(X, label, cost, per_class, weight), device="cpu")


def order(batches):
    return np.concatenate([x[0, :, 0].numpy() for x, _ in batches]).tolist()
