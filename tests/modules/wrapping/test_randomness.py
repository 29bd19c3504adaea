import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn.modules.wrapping._wrapped import SeededDraws
from tests.factories import small_net


def draw(function, seed=0):
    with SeededDraws(torch.Generator().manual_seed(seed)):
        return function()


@pytest.mark.parametrize(
    "function",
    [
        lambda: nn.Dropout(0.4)(torch.ones(30)),
        lambda: nn.Dropout(0.4, inplace=True)(torch.ones(30)),
        lambda: F.dropout(torch.ones(30), 0.4),
        lambda: torch.dropout(torch.ones(30), 0.4, True),
        lambda: nn.Dropout1d(0.4)(torch.ones(30, 2, 3)),
        lambda: nn.Dropout2d(0.4)(torch.ones(30, 2, 3, 3)),
        lambda: nn.Dropout3d(0.4)(torch.ones(30, 2, 3, 3, 3)),
        lambda: torch.bernoulli(torch.full((30,), 0.4)),
        lambda: torch.full((30,), 0.4).bernoulli(),
        lambda: torch.empty(30).bernoulli_(0.4),
        lambda: torch.empty(30).normal_(),
        lambda: torch.empty(30).uniform_(-1, 1),
        lambda: torch.bernoulli(input=torch.full((30,), 0.4)),
        lambda: torch.rand(30),
        lambda: torch.rand((30, 1), dtype=torch.float64, device="cpu"),
        lambda: torch.randn(30, requires_grad=True),
        lambda: torch.randint(9, (30,)),
        lambda: torch.randperm(30),
        lambda: torch.normal(0.0, 1.0, (30,)),
        lambda: torch.normal(torch.zeros(30), 1.0),
        lambda: torch.multinomial(torch.ones(2, 9), 4),
        lambda: torch.empty(30).exponential_(),
        lambda: torch.empty(30).random_(9),
        lambda: torch.rand_like(torch.ones(30)),
        lambda: torch.randn_like(torch.ones(30, dtype=torch.int64), dtype=torch.float32),
    ],
)
def test_draws_follow_the_generator_alone(function):
    before = torch.get_rng_state()

    first, again, other = draw(function), draw(function), draw(function, seed=1)

    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(torch.get_rng_state(), before)


class Noisy(nn.Module):
    """Noise, and stochastic depth as in transformers."""

    def __init__(self):
        super().__init__()
        self.inputs, self.block, self.output = nn.Linear(4, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        x = torch.relu(self.inputs(x))
        if self.training:
            x = torch.lerp(x, torch.randn_like(x), 0.1)
        kept = torch.rand(len(x), 1, device=x.device) < 0.8 if self.training else 1
        return self.output(torch.relu(x + kept * self.block(x)))


def test_noise_of_a_module_follows_the_random_state():
    X, y = np.random.RandomState(0).randn(60, 4).astype(np.float32), np.arange(60) % 3
    first = small_net(Noisy).fit(X, y).predict_proba(X)
    torch.rand(1)
    before = torch.get_rng_state()
    np.testing.assert_array_equal(small_net(Noisy).fit(X, y).predict_proba(X), first)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_drops_its_share_and_keeps_the_mean():
    y = draw(lambda: F.dropout(torch.ones(100_000), 0.25))

    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert y[y > 0].unique().tolist() == pytest.approx([1 / 0.75])


def test_whole_maps_are_dropped():
    y = draw(lambda: F.dropout2d(torch.ones(100, 50, 3, 3), 0.4)).flatten(2)

    assert torch.equal(y.amin(2), y.amax(2))
    assert (y == 0).float().mean().item() == pytest.approx(0.4, abs=0.02)


def test_dropout_in_place():
    x = torch.ones(30)

    assert draw(lambda: F.dropout(x, 0.4, inplace=True)) is x
    assert (x == 0).any()


@pytest.mark.parametrize(
    ("kwargs", "expected"), [({"training": False}, 1), ({"p": 0.0}, 1), ({"p": 1.0}, 0)]
)
def test_dropout_of_nothing_and_of_all(kwargs, expected):
    found = draw(lambda: F.dropout(torch.ones(30), **kwargs))

    assert found.tolist() == [expected] * 30


def test_a_generator_of_the_caller_counts():
    def function():
        return torch.empty(30).normal_(generator=torch.Generator().manual_seed(7))

    assert torch.equal(draw(function), function())


def test_other_functions_are_as_ever():
    x = torch.randn(3, 4)

    assert torch.equal(draw(lambda: F.linear(x, x) + torch.relu(x).sum()), x @ x.T + x.relu().sum())


def test_arguments_by_name():
    named = draw(lambda: torch.dropout(input=torch.ones(30), p=0.4, train=True))
    assert torch.equal(named, draw(lambda: torch.dropout(torch.ones(30), 0.4, True)))
    without = draw(lambda: torch.empty(5).normal_(generator=None))
    assert torch.equal(without, draw(lambda: torch.empty(5).normal_()))
