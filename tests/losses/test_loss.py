"""What all losses have in common, against an independent float64 computation."""

import numpy as np
import pytest
import torch

from auxcst_sklearn.losses import (
    LOSSES,
    BayesRisk,
    CrossEntropy,
    LayerWiseLoss,
    OneSided,
    SmoothOneSided,
    Softmin,
    Squared,
    Target,
)
from tests.losses.formulas import (
    cross_entropy,
    one_sided,
    problem,
    smooth_one_sided,
    softmin,
    squared,
    statistics,
    torch_problem,
)

EVERY_LOSS = [*LOSSES.values(), SmoothOneSided(tau=2.0), Softmin(tau=0.3), Softmin(tau=50)]
EVERY_LOSS.append(CrossEntropy(smoothing=0.2))


INDEPENDENT = {
    OneSided(): one_sided,
    LOSSES["smooth_one_sided"]: smooth_one_sided,
    SmoothOneSided(tau=2.0): lambda r, c, label: smooth_one_sided(r, c, label, tau=2),
    LOSSES["softmin"]: softmin,
    Softmin(tau=50): lambda r, c, label: softmin(r, c, label, tau=50),
    Softmin(tau=0.3): lambda r, c, label: softmin(r, c, label, tau=0.3),
    Squared(): squared,
    CrossEntropy(): cross_entropy,
    BayesRisk(): lambda r, c, label: cross_entropy(r, c, label, smoothing=0.05),
    CrossEntropy(smoothing=0.2): lambda r, c, label: cross_entropy(r, c, label, smoothing=0.2),
}


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_loss_agrees_with_an_independent_computation(loss):
    outputs, cost, label = problem()
    expected = [INDEPENDENT[loss](*row) for row in zip(outputs, cost, label)]

    found = loss(torch.from_numpy(outputs), Target(torch.from_numpy(cost), torch.from_numpy(label)))

    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_gradient(loss):
    outputs, target = torch_problem()
    outputs.requires_grad_(True)

    assert torch.autograd.gradcheck(lambda r: loss(r, target), outputs)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_stacked_heads_lose_what_each_loses_alone(loss):
    outputs, target = torch_problem()
    heads = torch.stack([outputs, outputs + 1, -outputs])

    stacked = loss(heads, target)

    assert stacked.shape == (3, len(outputs))
    for head, losses in zip(heads, stacked):
        torch.testing.assert_close(losses, loss(head, target))


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_no_overflow_for_any_unit(loss, unit):
    outputs, cost, label = problem()
    outputs = torch.tensor(outputs, dtype=torch.float32, requires_grad=True)
    target = Target(torch.tensor(cost * unit, dtype=torch.float32), torch.from_numpy(label))

    loss(outputs, target).sum().backward()

    assert torch.isfinite(loss(outputs, target)).all()
    assert torch.isfinite(outputs.grad).all()


def test_start_biases():
    stats, cost, label = statistics()

    np.testing.assert_allclose(OneSided().start_bias(stats).numpy(), cost.mean(axis=0))
    share = (np.bincount(label, minlength=4) + 1) / (len(label) + 4)
    np.testing.assert_allclose(CrossEntropy().start_bias(stats).numpy(), np.log(share))


@pytest.mark.parametrize("loss", [*LOSSES.values(), CrossEntropy(0.3)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 15, 40])
def test_the_mean_of_one_head_is_that_of_its_examples(loss, n_classes):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(7, n_classes, generator=generator, dtype=torch.float64)
    cost = torch.rand(7, n_classes, generator=generator, dtype=torch.float64)
    label = torch.randint(n_classes, (7,), generator=generator)
    outputs.requires_grad_()

    total, means = LayerWiseLoss(loss, loss, [])([outputs[None]], Target(cost, label))
    expected = loss(outputs, Target(cost, label)).mean()

    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(means, expected.detach().view(1, 1))
    (gradient,) = torch.autograd.grad(total, outputs)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, outputs)[0])


@pytest.mark.parametrize("loss", [*LOSSES.values(), CrossEntropy(0.3)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_means_of_stacked_heads_are_those_of_their_weighted_examples(loss, n_classes, weighted):
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(3, 7, n_classes, generator=generator, dtype=torch.float64)
    cost = torch.rand(7, n_classes, generator=generator, dtype=torch.float64)
    label = torch.randint(n_classes, (7,), generator=generator)
    weight = torch.rand(7, generator=generator, dtype=torch.float64) if weighted else None
    outputs.requires_grad_()

    target = Target(cost, label, weight)
    total, means = LayerWiseLoss(loss, loss, [1, 1])([*outputs[:, None]], target)
    each = torch.stack([loss(head, target) for head in outputs])
    expected = (each if weight is None else each * weight).sum(dim=1) / 7

    torch.testing.assert_close(means.squeeze(1), expected.detach())
    (gradient,) = torch.autograd.grad(total, outputs)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum(), outputs)[0])


class Focal(CrossEntropy):
    def __call__(self, outputs, target):
        loss = super().__call__(outputs, target)
        return (1 - torch.exp(-loss)) ** 2 * loss


def test_a_loss_of_ones_own_is_what_is_averaged():
    outputs = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
    target = Target(None, torch.tensor([0, 0]))

    total, _ = LayerWiseLoss(Focal(), Focal(), [])([outputs[None]], target)
    torch.testing.assert_close(total, Focal()(outputs, target).mean())
