import torch

from auxcst_sklearn.losses import OneSided, SmoothOneSided, Target
from tests.losses.formulas import torch_problem


def test_it_bounds_the_one_sided_loss_by_ln_2_a_class():
    outputs, target = torch_problem()

    excess = SmoothOneSided()(outputs, target) - OneSided()(outputs, target)

    assert (excess > 0).all()
    assert (excess <= 4 * torch.log(torch.tensor(2.0))).all()


def test_far_from_the_costs_both_agree():
    outputs, target = torch_problem()
    far = Target(target.cost * 1e4, target.label)

    torch.testing.assert_close(
        SmoothOneSided()(outputs, far), OneSided()(outputs, far), atol=3, rtol=0
    )
