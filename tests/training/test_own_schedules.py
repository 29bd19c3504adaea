"""Optimizers and schedules that a user makes."""

from functools import partial

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet
from auxcst_sklearn._training.checkpoints import Checkpoints
from tests.factories import small_mlp


class Rates(Callback):
    """The rate of every epoch."""

    def on_epoch_begin(self, net, **kwargs):
        self.seen = [*getattr(self, "seen", []), net.optimizer_.param_groups[0]["lr"]]


def halving(optimizer):
    return ExponentialLR(optimizer, 0.5)


def nesterov(parameters):
    return SGD(parameters, lr=0.05, momentum=0.9, nesterov=True)


def rates_of(problem, **parameters):
    seen = Rates()
    model = small_mlp(max_epochs=4, callbacks=[seen], **parameters).fit(problem.X, problem.y)
    return seen.seen, model


def test_a_function_makes_the_optimizer_and_sets_its_rate(problem):
    rates, model = rates_of(
        problem, optimizer=nesterov, learning_rate=1.0, schedule="constant", weight_decay=1.0
    )

    assert rates == [0.05] * 4
    (group,) = model.net_.optimizer_.param_groups
    assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (0.9, True, 0)


def test_a_partial_class_is_a_function_of_the_parameters(problem):
    _, model = rates_of(problem, optimizer=partial(AdamW, lr=1e-3, betas=(0.8, 0.9)))

    assert model.net_.optimizer_.param_groups[0]["betas"] == (0.8, 0.9)


def test_a_scheduler_steps_once_an_epoch_and_the_rate_is_back_after_training(problem):
    rates, model = rates_of(problem, schedule=halving, learning_rate=0.08)

    assert rates == pytest.approx([0.08, 0.04, 0.02, 0.01])
    assert model.net_.optimizer_.param_groups[0]["lr"] == pytest.approx(0.08)
    model.partial_fit(problem.X, problem.y)  # at a constant rate
    assert model.callbacks[0].seen[-1] == pytest.approx(0.08)


def test_automatic_values_are_those_of_a_constant_rate(problem):
    X, y = problem.X, problem.y
    sizes = [
        CostSensitiveAuxMLP(max_epochs=1, schedule=schedule, random_state=0).fit(X, y).net_
        for schedule in (halving, "constant")
    ]
    assert sizes[0].lr == sizes[1].lr
    assert sizes[0].batch_size == sizes[1].batch_size


def test_a_scheduler_of_plateaus_sees_the_held_out_loss(problem):
    rates, model = rates_of(
        problem,
        schedule=lambda optimizer: ReduceLROnPlateau(optimizer, factor=0.1, patience=0),
        learning_rate=10.0,  # too large: the held-out loss rises
        early_stopping=True,
        loss="cross_entropy",
    )

    values = [record["valid_refinement"] for record in model.history_]
    expected, best = [10.0], np.inf
    for value in values[:-1]:
        expected.append(expected[-1] * (1 if value < best * (1 - 1e-4) else 0.1))
        best = min(best, value)
    assert rates == pytest.approx(expected)


def test_a_fit_that_was_interrupted_resumes_with_the_state_of_the_scheduler(
    problem, tmp_path, monkeypatch
):
    parameters = {"max_epochs": 5, "schedule": halving}
    whole = small_mlp(**parameters).fit(problem.X, problem.y)
    save = Checkpoints.save_epoch

    def killed(checkpoints, training, **more):
        save(checkpoints, training, **more)
        if len(training.net.history) == 2:
            raise SystemExit

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save_epoch", killed)
        with pytest.raises(SystemExit):
            small_mlp(**parameters, checkpoint_dir=tmp_path).fit(problem.X, problem.y)
    resumed = small_mlp(**parameters, checkpoint_dir=tmp_path).fit(problem.X, problem.y)

    np.testing.assert_array_equal(resumed.predict_cost(problem.X), whole.predict_cost(problem.X))


def test_the_pretrained_part_gets_a_fraction_of_the_rate_of_a_function(problem):
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    model = CostSensitiveAuxNet(
        module, optimizer=nesterov, pretrained_lr_factor=0.1, head_gradient=1.0, max_epochs=1,
        schedule="constant", random_state=0,
    ).fit(np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3)  # fmt: skip

    rates = sorted(group["lr"] for group in model.net_.optimizer_.param_groups)
    assert rates == pytest.approx([0.005, 0.05])
