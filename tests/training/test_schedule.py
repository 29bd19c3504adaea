"""The rates of one cycle, by a callback that sees them."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch.optim.lr_scheduler import OneCycleLR

from tests.factories import small_mlp

X, Y = np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 3


class Rates(Callback):
    """Notes the rate of each step."""

    def __init__(self):
        self.found = []

    def on_batch_end(self, net, training, **kwargs):
        self.found.append(net.optimizer_.param_groups[0]["lr"])


def fit(n_steps, batch_size=200):
    """A network after some steps, and their rates."""
    rates, n_epochs = Rates(), n_steps * batch_size // 200
    model = small_mlp(learning_rate=0.02, batch_size=batch_size, max_epochs=n_epochs)
    return model.set_params(callbacks=[rates]).fit(X, Y), rates.found


@pytest.mark.parametrize(
    ("n_steps", "batch_size"), [(5, 200), (9, 200), (11, 200), (40, 20), (333, 200)]
)
def test_the_rates_are_those_of_torch(n_steps, batch_size):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = OneCycleLR(
        optimizer, max_lr=0.02, total_steps=n_steps, pct_start=0.1, cycle_momentum=False
    )
    expected = []
    for _ in range(n_steps):
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        if len(expected) < n_steps:
            scheduler.step()

    assert fit(n_steps, batch_size)[1] == pytest.approx(expected, rel=1e-12)


def test_the_rate_is_back_at_its_peak_after_training():
    model, rates = fit(40, 20)
    assert np.argmax(rates) == 3
    rates.clear()
    model.partial_fit(X, Y)
    assert rates == pytest.approx([0.02] * 10)


@pytest.mark.parametrize("n_steps", [1, 2, 10])
def test_none_of_few_steps_is_lost(n_steps):
    _, rates = fit(n_steps)

    assert len(rates) == n_steps
    assert all(0 < rate <= 0.02 for rate in rates)
    assert n_steps > 1 or rates == [0.02]
