"""A default network, several in one stack, as its user sees it."""

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
