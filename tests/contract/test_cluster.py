"""Searches and predictions on the processes of a dask cluster equal local ones, bit for bit."""

from __future__ import annotations

import os
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
import sklearn
import torch
from joblib import Parallel, delayed, parallel_config
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import Callback
from torch import distributed as dist

from auxcst_sklearn.metrics import cost_scorer
from tests.factories import small_mlp, small_stack

pytestmark = pytest.mark.slow

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

X, Y = make_classification(240, 6, n_informative=4, n_classes=3, random_state=0)
COST = np.random.default_rng(0).exponential(size=(240, 3)) * (np.arange(3) != Y[:, None])
THREADS = 2
PLAIN = {"optimizer": "sgd", "learning_rate": 0.05, "schedule": "constant", "dropout": 0.0}


class Note(Callback):
    """Write a file for each training: its process, and how many threads torch has."""

    def __init__(self, folder):
        self.folder = folder

    def on_train_begin(self, net, **kwargs):
        note = f"{os.getpid()} {torch.get_num_threads()}"
        Path(self.folder, uuid4().hex).write_text(note)


def notes(folder):
    return {tuple(map(int, path.read_text().split())) for path in folder.iterdir()}


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture(scope="module")
def client():
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True}
    options |= {"dashboard_address": ":0", "env": {"AUXCST_NUM_THREADS": str(THREADS)}}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
        yield client
    end = time.monotonic() + 30
    while any(map(is_alive, pids)):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_search_with_routed_costs_and_callbacks(client, tmp_path):
    def scores():
        model = small_stack(callbacks=[Note(tmp_path)])
        grid = {"alpha": [0, 0.5]}
        search = GridSearchCV(model, grid, scoring=cost_scorer, cv=2, error_score="raise")
        search.fit(X, Y, cost=COST)
        names = ("split0_test_score", "split1_test_score", "params")
        return *(
            list(search.cv_results_[name]) for name in names
        ), search.best_estimator_.predict_cost(X)

    with sklearn.config_context(enable_metadata_routing=True):
        *local, local_cost = scores()
        here = len(list(tmp_path.iterdir()))
        with parallel_config(backend="dask"):
            *found, found_cost = scores()

    assert found == local
    np.testing.assert_array_equal(found_cost, local_cost)
    assert len(list(tmp_path.iterdir())) == 2 * here
    workers = set(client.run(os.getpid).values())
    assert len(workers & {pid for pid, _ in notes(tmp_path)}) >= 1


def test_a_wide_worker_has_more_than_one_thread(client, tmp_path):
    assert set(client.run(torch.get_num_threads).values()) == {1}  # as dask would have it
    wide = small_mlp(depth=1, width=8000, batch_size=2048, max_epochs=1, callbacks=[Note(tmp_path)])
    with parallel_config(backend="dask"):
        Parallel()([delayed(wide.fit)(np.tile(X, (9, 1)), [*Y] * 9)])
    ((pid, n_threads),) = notes(tmp_path)
    assert pid in client.run(os.getpid).values()
    assert n_threads == THREADS


class CountRows(Callback):
    """Count the rows of training batches, of each network."""

    def initialize(self):
        self.n_rows_ = 0

    def on_batch_begin(self, net, batch=None, training=False, **kwargs):
        self.n_rows_ += len(batch[0]) // net.n_networks if training else 0


def weights_and_rows():
    count = CountRows()
    model = small_stack(callbacks=[count], **PLAIN).fit(X, Y, cost=COST)
    return [value.numpy() for value in model.net_.module_.state_dict().values()], count.n_rows_


def fit_on_rank(rank, address):
    """Weights of one training that this task shares with another one, and rows of this task."""
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        return weights_and_rows()
    finally:
        dist.destroy_process_group()


def test_one_training_by_two_tasks(client, tmp_path):
    client.wait_for_workers(2)
    workers = list(client.nthreads())  # asks the scheduler; its own copy may be older
    address = f"file://{tmp_path / 'group'}"
    tasks = [
        client.submit(fit_on_rank, rank, address, workers=[worker], pure=False)
        for rank, worker in enumerate(workers)
    ]
    (first, n_first), (second, n_second) = client.gather(tasks)
    alone, n_rows = weights_and_rows()
    assert n_first + n_second == n_rows
    assert min(n_first, n_second) > n_rows / 3
    assert len(first) == len(alone)
    for one, other, expected in zip(first, second, alone):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(one, expected, atol=1e-5)


@pytest.mark.usefixtures("client")
def test_prediction_in_blocks():
    labels = np.array(["low", "middle", "very high"])
    model = small_stack().fit(X, labels[Y])
    blocks = da.from_array(X, chunks=(100, 6))
    of_classes = {"dtype": np.float64, "chunks": (blocks.chunks[0], (3,))}

    label = blocks.map_blocks(model.predict, dtype=labels.dtype, drop_axis=1)
    np.testing.assert_array_equal(label.compute(), model.predict(X))
    for method in (model.predict_cost, model.predict_proba):
        found = blocks.map_blocks(method, **of_classes)
        assert found.shape == (240, 3)
        expected = np.concatenate([method(X[i : i + 100]) for i in (0, 100, 200)])
        np.testing.assert_array_equal(found.compute(), expected)
        np.testing.assert_allclose(expected, method(X), rtol=1e-5, atol=1e-6)


def test_decisions_in_blocks_with_a_matrix_for_each_row():
    model = small_stack().fit(X, Y)
    matrices = np.random.default_rng(1).exponential(size=(240, 3, 3))
    blocks = da.from_array(X, chunks=(100, 6)), da.from_array(matrices, chunks=(100, 3, 3))
    found = da.blockwise(
        model.predict, "i", blocks[0], "ij", blocks[1], "ikl", concatenate=True, dtype=np.int64
    )
    np.testing.assert_array_equal(found.compute(), model.predict(X, cost=matrices))


def test_prediction_of_frames_in_blocks():
    pytest.importorskip("pyarrow")
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(a=np.where(X[:, 0] > 0, "up", "down"))
    model = small_stack().fit(frame, Y)
    parts = dd.from_pandas(frame, npartitions=3)
    found = parts.map_partitions(lambda part: pd.Series(model.predict(part)), meta=(None, "int64"))
    np.testing.assert_array_equal(found.compute(), model.predict(frame))
