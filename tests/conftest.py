"""What the tests share: a small problem, a small network, metadata routing switched on."""

from __future__ import annotations

import os
from typing import NamedTuple

# Before torch and numpy are loaded, here and in the processes that tests start: sums over several
# threads round differently, and a busy machine has no cores to spare.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pytest
import sklearn
import torch

from tests.factories import small_mlp


class Problem(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    cost: np.ndarray


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call():
    """The oldest torch has no exporter for `to_onnx`, so a test that writes a file ends there."""
    try:
        return (yield)
    except ImportError as error:
        if torch.__version__ < "2.7" and str(error).startswith("to_onnx needs torch 2.7"):
            pytest.skip(str(error))
        raise


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Also where a plugin has loaded torch before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.fixture
def float64_default():
    """Some users have torch make float64 tensors throughout."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture
def problem():
    """Sixty rows of three classes; the true class is mostly, not always, the cheapest."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)).astype(np.float32)
    y = np.arange(60) % 3
    cost = rng.uniform(0.1, 1, size=(60, 3))
    cost[np.arange(60), y] *= 0.2
    return Problem(X, y, cost)


@pytest.fixture
def mlp():
    """Make a network small and quick enough for a test."""
    return small_mlp
