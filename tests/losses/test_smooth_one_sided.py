import pytest
import torch

from auxcst_sklearn.losses import OneSided, SmoothOneSided, Target
from tests.losses.formulas import torch_problem


@pytest.mark.parametrize("tau", [0.1, 1.0, 3.0])
def test_it_bounds_the_one_sided_loss_by_tau_ln_2_a_class(tau):
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
def test_it_refuses_a_smoothing_that_is_not_positive(tau):
    with pytest.raises(ValueError, match="tau must be positive"):
        SmoothOneSided(tau)


def test_far_from_the_costs_both_agree():
    outputs, target = torch_problem()
    far = Target(target.cost * 1e4, target.label)

    torch.testing.assert_close(
        SmoothOneSided()(outputs, far), OneSided()(outputs, far), atol=3, rtol=0
    )
