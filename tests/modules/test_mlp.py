import numpy as np
import pytest
import torch
from scipy.special import expit

from auxcst_sklearn.modules import AuxNetwork
from auxcst_sklearn.modules._layers import ACTIVATIONS
from auxcst_sklearn.modules._mlp import AuxMLP
from auxcst_sklearn.modules._tables import Standardize, UnitRange

THREE = (None,) * 3  # networks, of torch's global generator


def test_heads_stand_on_every_layer_that_is_named():
    network = AuxMLP(5, 3, width=[7, 6, 4], head_layers=[0, 1])

    assert isinstance(network, AuxNetwork)
    assert network.layers == ("hidden1", "hidden2", "output")
    assert [head.weight.shape for head in network.heads.values()] == [(1, 3, 7), (1, 3, 6)]
    assert network.output.weight.shape == (1, 3, 4)
    n_parameters = 5 * 7 + 7 + 7 * 6 + 6 + 6 * 4 + 4 + (7 + 1) * 3 + (6 + 1) * 3 + (4 + 1) * 3
    assert sum(p.numel() for p in network.parameters()) == n_parameters


def states(network):
    """The parameters of each network, as arrays of single ones."""
    named = {name: p.detach().numpy() for name, p in network.named_parameters()}
    return [
        {name: p[i, :, 0] if name.endswith("bias") else p[i] for name, p in named.items()}
        for i in range(network.n_networks)
    ]


@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("trains", [False, True])
def test_forward_agrees_with_an_independent_computation(n_sets, trains):
    inputs = Standardize(range(5), [0.5] * 5)
    network = AuxMLP(
        5, 3, width=[7, 6], head_layers=[0], activation="tanh", inputs=inputs, generators=THREE
    )
    network.double().train(trains)
    x = np.random.RandomState(0).normal(size=(n_sets, 4, 5))

    found = network.forward_heads(torch.from_numpy(x))

    assert [head.shape for head in found] == [(3, 4, 3), (3, 4, 3)]
    for i, w in enumerate(states(network)):
        hidden = (x[i % n_sets] - np.arange(5)) / 0.5
        for name, r in zip(("hidden1", "hidden2"), found, strict=True):
            hidden = np.tanh(hidden @ w[f"hidden.{name}.0.weight"].T + w[f"hidden.{name}.0.bias"])
            head = "heads.hidden1" if name == "hidden1" else "output"
            expected = hidden @ w[f"{head}.weight"].T + w[f"{head}.bias"]
            np.testing.assert_allclose(r[i].detach(), expected, rtol=1e-10)
    assert torch.equal(network(torch.from_numpy(x)), found[-1])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    network = AuxMLP(2, 2, width=[3], head_layers=[], activation=activation)

    assert type(network.hidden["hidden1"][1]) is ACTIVATIONS[activation]
    assert network(torch.ones(1, 4, 2)).shape == (1, 4, 2)


def test_several_networks_give_what_each_gives_alone():
    def networks_of(*seeds):
        generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        given = {"width": [7, 6], "head_layers": [0], "dropout": 0.5, "scaled": slice(1, 4)}
        return AuxMLP(5, 3, **given, generators=generators).eval()

    alone, joined = [networks_of(seed) for seed in range(3)], networks_of(0, 1, 2)
    x = torch.randn(3, 9, 5)

    assert joined.n_networks == 3
    assert len(list(joined.parameters())) == len(list(alone[0].parameters()))
    outputs = joined.forward_heads(x)
    losses = sum(r.square().sum() for r in outputs)
    losses.backward()
    for i, network in enumerate(alone):
        expected = network.forward_heads(x[[i]])
        for found, r in zip(outputs, expected, strict=True):
            torch.testing.assert_close(found[[i]], r)
        sum(r.square().sum() for r in expected).backward()
        weights = dict(zip(dict(joined.named_parameters()), joined.weights()[i], strict=True))
        for name, parameter in network.named_parameters():
            gradient = joined.get_parameter(name).grad[[i]]
            torch.testing.assert_close(gradient, parameter.grad, rtol=1e-4, atol=1e-5)
            assert torch.equal(weights[name], parameter[0])


def test_twenty_rows_get_the_same_alone_and_together():
    torch.manual_seed(0)
    network = AuxMLP(20, 3, width=[33, 7], head_layers=[], activation="silu", generators=THREE)
    network.eval()
    n = network.even_rows
    x = torch.randn(1, n, 20)

    together = network(x)

    for i in range(n):
        torch.testing.assert_close(network(x.roll(i, 1)), together.roll(i, 1), rtol=0, atol=1e-7)


def test_networks_with_and_without_heads_start_alike():
    networks = []
    for head_layers in ([0, 1], []):
        torch.manual_seed(0)
        networks.append(AuxMLP(5, 3, width=[7, 6, 4], head_layers=head_layers))
    with_heads, plain = networks

    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, with_heads.get_parameter(name))


def test_the_code_of_a_sigmoid_network_on_scaled_inputs():
    torch.manual_seed(0)
    inputs = UnitRange([-1.0, 0.0], [3.0, 1.0])
    network = AuxMLP(
        2, 3, width=[4, 3], head_layers=(), activation="sigmoid", inputs=inputs
    ).double()
    x = np.random.RandomState(0).uniform([-1, 0], [3, 1], size=(6, 2))
    (state,) = states(network)
    layers = [(x - [-1, 0]) / [4, 1]]
    for name in ("hidden1", "hidden2"):
        weight, bias = state[f"hidden.{name}.0.weight"], state[f"hidden.{name}.0.bias"]
        layers.append(expit(layers[-1] @ weight.T + bias))
    output = layers[-1] @ state["output.weight"].T + state["output.bias"]

    x = torch.from_numpy(x).unsqueeze(0)
    with torch.no_grad():
        for i, expected in enumerate(layers):
            np.testing.assert_allclose(network.code(x, i)[0], expected, rtol=1e-12)
        np.testing.assert_allclose(network(x)[0], output, rtol=1e-12)
        (only,) = network.forward_heads(x)
    np.testing.assert_allclose(only[0], output, rtol=1e-12)
    assert network.layers == ("output",)
