import pickle

import numpy as np
import pytest
import torch

from auxcst_sklearn.modules import ACTIVATIONS, AuxMLP, AuxNetwork, SeededDropout


def test_heads_stand_on_every_dressed_layer():
    network = AuxMLP(5, 3, width=[7, 6, 4], dressed=[0, 1])

    assert isinstance(network, AuxNetwork)
    assert network.layers == ("hidden1", "hidden2", "output")
    assert [head.weight.shape for head in network.heads.values()] == [(3, 7), (3, 6)]
    assert network.output.weight.shape == (3, 4)
    n_parameters = 5 * 7 + 7 + 7 * 6 + 6 + 6 * 4 + 4 + (7 + 1) * 3 + (6 + 1) * 3 + (4 + 1) * 3
    assert sum(p.numel() for p in network.parameters()) == n_parameters


def test_forward_agrees_with_an_independent_computation():
    network = AuxMLP(5, 3, width=[7, 6], dressed=[0], activation="tanh").double()
    w = {name: p.detach().numpy() for name, p in network.named_parameters()}
    x = np.random.RandomState(0).normal(size=(4, 5))
    hidden1 = np.tanh(x @ w["hidden.hidden1.0.weight"].T + w["hidden.hidden1.0.bias"])
    hidden2 = np.tanh(hidden1 @ w["hidden.hidden2.0.weight"].T + w["hidden.hidden2.0.bias"])
    expected = [
        hidden1 @ w["heads.hidden1.weight"].T + w["heads.hidden1.bias"],
        hidden2 @ w["output.weight"].T + w["output.bias"],
    ]

    found = network.forward_heads(torch.from_numpy(x))

    for head, values in zip(found, expected):
        np.testing.assert_allclose(head.detach().numpy(), values)
    assert torch.equal(network(torch.from_numpy(x)), found[-1])


def test_networks_with_and_without_heads_start_alike():
    networks = []
    for dressed in ([0, 1], []):
        torch.manual_seed(0)
        networks.append(AuxMLP(5, 3, width=[7, 6, 4], dressed=dressed))
    dressed, plain = networks

    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, dressed.get_parameter(name))


def test_start_at_sets_the_biases_of_all_heads():
    network = AuxMLP(5, 3, width=[7, 6], dressed=[0])

    network.start_at(torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6]))

    assert network.output.bias.tolist() == [1, 2, 3]
    assert network.heads["hidden1"].bias.tolist() == [4, 5, 6]


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    network = AuxMLP(2, 2, width=[3], dressed=[], activation=activation)

    assert type(network.hidden["hidden1"][1]) is ACTIVATIONS[activation]
    assert network(torch.ones(1, 2)).shape == (1, 2)


def test_dropout_drops_its_share_and_keeps_the_mean():
    dropout = SeededDropout(0.25)
    dropout.generator = torch.Generator().manual_seed(0)
    x = torch.ones(100_000)

    y = dropout(x)

    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert y[y > 0].unique().tolist() == pytest.approx([1 / 0.75])
    assert torch.equal(dropout.eval()(x), x)


def test_dropout_draws_from_its_own_generator():
    before = torch.get_rng_state()
    draws = []
    for _ in range(2):
        dropout = SeededDropout(0.5)
        dropout.generator = torch.Generator().manual_seed(3)
        draws.append(dropout(torch.ones(50)))

    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)
    assert pickle.loads(pickle.dumps(dropout)).generator is None
