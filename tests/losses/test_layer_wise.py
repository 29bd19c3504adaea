import pytest
import torch

from auxcst_sklearn._training.batches import join_targets
from auxcst_sklearn.losses import (
    LOSSES,
    LayerWiseLoss,
    OneSided,
    Squared,
    Target,
)
from auxcst_sklearn.losses._layer_wise import StackedLayerWiseLoss
from tests.losses.formulas import torch_problem


@pytest.mark.parametrize("aux_loss", [OneSided(), Squared()])
@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 0.0, 2.0, 1.0, 1.0, 1.0])])
def test_layer_wise_loss(aux_loss, weight):
    outputs, target = torch_problem()
    heads = [outputs, outputs + 1, -outputs]
    w = torch.ones(6) if weight is None else weight
    expected = [
        (w * loss(head, target)).mean()
        for loss, head in zip([aux_loss, aux_loss, OneSided()], heads)
    ]
    objective = LayerWiseLoss(OneSided(), aux_loss, alpha=[0.5, 0.1]).double()

    total, losses = objective(heads, target._replace(weight=weight))

    torch.testing.assert_close(losses, torch.stack(expected))
    torch.testing.assert_close(total, 0.5 * expected[0] + 0.1 * expected[1] + expected[2])


@pytest.mark.parametrize("loss", LOSSES.values(), ids=repr)
def test_layer_wise_loss_of_the_output_alone(loss):
    outputs, target = torch_problem()

    total, losses = LayerWiseLoss(loss, Squared(), alpha=[])([outputs], target)

    expected = loss(outputs, target).mean()
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(losses, expected.view(1))


@pytest.mark.parametrize("n_row_sets", [1, 2])
@pytest.mark.parametrize("aux_loss", [OneSided(), Squared()])
def test_a_stack_loses_what_each_of_its_networks_loses(aux_loss, n_row_sets):
    generator = torch.Generator().manual_seed(0)
    weights = torch.tensor([[0.5, 0.1, 0.0, 2.0], [1.0, 1.0, 1.0, 1.0]])
    outputs = list(torch.randn(2, 4, 5, 3, generator=generator))
    targets = [
        Target(
            torch.rand(5, 3, generator=generator),
            torch.randint(3, (5,), generator=generator),
            torch.rand(5, generator=generator),
        )
        for _ in range(n_row_sets)
    ]
    objective = StackedLayerWiseLoss(OneSided(), aux_loss, weights, n_row_sets=n_row_sets)

    total, losses = objective(outputs, join_targets(targets))

    expected = 0
    for i in range(4):
        alone = LayerWiseLoss(OneSided(), aux_loss, alpha=weights[:1, i].tolist())
        of_one, losses_of_one = alone([r[i] for r in outputs], targets[i % n_row_sets])
        torch.testing.assert_close(losses[:, i], losses_of_one)
        expected += of_one
    torch.testing.assert_close(total, expected)
