import numpy as np
import pytest
import torch

from auxcst_sklearn.modules import SeededModule
from auxcst_sklearn.modules._aux_mlp import AuxMLP
from auxcst_sklearn.modules._cost_network import ClassAndCostNetwork
from auxcst_sklearn.modules._feature_input import FeatureInput, Standardize
from auxcst_sklearn.modules._layers import ScaledLinear
from auxcst_sklearn.modules._stacked import SharedDropout, StackedMLP, stack, unstack

HEAD_LAYERS = ([], [0], [1], [0, 1])
BOTH = pytest.mark.parametrize("scaled", [None, slice(1, 4)])


def make_networks(**params):
    torch.manual_seed(0)
    networks = [
        AuxMLP(5, 3, width=[7, 6, 4], head_layers=layers, activation="tanh", **params).double()
        for layers in HEAD_LAYERS
    ]
    for network in networks:
        for layer in network.modules():
            if isinstance(layer, ScaledLinear):
                layer.scale.data.normal_(std=0.1)
    return networks


def give_generator(network, seed):
    generator = torch.Generator().manual_seed(seed)
    for module in network.modules():
        if isinstance(module, SeededModule):
            module.generator = generator


def give_generators(stacked, n_generators, n_sets):
    generators = [torch.Generator().manual_seed(i) for i in range(n_generators)]
    for module in stacked.modules():
        if isinstance(module, SharedDropout):
            module.generators, module.n_sets = generators, n_sets


def assert_same_outputs(stacked, networks, x):
    outputs = dict(zip(stacked.layers, stacked.forward_heads(x)))
    for i, network in enumerate(networks):
        for name, expected in zip(network.layers, network.forward_heads(x[i % len(x)])):
            np.testing.assert_allclose(outputs[name][i].detach(), expected.detach(), rtol=1e-12)


@BOTH
@pytest.mark.parametrize("trains", [False, True])
def test_each_network_gives_what_it_gives_alone(scaled, trains):
    networks = make_networks(scaled=scaled)
    stacked = stack(networks).train(trains)

    assert isinstance(stacked, StackedMLP)
    assert stacked.layers == ("hidden1", "hidden2", "output")
    assert_same_outputs(stacked, networks, torch.randn(1, 9, 5).double())


@pytest.mark.parametrize("n_seeds", [1, 2])
def test_dropout_of_a_seed_is_shared_and_as_alone(n_seeds):
    networks = make_networks(dropout=0.5)
    for i, network in enumerate(networks):
        give_generator(network, i % n_seeds)
    stacked = stack(networks)
    give_generators(stacked, n_seeds, n_seeds)
    x = torch.randn(n_seeds, 9, 5).double()
    outputs = stacked.forward_heads(x)[-1]

    for i, network in enumerate(networks):
        give_generator(network, i % n_seeds)
        np.testing.assert_allclose(
            outputs[i].detach(), network(x[i % n_seeds]).detach(), rtol=1e-12
        )

    stacked.eval()
    for network in networks:
        network.eval()
    assert_same_outputs(stacked, networks, x)


@pytest.mark.parametrize("n_generators", [1, 2])
def test_sets_of_rows_have_masks_of_their_own(n_generators):
    dropout = SharedDropout(0.5)
    give_generators(dropout, n_generators, 4)

    kept = dropout(torch.ones(8, 50, 6))

    assert set(kept.unique().tolist()) == {0, 2}
    assert torch.equal(kept[:4], kept[4:])
    for i in range(1, 4):
        assert not torch.equal(kept[0], kept[i])
        # With two generators the sets of one are no copies of those of the other.
        assert abs(float((kept[0] == kept[i]).float().mean()) - 0.5) < 0.15


def test_the_stacks_of_two_models_draw_what_each_draws_alone():
    networks = make_networks(dropout=0.5)
    stacks = [stack(networks[:2]), stack(networks[2:])]
    joint = stack(stacks)
    x = torch.randn(2, 9, 5).double()
    give_generators(joint, 1, 2)

    outputs = dict(zip(joint.layers, joint.forward_heads(x)))

    for one, part in zip(stacks, (slice(2), slice(2, 4))):
        give_generators(one, 1, 2)
        for name, expected in zip(one.layers, one.forward_heads(x)):
            np.testing.assert_allclose(
                outputs[name][part].detach(), expected.detach(), rtol=1e-12, atol=1e-15
            )


