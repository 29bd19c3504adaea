import torch

from auxcst_sklearn.losses import Squared, Target


def test_the_best_constant_is_the_mean_cost():
    cost = torch.rand(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    target = Target(cost, torch.zeros(20, dtype=torch.int64))
    constant = cost.mean(dim=0).requires_grad_()

    Squared().mean(constant.expand(20, 3), target).backward()

    torch.testing.assert_close(constant.grad, torch.zeros_like(constant))
