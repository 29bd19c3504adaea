import numpy as np
import pytest
import torch

from auxcst_sklearn.losses import LOSSES, LayerWiseLoss, OneSided, Squared, Target
from tests.losses.formulas import one_sided, problem, squared, torch_problem


@pytest.mark.parametrize("aux_loss", [OneSided(), Squared()])
@pytest.mark.parametrize("weight", [None, [1.0, 0.0, 2.0, 1.0, 1.0, 1.0]])
@pytest.mark.parametrize("n_sets", [1, 2])
def test_objectives_of_two_networks_with_heads_on_two_layers(aux_loss, weight, n_sets):
    outputs, cost, label = problem()
    rng = np.random.default_rng(0)
    heads = [outputs + rng.normal(size=(2, *outputs.shape)) for _ in range(3)]
    sets = [cost, cost[::-1]][:n_sets]
    w = np.ones(6) if weight is None else np.array(weight)
    formulas = [{OneSided: one_sided, Squared: squared}[type(aux_loss)]] * 2 + [one_sided]
    expected = [
        [
            np.mean([w[i] * formula(r[i], sets[k % n_sets][i], label[i]) for i in range(6)])
            for k, r in enumerate(head)
        ]
        for formula, head in zip(formulas, heads)
    ]
    target = Target(
        torch.from_numpy(np.concatenate(sets)),
        torch.from_numpy(np.tile(label, n_sets)),
        None if weight is None else torch.tensor(weight * n_sets),
    )
    objective = LayerWiseLoss(OneSided(), aux_loss, alpha=[0.5, 0.1]).double()

    total, losses = objective([torch.from_numpy(head) for head in heads], target)

    np.testing.assert_allclose(losses, expected, rtol=1e-12)
    weights = objective.alphas.numpy()  # float32, as parameters of a net
    np.testing.assert_allclose(total, (weights * np.array(expected)).sum(), rtol=1e-12)
    np.testing.assert_allclose(weights[:, 0], [0.5, 0.1, 1], rtol=1e-6)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=repr)
def test_the_output_of_one_network_alone(loss):
    outputs, target = torch_problem()

    total, losses = LayerWiseLoss(loss, Squared(), alpha=[])([outputs[None]], target)

    expected = loss(outputs, target).mean()
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(losses, expected.view(1, 1))