def test_inputs_are_scaled():
    networks = make_networks(inputs=Standardize(range(5), [0.5] * 5))

    x = torch.randn(1, 9, 5).double()
    assert_same_outputs(stack(networks), networks, x)
    assert_same_outputs(stack(networks), networks, torch.cat([x, x + 1]))


def test_twin_networks():
    networks = [
        ClassAndCostNetwork(network, AuxMLP(5, 6, width=[4], head_layers=[]).double())
        for network in make_networks()
    ]
    x = torch.randn(1, 9, 5).double()

    assert_same_outputs(stack(networks), networks, x)


@BOTH
def test_gradients_of_a_network_are_its_own_and_missing_heads_get_none(scaled):
    networks = make_networks(scaled=scaled)
    stacked = stack(networks)
    x = torch.randn(1, 9, 5).double()
    weight = torch.tensor([[name in n.layers for n in networks] for name in stacked.layers])

    losses = torch.stack(stacked.forward_heads(x)).square().sum(dim=(2, 3))
    (losses * weight).sum().backward()

    for i, network in enumerate(networks):
        sum(r.square().sum() for r in network.forward_heads(x[0])).backward()
        for name, parameter in network.named_parameters():
            gradient = stacked.get_parameter(name).grad[i].reshape(parameter.shape)
            np.testing.assert_allclose(gradient, parameter.grad, rtol=1e-10)
    assert not stacked.heads["hidden1"].weight.grad[0].any()


@BOTH
def test_weights_go_back_to_their_networks(scaled):
    networks = make_networks(scaled=scaled)
    stacked = stack(networks)
    with torch.no_grad():
        for parameter in stacked.parameters():
            parameter.normal_()

    unstack(stacked, networks)

    assert_same_outputs(stacked, networks, torch.randn(1, 9, 5).double())


def test_weights_go_back_to_stacks():
    networks = make_networks()
    stacks = [stack(networks[:3]), stack(networks[3:])]
    joint = stack(stacks)
    with torch.no_grad():
        for parameter in joint.parameters():
            parameter.normal_()

    unstack(joint, stacks)

    for one, part in zip(stacks, (slice(3), slice(3, 4))):
        for name, parameter in one.named_parameters():
            assert torch.equal(parameter, joint.get_parameter(name)[part])


def test_estimates_of_a_row_do_not_depend_on_its_neighbours():
    torch.manual_seed(0)  # torch adds the inputs of narrower layers in other orders
    stacked = stack([AuxMLP(5, 3, width=[32, 32], head_layers=[0]) for _ in range(3)]).eval()
    x = torch.randn(1, 70, 5)

    whole = stacked(x)

    for n in (4, 5, 16, 33):
        assert torch.equal(stacked(x[:, :n]), whole[:, :n])


def test_the_networks_themselves_stay_as_they_are():
    networks = make_networks()
    before = [p.clone() for network in networks for p in network.parameters()]
    stacked = stack(networks)
    with torch.no_grad():
        for parameter in stacked.parameters():
            parameter.normal_()

    after = [p for network in networks for p in network.parameters()]
    assert all(map(torch.equal, before, after))


@pytest.mark.parametrize("n_sets", [1, 2])
@pytest.mark.parametrize("many", [[], [(4, [True] * 40), (2, [False, True])]])
def test_categories_of_each_network(many, n_sets):
    torch.manual_seed(0)

    def categories():
        few = [(1, [True, False, True])]
        return FeatureInput([7.0, 8.0], [0, 3], gaps=[0, 1], few=few, many=many)

    inputs = [categories() for _ in range(4)]
    networks = [
        AuxMLP(part.n_outputs, 3, width=[7, 6], head_layers=[0], inputs=part).double()
        for part in inputs
    ]
    x = torch.randint(-1, 2, (n_sets, 9, 5)).double()
    x[:, ::3] = float("nan")
    stacked = stack(networks)

    assert_same_outputs(stacked, networks, x)
    assert {len(parameter) for parameter in stacked.parameters()} == {4}

    with torch.no_grad():
        for parameter in stacked.parameters():
            parameter.normal_()
    unstack(stacked, networks)
    assert_same_outputs(stacked, networks, x)
