import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auxcst_sklearn.losses import (
    LOSSES,
    CrossEntropy,
    OneSided,
    SmoothOneSided,
    Softmin,
    Squared,
    Target,
)
from tests.losses.formulas import problem, statistics, torch_problem

reals = st.floats(-100, 100)


@settings(deadline=None)
@given(
    outputs=arrays(float, (3, 4), elements=reals),
    cost=arrays(float, (3, 4), elements=st.floats(0, 100)),
)
def test_one_sided_loss_bounds_the_cost_of_the_prediction(outputs, cost):
    cost = cost - cost.min(axis=1, keepdims=True)
    label = torch.from_numpy(cost.argmin(axis=1))

    for name in ("one_sided", "smooth_one_sided"):
        loss = LOSSES[name](torch.from_numpy(outputs), Target(torch.from_numpy(cost), label))
        paid = cost[np.arange(3), outputs.argmin(axis=1)]
        assert (loss.numpy() >= paid - 1e-9).all()


def test_one_sided_sign_is_plus_at_every_cheapest_class():
    target = Target(torch.tensor([[2.0, 2.0, 5.0]]), torch.tensor([0]))

    under = OneSided()(torch.tensor([[1.0, 0.0, 6.0]]), target)
    over = OneSided()(torch.tensor([[3.0, 2.5, 4.0]]), target)

    assert under.item() == 0.0
    assert over.item() == 1.0 + 0.5 + 1.0


@pytest.mark.parametrize("tau", [0.1, 1.0, 3.0])
def test_the_smooth_loss_bounds_the_one_sided_loss_by_tau_ln_2_a_class(tau):
    outputs, target = torch_problem()

    excess = SmoothOneSided(tau)(outputs, target) - OneSided()(outputs, target)

    assert (excess > 0).all()
    assert (excess <= 4 * tau * torch.log(torch.tensor(2.0))).all()


@pytest.mark.parametrize("unit", [0.2, 5.0])
def test_a_smoothing_in_currency_is_one_in_units_of_the_cost(unit):
    outputs, target = torch_problem()
    in_units = Target(target.cost / unit, target.label)

    torch.testing.assert_close(
        unit * SmoothOneSided(1 / unit)(outputs / unit, in_units),
        SmoothOneSided(1.0)(outputs, target),
    )


@pytest.mark.parametrize("tau", [0, -1.0, float("nan")])
def test_a_smoothing_is_refused_that_is_not_positive(tau):
    with pytest.raises(ValueError, match="tau must be positive"):
        SmoothOneSided(tau)


def test_far_from_the_costs_smooth_and_one_sided_loss_agree():
    outputs, target = torch_problem()
    far = Target(target.cost * 1e4, target.label)

    torch.testing.assert_close(
        SmoothOneSided()(outputs, far), OneSided()(outputs, far), atol=3, rtol=0
    )


def test_softmin_tends_to_cross_entropy_on_the_cheapest_class():
    outputs = torch.from_numpy(problem()[0])[:1]
    cost = torch.tensor([[2.0, 1.0, 0.0, 3.0]], dtype=torch.float64)
    tau = 1e-2

    cold = Softmin(tau)(outputs * tau, Target(cost, torch.tensor([0])))

    expected = CrossEntropy()(-outputs, Target(cost, torch.tensor([2])))
    torch.testing.assert_close(cold, expected)


def test_softmin_tends_to_squared_error_of_centred_rows():
    outputs, target = torch_problem()
    cost = target.cost
    tau = 1e4

    def centre(a):
        return a - a.mean(dim=1, keepdim=True)

    excess = Softmin(tau)(outputs, target) - Softmin(tau)(cost, target)

    error = (centre(outputs) - centre(cost)).square().sum(dim=1)
    torch.testing.assert_close(excess * 2 * tau**2 * 4, error, rtol=1e-3, atol=1e-3)


def test_softmin_estimates_have_the_mean_cost_as_level():
    stats, cost, _ = statistics()
    outputs = torch.from_numpy(problem()[0])

    estimate = Softmin().to_cost(outputs, stats)

    np.testing.assert_allclose(estimate.mean(dim=1).numpy(), cost.mean())
    assert torch.equal(estimate.argmin(dim=1), outputs.argmin(dim=1))


@pytest.mark.parametrize("tau", [0, -1.0, float("nan")])
def test_softmin_refuses_a_temperature_that_is_not_positive(tau):
    with pytest.raises(ValueError, match="tau must be positive"):
        Softmin(tau)


def test_the_best_constant_is_the_mean_cost():
    cost = torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = Target(cost, torch.zeros(20, dtype=torch.int64))
    constant = cost.mean(dim=0).requires_grad_()

    Squared()(constant.expand(20, 3), target).mean().backward()

    torch.testing.assert_close(constant.grad, torch.zeros_like(constant))
