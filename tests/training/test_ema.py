import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch import nn

from auxcst_sklearn._training.schedule import FIRST_STEPS, INTERVAL, WeightAverage
from tests.factories import small_mlp, small_stack


def by_hand(start, steps, horizon):
    """The exponential average of the weights after every step, in float64."""
    average = np.array(start, dtype=np.float64)
    for i, weight in enumerate(steps, start=1):
        if i % INTERVAL == 0:
            decay = min(1 - INTERVAL / max(horizon, INTERVAL), i / (i + FIRST_STEPS * INTERVAL))
            average = decay * average + (1 - decay) * weight
    return average


@pytest.mark.parametrize("horizon", [1, 12, 500])
def test_the_average_agrees_with_one_by_hand(horizon):
    steps = np.random.default_rng(0).normal(size=(30, 3))
    parameter = nn.Parameter(torch.zeros(3, dtype=torch.float64))
    average = WeightAverage([parameter], horizon)

    for step in steps:
        parameter.data.copy_(torch.from_numpy(step))
        average.update()

    average.put(in_place=True)
    np.testing.assert_allclose(parameter.detach(), by_hand([0] * 3, steps, horizon), rtol=1e-12)
    average.put(in_place=False)
    np.testing.assert_array_equal(parameter.detach(), steps[-1])


class Keep(Callback):
    """The weights of the output after every step, and at the end of every epoch."""

    def __init__(self):
        self.steps, self.epochs = [], []

    def on_train_begin(self, net, **kwargs):
        self.start = net.module_.output.weight.detach().clone().numpy()

    def on_batch_end(self, net, training, **kwargs):
        if training:
            self.steps.append(net.module_.output.weight.detach().clone().numpy())

    def on_epoch_end(self, net, **kwargs):
        self.epochs.append(net.module_.output.weight.detach().clone().numpy())


@pytest.mark.parametrize("make", [small_mlp, small_stack])
def test_a_training_ends_an_epoch_with_the_average_and_goes_on_without(make, problem):
    keep = Keep()
    parameters = {"optimizer": "sgd", "learning_rate": 0.1, "schedule": "constant"}
    model = make(ema_epochs=2, callbacks=[keep], early_stopping=False, batch_size=10, **parameters)
    model.fit(problem.X, problem.y)

    for i, found in enumerate(keep.epochs, start=1):
        expected = by_hand(keep.start, keep.steps[: 6 * i], horizon=12)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(model.net_.module_.output.weight.detach(), keep.epochs[-1])
    plain = make(ema_epochs=0, callbacks=[other := Keep()], early_stopping=False, batch_size=10)
    plain.set_params(**parameters).fit(problem.X, problem.y)
    np.testing.assert_array_equal(keep.steps, other.steps)


def test_partial_fit_takes_the_weights_of_its_last_step(problem):
    models = [small_stack(ema_epochs=a) for a in (0, 5)]
    for model in models:
        model.partial_fit(problem.X, problem.y, classes=[0, 1, 2])

    one, other = (model.predict_cost(problem.X) for model in models)
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("batch_size", [64, 30, 20])  # one to three steps an epoch
def test_an_epoch_of_few_steps_is_part_of_the_average(batch_size, problem):
    keep = Keep()
    small_mlp(ema_epochs=5, callbacks=[keep], batch_size=batch_size).fit(problem.X, problem.y)

    for before, after in zip([keep.start, *keep.epochs], keep.epochs):
        assert np.abs(after - before).max() > 0


def test_a_training_that_a_callback_ends_within_an_epoch_leaves_the_average(problem):
    class EndWithinAnEpoch(Keep):
        def on_batch_end(self, net, training, **kwargs):
            super().on_batch_end(net, training, **kwargs)
            if len(self.steps) == 8:
                raise KeyboardInterrupt

    end = EndWithinAnEpoch()
    model = small_mlp(ema_epochs=2, batch_size=10, callbacks=[end]).fit(problem.X, problem.y)

    expected = by_hand(end.start, end.steps, horizon=12)
    found = model.net_.module_.output.weight.detach()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    assert np.abs(found.numpy() - end.steps[-1]).max() > 1e-4
    assert len(model.history_) == 1
    assert "train_loss" in model.history_[0]
