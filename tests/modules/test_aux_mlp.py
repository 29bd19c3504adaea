import numpy as np
import pytest
import torch
from scipy.special import expit

from auxcst_sklearn.modules import AuxNetwork
from auxcst_sklearn.modules._aux_mlp import AuxMLP
from auxcst_sklearn.modules._feature_input import UnitRange


def test_heads_stand_on_every_layer_that_is_named():
    network = AuxMLP(5, 3, width=[7, 6, 4], head_layers=[0, 1])

    assert isinstance(network, AuxNetwork)
    assert network.layers == ("hidden1", "hidden2", "output")
    assert [head.weight.shape for head in network.heads.values()] == [(3, 7), (3, 6)]
    assert network.output.weight.shape == (3, 4)
    n_parameters = 5 * 7 + 7 + 7 * 6 + 6 + 6 * 4 + 4 + (7 + 1) * 3 + (6 + 1) * 3 + (4 + 1) * 3
    assert sum(p.numel() for p in network.parameters()) == n_parameters


def test_forward_agrees_with_an_independent_computation():
    network = AuxMLP(5, 3, width=[7, 6], head_layers=[0], activation="tanh").double()
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
    for head_layers in ([0, 1], []):
        torch.manual_seed(0)
        networks.append(AuxMLP(5, 3, width=[7, 6, 4], head_layers=head_layers))
    with_heads, plain = networks

    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, with_heads.get_parameter(name))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"activation": "spin"}, "activation='spin'; expected one of 'elu'"),
        ({"head_layers": [0, 2]}, r"head_layers=\[0, 2\] must be indices of hidden layers"),
    ],
)
def test_what_does_not_exist_is_named(changed, message):
    with pytest.raises(ValueError, match=message):
        AuxMLP(4, 3, **{"width": [8, 8], "head_layers": [0], **changed})


def test_the_code_of_a_sigmoid_network_on_scaled_inputs():
    torch.manual_seed(0)
    inputs = UnitRange([-1.0, 0.0], [3.0, 1.0])
    network = AuxMLP(
        2, 3, width=[4, 3], head_layers=(), activation="sigmoid", inputs=inputs
    ).double()
    x = np.random.RandomState(0).uniform([-1, 0], [3, 1], size=(6, 2))
    state = {name: value.numpy() for name, value in network.state_dict().items()}
    layers = [(x - [-1, 0]) / [4, 1]]
    for name in ("hidden1", "hidden2"):
        weight, bias = state[f"hidden.{name}.0.weight"], state[f"hidden.{name}.0.bias"]
        layers.append(expit(layers[-1] @ weight.T + bias))
    output = layers[-1] @ state["output.weight"].T + state["output.bias"]

    x = torch.from_numpy(x)
    with torch.no_grad():
        for i, expected in enumerate(layers):
            np.testing.assert_allclose(network.code(x, i), expected, rtol=1e-12)
        np.testing.assert_allclose(network(x), output, rtol=1e-12)
        (only,) = network.forward_heads(x)
    np.testing.assert_allclose(only, output, rtol=1e-12)
    assert network.layers == ("output",)
