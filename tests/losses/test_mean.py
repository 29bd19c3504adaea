import pytest
import torch

from auxcst_sklearn.losses import LOSSES, CrossEntropy, LayerWiseLoss, Target, get_loss


@pytest.mark.parametrize("loss", [*LOSSES, CrossEntropy(0.3)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 15, 40])
def test_the_mean_of_one_head_is_that_of_its_examples(loss, n_classes):
    loss = get_loss(loss)
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(7, n_classes, generator=generator, dtype=torch.float64)
    cost = torch.rand(7, n_classes, generator=generator, dtype=torch.float64)
    label = torch.randint(n_classes, (7,), generator=generator)
    outputs.requires_grad_()

    total, means = LayerWiseLoss(loss, loss, [])([outputs], Target(cost, label))
    expected = loss(outputs, cost, label).mean()

    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(means, expected.detach().view(1))
    (gradient,) = torch.autograd.grad(total, outputs)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected, outputs)[0])


@pytest.mark.parametrize("loss", [*LOSSES, CrossEntropy(0.3)], ids=str)
@pytest.mark.parametrize("n_classes", [2, 40])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_means_of_stacked_heads_are_those_of_their_weighted_examples(loss, n_classes, weighted):
    loss = get_loss(loss)
    generator = torch.Generator().manual_seed(0)
    outputs = torch.randn(3, 7, n_classes, generator=generator, dtype=torch.float64)
    cost = torch.rand(7, n_classes, generator=generator, dtype=torch.float64)
    label = torch.randint(n_classes, (7,), generator=generator)
    weight = torch.rand(7, generator=generator, dtype=torch.float64) if weighted else None
    outputs.requires_grad_()

    means = loss.mean(outputs, cost, label, weight)
    each = torch.stack([loss(head, cost, label) for head in outputs])
    expected = (each if weight is None else each * weight).sum(dim=1) / 7

    torch.testing.assert_close(means, expected)
    (gradient,) = torch.autograd.grad(means.sum(), outputs)
    torch.testing.assert_close(gradient, torch.autograd.grad(expected.sum(), outputs)[0])


class Focal(CrossEntropy):
    def __call__(self, outputs, cost, label):
        loss = super().__call__(outputs, cost, label)
        return (1 - torch.exp(-loss)) ** 2 * loss


def test_a_loss_of_ones_own_is_what_is_averaged():
    outputs, label = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0])

    torch.testing.assert_close(
        Focal().mean(outputs, None, label), Focal()(outputs, None, label).mean()
    )
