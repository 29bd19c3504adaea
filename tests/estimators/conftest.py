"""The images that `torch_modules` are trained on."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X.reshape(-1, 1, 8, 8) / 16)[:200], y[:200]
