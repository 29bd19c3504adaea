"""One thread for all tests, as in the processes of the benchmarks, and tiny files of MNIST."""

from __future__ import annotations

import os

# Before torch is loaded, here and in the processes that tests start: sums over several threads
# round differently.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import pytest
import torch

from benchmarks.paper import draws
from benchmarks.paper.options import make_dense_parser


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Also where a plugin has loaded torch before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def data_home(tmp_path_factory):
    """Twenty training and five test images of each digit; brightness tells digits apart."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    for part, n in [("train", 200), ("t10k", 50)]:
        labels = np.arange(n, dtype=np.uint8) % 10
        images = rng.integers(0, 30, (n, 4, 4), dtype=np.uint8)
        images += 20 * labels[:, None, None]
        for kind, array in [("images-idx3", images), ("labels-idx1", labels)]:
            header = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">u4").tobytes()
            (folder / f"{part}-{kind}-ubyte").write_bytes(header + array.tobytes())
    return folder


@pytest.fixture(scope="session")
def data(data_home):
    return draws.load("mnist", data_home)


@pytest.fixture
def options(data_home, tmp_path):
    arguments = ["--data-home", str(data_home), "--out", str(tmp_path), "--n-jobs", "1"]
    return make_dense_parser("An experiment.").parse_args(arguments)
