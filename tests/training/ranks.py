"""Fits that `test_distributed.py` runs in one process, and in several that are one group."""

from __future__ import annotations

import os
import pickle
import sys
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import Callback
from torch import distributed as dist

from auxcst_sklearn import CSAEPretrainedMLP
from tests.factories import small_cnn, small_mlp, small_net, small_stack

SGD = {"optimizer": "sgd", "learning_rate": 0.05, "schedule": "constant", "batch_size": 32}
PLAIN = {**SGD, "dropout": 0.0}

# 163 rows leave batches of 3 after those of 32, also where a fold is held out.
_rng = np.random.RandomState(0)
X = _rng.randn(163, 6).astype(np.float32)
Y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.8)
COST = _rng.gamma(1, 2, size=(163, 3)) * (np.arange(3) != Y[:, np.newaxis])
WEIGHT = _rng.uniform(0.2, 3, size=163)
IMAGES = _rng.rand(90, 6, 6).astype(np.float32)


def weights(model):
    return [value.numpy(force=True) for value in model.net_.module_.state_dict().values()]


def found(model):
    """What must be the same on all ranks, to the bit."""
    history = [{k: v for k, v in record.items() if k != "dur"} for record in model.history_]
    return weights(model), model.temperature_, history


def single():
    return found(small_mlp(**PLAIN, early_stopping=True, patience=1, max_epochs=6).fit(X, Y))


def weighted():
    return found(small_mlp(**PLAIN, loss="one_sided").fit(X, Y, cost=COST, sample_weight=WEIGHT))


def stack():
    return found(small_stack(**PLAIN, max_epochs=4).fit(X, Y, cost=COST, sample_weight=WEIGHT))


def many_short_batches():
    """Batches of 3 rows, which are too small for two processes."""
    return found(small_mlp(**{**PLAIN, "batch_size": 3}, max_epochs=1).fit(X, Y))


def continued():
    model = small_stack(**PLAIN, warm_start=True).fit(X, Y).fit(X[:100], Y[:100])
    return found(model.partial_fit(X, Y))


def pretrained():
    few = {"pretrain_epochs": 1, "max_epochs": 2, "random_state": 0, "device": "cpu"}
    return found(CSAEPretrainedMLP(2, 8, **few, **PLAIN).fit(X, Y))


def in_a_thread():
    """As tasks of dask and Ray run."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(single).result()


def on_gpu():
    model = small_stack(**PLAIN, **{"device": "auto"}).fit(X, Y)
    if dist.is_initialized():
        assert model.net_.device == f"cuda:{dist.get_rank()}"
    return found(model)


def by_default():
    """Dropout, AdamW, and random numbers that no seed fixes."""
    return found(small_stack(random_state=None, verbose=1).fit(X, Y))


def images():
    """Batch normalisation, and a flip."""
    return found(small_cnn(augmentation="flip", batch_size=20).fit(IMAGES, Y[:90]))


def several_for_images():
    """Networks side by side, each with statistics of its own."""
    parameters = {"n_networks": 2, "early_stopping": True, "patience": 1, "max_epochs": 3}
    return found(small_cnn(batch_size=20, **parameters).fit(IMAGES, Y[:90]))


def own_module():
    """A module whose start weights differ among the ranks."""
    module = torch.nn.Sequential(torch.nn.Linear(6, 5), torch.nn.ReLU(), torch.nn.Linear(5, 3))
    return found(small_net(module).fit(X, Y))


EQUAL = [single, weighted, stack, many_short_batches, continued, pretrained, in_a_thread]
ALIKE = [*EQUAL, by_default, images, several_for_images, own_module]

# ---------------------------------------------------------------- mistakes


def bad_rows(rank):
    small_cnn().fit(np.where(rank, np.nan, IMAGES), Y[:90])


def wrong_parameter(rank):
    """Found before anything begins, so that the group goes on."""
    small_mlp(max_epochs=0).fit(X, Y)


def other_labels(rank):
    small_mlp(learning_rate=0.1 + rank).fit(X, np.roll(Y, rank))


def checkpoints(rank):
    small_mlp(checkpoint_dir="never_made").fit(X, Y)


class OnRank1(Callback):
    """Raises an error on rank 1, in its second epoch."""

    def on_batch_begin(self, net, training=True, **kwargs):
        if dist.get_rank() == 1 and training and len(net.history) == 2:
            raise OSError("disk full")


def search(rank):
    """One that catches the error of its first fit."""
    model = small_mlp(**PLAIN, callbacks=[OnRank1()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        GridSearchCV(model, {"alpha": [0, 0.2]}, cv=2, refit=False, error_score=np.nan).fit(X, Y)


def after_it(rank):
    small_mlp(**PLAIN).fit(X, Y)


def death(rank):
    if rank == 1:
        os._exit(3)
    small_mlp().fit(X, Y)


MISTAKES = [bad_rows, other_labels, checkpoints, search, after_it]


def message(mistake, rank):
    try:
        mistake(rank)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return None


def alone(rank):
    """A model of its own in each process."""
    if rank == 0:
        return found(small_mlp(**PLAIN, distributed=False).fit(X, Y))
    return None


def main(rank, size, folder, backend):
    torch.set_num_threads(1)
    torch.manual_seed(rank)
    os.environ["LOCAL_RANK"] = str(rank)

    def join(name):
        store = f"file://{folder}/{name}"
        dist.init_process_group(backend, init_method=store, rank=rank, world_size=size)

    join("fits")
    path = Path(folder, f"rank{rank}.pkl")
    if backend == "nccl":
        path.write_bytes(pickle.dumps({"on_gpu": on_gpu()}))
        return
    results: dict[str, object] = {"wrong parameter": message(wrong_parameter, rank)}
    results |= {"alone": alone(rank)} | {fit.__name__: fit() for fit in ALIKE}
    group = weakref.ref(dist.group.WORLD)
    dist.destroy_process_group()  # its threads can abort the exit
    results["group_ended"] = group() is None
    for mistake in MISTAKES:
        if mistake is not after_it:
            join(mistake.__name__)
        results[mistake.__name__] = message(mistake, rank)
        results[f"{mistake.__name__} leaves a group"] = dist.is_initialized()
    join("death")
    path.write_bytes(pickle.dumps(results))
    results["death"] = message(death, rank)  # ends rank 1
    path.write_bytes(pickle.dumps(results))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
