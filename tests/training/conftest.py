"""Data for the tests of training."""

import pytest
from sklearn.datasets import make_classification


@pytest.fixture
def data():
    """Two hundred rows of three classes."""
    return make_classification(200, n_classes=3, n_informative=5, random_state=0)
