"""Optimizers of torch, with arguments of their own and a rate that skorch's callback sets."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback, Freezer, LRScheduler, Unfreezer
from torch.optim import SGD

from auxcst_sklearn import CostSensitiveAuxNet
from tests.factories import small_mlp


class Rates(Callback):
    """The rate of every epoch."""

    def on_epoch_begin(self, net, **kwargs):
        self.seen = [*getattr(self, "seen", []), net.optimizer_.param_groups[0]["lr"]]


def test_a_class_of_torch_with_its_arguments_and_a_schedule(problem):
    rates = Rates()
    model = small_mlp(
        max_epochs=4,
        optimizer=SGD,
        net_params={"optimizer__momentum": 0.9, "optimizer__nesterov": True},
        learning_rate=0.08,
        schedule="constant",
        callbacks=[rates, LRScheduler("ExponentialLR", gamma=0.5)],
    ).fit(problem.X, problem.y)

    assert rates.seen == pytest.approx([0.08, 0.04, 0.02, 0.01])
    (group,) = model.net_.optimizer_.param_groups
    assert (group["momentum"], group["nesterov"]) == (0.9, True)


def pretrained(**parameters):
    module = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    return module, CostSensitiveAuxNet(
        module, pretrained=True, schedule="constant", random_state=0, **parameters
    ).fit(np.random.default_rng(0).normal(size=(60, 4)), np.arange(60) % 3)


def test_the_pretrained_part_gets_a_fraction_of_the_rate_of_any_class():
    _, model = pretrained(optimizer=SGD, learning_rate=0.05, max_epochs=1)

    rates = sorted(group["lr"] for group in model.net_.optimizer_.param_groups)
    assert rates == pytest.approx([0.005, 0.05])


@pytest.mark.parametrize("max_epochs", [2, 3])
def test_callbacks_of_skorch_freeze_the_module_for_two_epochs(max_epochs):
    callbacks = [Freezer("*body*"), Unfreezer("*body*", at=3)]
    # Early stopping could return the weights of an epoch before the body was trained.
    module, model = pretrained(callbacks=callbacks, max_epochs=max_epochs, early_stopping=False)

    trained = model.net_.module_.networks[0].body.state_dict()
    same = [torch.equal(trained[name], module.state_dict()[name]) for name in trained]
    assert same == [max_epochs == 2] * 2
