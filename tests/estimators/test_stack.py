"""A default network, several in one stack, as its user sees it."""

import pickle
from copy import deepcopy

import numpy as np
import pytest
import torch
from skorch.callbacks import Checkpoint, LRScheduler, TrainEndCheckpoint

from auxcst_sklearn.modules._mlp import AuxMLP
from tests.factories import small_mlp, small_stack


def test_stages_are_means_of_the_heads_of_the_networks(problem):
    model = small_stack(depth=3, loss="squared").fit(problem.X, problem.y, cost=problem.cost)

    with torch.no_grad():
        heads = model.net_.module_.forward_heads(torch.from_numpy(problem.X)[None])
    for found, of_networks in zip(model.staged_predict_cost(problem.X), heads, strict=True):
        expected = model.net_.statistics.to_currency(of_networks.double().numpy().mean(axis=0))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("costs", ["vectors", "matrices"])
def test_reproducible_and_without_traces(problem, costs):
    X, y, cost = problem
    if costs == "matrices":
        cost = np.repeat(cost[:, np.newaxis], 3, axis=1)
    before, state, numpy_state = (
        deepcopy((X, y, cost)),
        torch.get_rng_state(),
        np.random.get_state(),
    )

    one, other = (small_stack(dropout=0.5).fit(X, y, cost=cost).predict_proba(X) for _ in range(2))

    np.testing.assert_array_equal(one, other)
    for array, copy in zip((X, y, cost), before, strict=True):
        np.testing.assert_array_equal(array, copy)
    assert torch.equal(torch.get_rng_state(), state)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_state[1])


def test_a_pickle_is_hardly_larger_than_the_weights_and_goes_on(problem):
    X, y, _ = problem
    model = small_stack(width=200).fit(X, y)
    data = pickle.dumps(model)

    assert len(data) < 1.3 * sum(4 * p.numel() for p in model.net_.module_.parameters()) + 10_000
    loaded = pickle.loads(data)
    np.testing.assert_array_equal(loaded.predict_cost(X), model.predict_cost(X))
    assert len(loaded.partial_fit(X, y).history_) == 4


def test_checkpoints_and_schedules(problem, tmp_path):
    callbacks = [
        Checkpoint(monitor="valid_cost_best", dirname=tmp_path, f_pickle="net.pkl"),
        TrainEndCheckpoint(dirname=tmp_path / "end"),
    ]
    small_stack(callbacks=callbacks).fit(problem.X, problem.y)
    assert (tmp_path / "net.pkl").exists()

    schedule = [LRScheduler("StepLR", step_size=1, gamma=0.1)]
    constant = {"schedule": "constant", "learning_rate": 2e-3}
    model = small_stack(callbacks=schedule, **constant).fit(problem.X, problem.y)
    rates = [record["event_lr"] for record in model.history_]
    assert rates == pytest.approx([2e-3, 2e-4, 2e-5])
    with pytest.raises(ValueError, match="LRScheduler, but schedule='one_cycle'"):
        small_stack(callbacks=schedule, schedule="one_cycle").fit(problem.X, problem.y)


def test_one_network_is_an_ordinary_module(problem):
    assert type(small_mlp().fit(problem.X, problem.y).net_.module_) is AuxMLP


def test_bfloat16_reaches_every_network(problem):
    X, y, _ = problem
    parameters = {"max_epochs": 5, "early_stopping": False, "temperature": 1.0}
    rough, exact = (
        small_stack(precision=precision, **parameters).fit(X, y).predict_proba(X)
        for precision in ("bf16", "float32")
    )

    difference = np.abs(rough - exact)
    assert (difference.max(axis=1) > 0).all()
    assert difference.mean() < 0.02
