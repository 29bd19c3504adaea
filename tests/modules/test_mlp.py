import numpy as np
import pytest
import torch

from auxcst_sklearn.modules import AuxMLP, AuxNetwork


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


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"activation": "spin"}, "activation='spin'; expected one of 'elu'"),
        ({"dressed": [0, 2]}, r"dressed=\[0, 2\] must be indices of hidden layers"),
    ],
)
def test_what_does_not_exist_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        AuxMLP(4, 3, **{"width": [8, 8], "dressed": [0], **changed})
