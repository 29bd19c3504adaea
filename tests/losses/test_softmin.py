import numpy as np
import pytest
import torch

from auxcst_sklearn.losses import CrossEntropy, Softmin, Target
from tests.losses.formulas import problem, statistics, torch_problem


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
