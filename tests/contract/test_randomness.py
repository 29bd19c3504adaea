"""One seed, one network: anywhere, at any time, at the expense of nobody else's random numbers."""

from __future__ import annotations

import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from io import BytesIO
from itertools import pairwise

import joblib
import numpy as np
import pytest
import torch
from joblib import Parallel, delayed
from sklearn.base import clone
from skorch.callbacks import LRScheduler
from torch.optim.lr_scheduler import StepLR


def weights(network):
    return np.concatenate([p.ravel().numpy(force=True) for p in network.net_.module_.parameters()])


def assert_same(network, other):
    np.testing.assert_array_equal(weights(network), weights(other))


def global_states():
    """The generators that a program shares with everyone."""
    kind, keys, *position = np.random.get_state()
    return torch.get_rng_state().tolist(), (kind, keys.tolist(), *position), random.getstate()


# ------------------------------------------------------------------------------- same seed


VARIANTS = {
    "plain": {},
    "dropout": {"dropout": 0.5},
    "early stopping": {"early_stopping": True},
    "cross-entropy": {"loss": "cross_entropy", "dropout": 0.2},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_same_seed_same_network(problem, mlp, variant):
    X, y, cost = problem
    network = mlp(**VARIANTS[variant])
    first = weights(network.fit(X, y, cost=cost))
    np.testing.assert_array_equal(weights(network.fit(X, y, cost=cost)), first)
    np.testing.assert_array_equal(weights(clone(network).fit(X, y, cost=cost)), first)
    other = clone(network).set_params(random_state=1)
    assert (weights(other.fit(X, y, cost=cost)) != first).mean() > 0.5


@pytest.mark.slow
def test_two_processes_fit_the_same_network(problem, mlp):
    X, y, cost = problem
    networks = [mlp(dropout=0.5, random_state=seed) for seed in (0, 1, 0, 1)]
    fitted = Parallel(n_jobs=2)(delayed(one.fit)(X, y, cost=cost) for one in networks)
    for one, network in zip(fitted, networks, strict=True):
        assert_same(one, clone(network).fit(X, y, cost=cost))


@pytest.mark.slow
def test_four_threads_at_once_fit_the_same_networks(problem, mlp):
    X, y, cost = problem
    known = {"dropout": 0.5, "max_epochs": 20}
    networks = [mlp(early_stopping=i % 2 == 0, random_state=i % 4, **known) for i in range(12)]
    expected = [clone(one).fit(X, y, cost=cost) for one in networks]
    before = global_states()
    with ThreadPoolExecutor(4) as pool:
        fitted = list(pool.map(lambda one: one.fit(X, y, cost=cost), networks))
    assert global_states() == before
    for one, other in zip(fitted, expected, strict=True):
        assert_same(one, other)


def parts(model, X, y, cost):
    model.partial_fit(X[:30], y[:30], [0, 1, 2], cost=cost[:30])
    yield weights(model)
    for _ in range(2):
        yield weights(model.partial_fit(X[30:], y[30:], cost=cost[30:]))


def fits(model, X, y, cost):
    for _ in range(2):
        yield weights(model.fit(X, y, cost=cost))


@pytest.mark.parametrize(
    ("parameters", "trainings"),
    [({}, parts), ({"warm_start": True}, fits), ({"random_state": np.random.RandomState(7)}, fits)],
    ids=["partial_fit", "warm start", "instance"],
)
def test_trainings_that_go_on_are_the_same_twice(problem, mlp, parameters, trainings):
    one, other = ([*trainings(mlp(dropout=0.5, **deepcopy(parameters)), *problem)] for _ in "12")

    np.testing.assert_array_equal(one, other)
    assert not any(np.array_equal(first, second) for first, second in pairwise(one))


def test_each_call_of_partial_fit_draws_anew(problem, mlp):
    X, y, cost = problem
    network, orders = mlp(dropout=0.5), set()
    for _ in range(3):
        network.partial_fit(X, y, [0, 1, 2], cost=cost)
        orders.add(network.net_.generators[0].initial_seed())
    assert len(orders) == 3


def test_no_seed_follows_the_generator_of_numpy(problem, mlp):
    X, y, cost = problem
    network = mlp(random_state=None)
    before = np.random.get_state()
    try:
        np.random.seed(3)
        first = weights(network.fit(X, y, cost=cost))
        assert not np.array_equal(weights(network.fit(X, y, cost=cost)), first)
        np.random.seed(3)
        np.testing.assert_array_equal(weights(network.fit(X, y, cost=cost)), first)
    finally:
        np.random.set_state(before)


# ---------------------------------------------------------------------- global generators


def test_global_generators_are_neither_advanced_nor_read(problem, mlp):
    X, y, cost = problem
    networks = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        before = global_states()
        network = mlp(dropout=0.5, early_stopping=True).fit(X, y, cost=cost)
        network.partial_fit(X, y, cost=cost)
        network.predict(X)
        list(network.staged_predict_cost(X))
        network.score(X, y, cost=cost)
        pickle.loads(pickle.dumps(network)).partial_fit(X, y, cost=cost)
        with pytest.raises(ValueError, match="cost has 50 rows"):
            network.fit(X, y, cost=cost[:50])
        assert global_states() == before
        networks.append(network)
    assert_same(*networks)


def test_the_default_type_of_torch_changes_no_network(problem, mlp, request):
    X, y, cost = problem
    expected = mlp(dropout=0.5).fit(X, y, cost=cost)
    request.getfixturevalue("float64_default")
    found = mlp(dropout=0.5).fit(X, y, cost=cost)
    assert torch.get_default_dtype() == torch.float64
    assert_same(expected, found)


# ----------------------------------------------------------------------------- persistence


def by_joblib(network):
    buffer = BytesIO()
    joblib.dump(network, buffer)
    buffer.seek(0)
    return joblib.load(buffer)


COPIES = {
    "pickle": lambda network: pickle.loads(pickle.dumps(network)),
    "oldest pickle": lambda network: pickle.loads(pickle.dumps(network, protocol=2)),
    "joblib": by_joblib,
    "deepcopy": deepcopy,
    "twice": lambda network: deepcopy(pickle.loads(pickle.dumps(network))),
}


@pytest.mark.parametrize("kind", COPIES)
def test_copies_predict_the_same_and_learn_on(problem, mlp, kind):
    X, y, cost = problem
    network = mlp(dropout=0.5, early_stopping=True).fit(X, y, cost=cost)
    expected = network.predict_cost(X)
    copies = [COPIES[kind](network) for _ in range(2)]
    for copy in copies:
        np.testing.assert_array_equal(copy.predict_cost(X), expected)
        np.testing.assert_array_equal(
            list(copy.staged_predict_cost(X)), list(network.staged_predict_cost(X))
        )
        assert copy.history_ == network.history_
        copy.partial_fit(X, y, cost=cost)
        assert len(copy.history_) == len(network.history_) + 1
    assert_same(*copies)
    assert not np.array_equal(weights(copies[0]), weights(network))
    np.testing.assert_array_equal(network.predict_cost(X), expected)


def test_a_copy_learns_as_from_a_new_optimizer(problem, mlp):
    """SGD without momentum has no state, so the copy goes on exactly as the original does."""
    X, y, cost = problem
    network = mlp(optimizer="sgd", dropout=0.5).fit(X, y, cost=cost)
    copy = deepcopy(network)
    assert_same(copy.partial_fit(X, y, cost=cost), network.partial_fit(X, y, cost=cost))


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"early_stopping": True},
        {"callbacks": [LRScheduler(StepLR, step_size=1)], "schedule": "constant"},
        {"n_networks": 5, "early_stopping": True},
    ],
    ids=["plain", "early stopping", "learning rate schedule", "several networks"],
)
def test_a_pickle_is_hardly_larger_than_the_weights(mlp, parameters):
    rng = np.random.default_rng(0)
    X, y, cost = rng.normal(size=(64, 100)), np.arange(64) % 3, rng.uniform(size=(64, 3))
    network = mlp(width=(256, 256), **parameters).fit(X, y, cost=cost)
    n_bytes = 4 * len(weights(network))
    assert n_bytes > 4 * (100 * 256 + 256 * 256)
    assert len(pickle.dumps(network)) <= 1.1 * n_bytes
    buffer = BytesIO()
    joblib.dump(network, buffer)
    assert buffer.tell() <= 1.1 * n_bytes
