import multiprocessing
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import torch
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score
from skorch.callbacks import Callback
from threadpoolctl import threadpool_info, threadpool_limits
from torch import nn

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn._training.devices import multiplications_per_row
from auxcst_sklearn._training.threads import one_blas_thread
from auxcst_sklearn._training.torch_modes import FEWEST_MULTIPLICATIONS, thread_limit
from auxcst_sklearn.losses import CrossEntropy
from tests.factories import QUICK, small_mlp, table_boosting

pytestmark = pytest.mark.slow

SMALL = nn.Linear(10, 10)
LARGE = nn.Linear(1000, 1000)
ROWS = int(FEWEST_MULTIPLICATIONS // 1000**2)


class NoteThreads(Callback):
    """Write down how many threads torch has while it trains: a file for each epoch."""

    def __init__(self, folder):
        self.folder = folder

    def on_epoch_begin(self, net, **kwargs):
        Path(self.folder, uuid4().hex).write_text(str(torch.get_num_threads()))


@pytest.fixture
def two_threads(monkeypatch):
    """As without the limit of the suite, here and in the workers of joblib."""
    monkeypatch.delenv("OMP_NUM_THREADS")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    torch.ones(1000, 1000) @ torch.ones(1000, 1000)  # a fork finds the pool of threads in use
    yield
    torch.set_num_threads(before)


def limited(module, n_rows):
    with thread_limit(n_rows * multiplications_per_row(module)):
        return torch.get_num_threads()


@pytest.mark.usefixtures("two_threads")
def test_small_networks_get_one_thread():
    assert limited(SMALL, 100) == 1
    assert limited(LARGE, ROWS) == 2
    assert limited(nn.Conv2d(1, 1, 3), 1) == 2
    assert torch.get_num_threads() == 2


@pytest.mark.usefixtures("two_threads")
@pytest.mark.skipif(not torch.backends.mkl.is_available(), reason="torch is built without MKL")
def test_the_limit_holds_for_mkl():
    with thread_limit(100 * multiplications_per_row(SMALL)):
        assert re.search(r"mkl_get_max_threads\(\) : 1\b", torch.__config__.parallel_info())
    assert re.search(r"mkl_get_max_threads\(\) : 2\b", torch.__config__.parallel_info())


@pytest.mark.usefixtures("two_threads")
def test_a_second_python_thread_gets_one_and_leaves_the_first_alone():
    found = []
    thread = threading.Thread(target=lambda: found.append(limited(LARGE, ROWS)))
    thread.start()
    thread.join()

    assert found == [1]
    assert limited(LARGE, ROWS) == 2


WITH_VARIABLE = """
import os, sys, threading, torch
from multiprocessing import get_context
from auxcst_sklearn._training.torch_modes import thread_limit

def note(multiplications=1e9):
    with thread_limit(multiplications):
        print(torch.get_num_threads(), end=" ", flush=True)

def in_thread(*args):
    thread = threading.Thread(target=note, args=args)
    thread.start()
    thread.join()

note(); note(1.0); in_thread(); in_thread(1.0)
print(torch.get_num_threads(), end=" ", flush=True)
child = get_context("fork").Process(target=note)
child.start()
child.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_variable_names_the_threads_of_wide_workers():
    named = {"OMP_NUM_THREADS": "1", "AUXCST_NUM_THREADS": "2"}
    command = [sys.executable, "-W", "ignore", "-c", WITH_VARIABLE]
    found = subprocess.run(command, env={**os.environ, **named}, capture_output=True, text=True)

    # Here and in a thread, each for a large and a small network; afterwards; in a fork.
    assert found.stdout.split() == ["2", "1", "2", "1", "1", "1"], found.stderr


def test_a_variable_that_names_no_number(monkeypatch):
    monkeypatch.setenv("AUXCST_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="many"):
        CostSensitiveAuxMLP().fit([[0.0], [1.0]], [0, 1])
    monkeypatch.setenv("AUXCST_NUM_THREADS", "")  # as if there were none
    with thread_limit():
        pass


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_a_parallel_search_uses_no_more_threads_than_there_are_cores(backend, tmp_path):
    X, y = make_classification(64, 20, random_state=0)
    batches = {"batch_size": 2048}  # of which networks this wide would use two threads
    network = CostSensitiveAuxMLP(1, 4000, 0, n_networks=2, max_epochs=1, random_state=0, **batches)
    network.set_params(callbacks=[NoteThreads(tmp_path)])
    search = GridSearchCV(network, {"learning_rate": [1e-3, 1e-2]}, cv=2, refit=False)

    with parallel_config(backend, n_jobs=2):
        search.fit(X, y)

    threads = [int(path.read_text()) for path in tmp_path.iterdir()]
    assert len(threads) == 4
    assert set(threads) == {1}


@pytest.mark.usefixtures("two_threads")
def test_a_stack_in_a_forked_worker():
    X, y = make_classification(100, 20, random_state=0)
    network = CostSensitiveAuxMLP(3, 700, n_networks=2, max_epochs=1, **QUICK)
    network.set_params(batch_size=128)
    with parallel_config("multiprocessing", n_jobs=2):
        found = cross_val_score(network, X, y, cv=2)

    torch.set_num_threads(1)  # several would round otherwise
    np.testing.assert_array_equal(found, cross_val_score(network, X, y, cv=2))


def ends_well(pid, seconds):
    """Whether a child exits with 0 in time; else it is ended."""
    for _ in range(int(seconds / 0.05)):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended == pid:
            return status == 0
        time.sleep(0.05)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return False


@pytest.mark.usefixtures("two_threads")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_predicts_after_a_wide_fit():
    X, y = make_classification(1200, 50, random_state=0)
    model = CostSensitiveAuxMLP(1, 4000, n_networks=1, max_epochs=1, batch_size=1024, **QUICK)
    model.fit(X, y).predict(X)  # its pool of threads stays behind in this process

    pid = os.fork()
    if pid == 0:
        try:
            model.predict(X)
            os._exit(0)
        finally:
            os._exit(1)
    assert ends_well(pid, seconds=30)
    child = multiprocessing.get_context("fork").Process(target=model.predict, args=(X,))
    child.start()
    child.join(30)
    ended = child.exitcode
    child.kill()
    assert ended == 0


@pytest.mark.usefixtures("two_threads")
def test_workers_of_loky_keep_the_threads_that_joblib_gives_them():
    with parallel_config("loky", n_jobs=2, inner_max_num_threads=2):
        assert Parallel()(delayed(limited)(LARGE, ROWS) for _ in range(2)) == [2, 2]


def n_openmp_threads():
    return max(lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "openmp")


def test_a_small_boosting_uses_one_thread():
    X, y = make_classification(200, random_state=0)
    noted = []

    def score(model, X, y):
        noted.append(n_openmp_threads())
        return 0.0

    model = table_boosting(max_iter=2, early_stopping=True, scoring=score)
    with threadpool_limits(2, user_api="openmp"):
        model.fit(X, y).predict(X)
        assert n_openmp_threads() == 2
    assert set(noted) == {1}


class Noting(CrossEntropy):
    """Notes the threads of every temperature that is tried."""

    threads = set()

    def with_temperature(self, outputs, temperature):
        self.threads.add(torch.get_num_threads())
        return super().with_temperature(outputs, temperature)


@pytest.mark.usefixtures("two_threads")
def test_a_small_network_learns_its_temperature_in_one_thread():
    X, y = make_classification(random_state=0)
    small_mlp(loss=Noting(), early_stopping=True).fit(X, y)

    assert Noting.threads == {1}


@pytest.mark.usefixtures("two_threads")
def test_training_leaves_the_number_of_threads_alone():
    X, y = make_classification(random_state=0)

    estimator = CostSensitiveAuxMLP(max_epochs=1, random_state=0).fit(X, y)
    estimator.predict(X)
    with pytest.raises(ValueError, match="infinite or NaN"):
        estimator.set_params(standardize=False).fit(X * np.float32(1e37), y)

    assert torch.get_num_threads() == 2


def blas_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


def limited_blas(_=None):
    with one_blas_thread():
        return blas_threads()


def test_small_algebra_has_one_thread_in_the_main_thread_and_changes_no_other():
    with threadpool_limits(limits=2, user_api="blas"):
        assert limited_blas() == {1}
        with ThreadPoolExecutor(2) as pool:
            assert [*pool.map(limited_blas, range(2))] == [{2}, {2}]
        assert blas_threads() == {2}
