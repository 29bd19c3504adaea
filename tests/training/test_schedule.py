import pytest
import torch
from torch.optim.lr_scheduler import OneCycleLR

from auxcst_sklearn._training.schedule import WARM_UP, one_cycle


@pytest.mark.parametrize("n_steps", [5, 9, 11, 40, 333])
def test_the_rates_are_those_of_torch(n_steps):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = OneCycleLR(
        optimizer, max_lr=1.0, total_steps=n_steps, pct_start=WARM_UP, cycle_momentum=False
    )
    expected = []
    for _ in range(n_steps):
        expected.append(scheduler.get_last_lr()[0])
        optimizer.step()
        if len(expected) < n_steps:
            scheduler.step()

    assert list(one_cycle(n_steps)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_steps", [1, 2, 10])
def test_none_of_few_steps_is_lost(n_steps):
    rates = list(one_cycle(n_steps))

    assert len(rates) == n_steps
    assert all(0 < rate <= 1 for rate in rates)
    assert n_steps > 1 or rates == [1.0]
