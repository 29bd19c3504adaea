import copy

import numpy as np
import pytest
import torch

from auxcst_sklearn.modules import ResidualCNN
from auxcst_sklearn.modules._images import ImageLayer
from auxcst_sklearn.modules._mlp import AuxMLP
from auxcst_sklearn.modules._network import ClassAndCostNetwork, SideBySide
from auxcst_sklearn.modules.wrapping import WrappedNetwork


def make_networks(n=3, n_outputs=4, hidden_layers=("stage1.block1",)):
    torch.manual_seed(0)
    parts = [(ImageLayer((1, 6, 6)), ResidualCNN((1, 6, 6), channels=(3, 5))) for _ in range(n)]
    return [WrappedNetwork(*part, n_outputs, hidden_layers=hidden_layers) for part in parts]


@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("training", [True, False])
def test_each_network_side_by_side_gives_what_it_gives_alone(n_sets, training):
    networks = make_networks()
    alone = [copy.deepcopy(network).train(training) for network in networks]
    several = SideBySide(networks).train(training)
    x = torch.randn(n_sets, 7, 1, 6, 6)

    assert several.n_networks == 3
    assert several.layers == ("stage1.block1", "output")
    outputs = several.forward_heads(x)
    for i, network in enumerate(alone):
        for output, expected in zip(outputs, network.forward_heads(x[i % n_sets])):
            torch.testing.assert_close(output[i], expected, rtol=0, atol=0)
        for name, value in network.state_dict().items():  # statistics of batches as well
            torch.testing.assert_close(several.networks[i].state_dict()[name], value)
    several.eval()
    torch.testing.assert_close(several(x), several.forward_heads(x)[-1])


def test_a_module_never_sees_the_dimension_of_networks():
    (alone,) = make_networks(1)
    one = SideBySide([alone]).eval()
    shapes = []
    alone.register_forward_pre_hook(lambda network, args: shapes.append(args[0].shape))

    assert one(torch.randn(1, 7, 1, 6, 6)).shape == (1, 7, 4)
    assert one.networks[0] is alone
    assert shapes == [(7, 1, 6, 6)]


def test_heads_of_all_networks_are_rescaled():
    several = SideBySide(make_networks()).eval()
    x = torch.randn(1, 7, 1, 6, 6)
    hidden, output = several.forward_heads(x)
    with torch.no_grad():
        several.rescale_heads(3, 2, output=True, hidden=False)

    rescaled_hidden, rescaled = several.forward_heads(x)
    torch.testing.assert_close(rescaled, 3 * output + 2)
    torch.testing.assert_close(rescaled_hidden, hidden)


def test_the_precision_is_that_of_all_networks():
    several, pair = SideBySide(make_networks()), twin()
    several.set_precision(True)
    pair.set_precision(True)

    assert all(network.bf16 for network in (*several.networks, pair.classes, pair.costs))


def test_tensors_of_each_network_are_its_own():
    both = SideBySide(make_networks()), SideBySide(make_networks(n_outputs=8, hidden_layers=()))
    several = ClassAndCostNetwork(*both).eval()
    before, *_ = several.forward_heads(torch.ones(1, 2, 1, 6, 6))
    tensors = several.weights()
    with torch.no_grad():
        for tensor in tensors[1]:
            tensor.zero_()

    after, *_ = several.forward_heads(torch.ones(1, 2, 1, 6, 6))
    assert len(tensors) == 3
    assert [bool((b == a).all()) for b, a in zip(before, after)] == [True, False, True]
    own = [list(part.networks[0].state_dict()) for part in (several.classes, several.costs)]
    assert len(tensors[0]) == sum(map(len, own))
    assert not any("head" in name for name in own[1])
    assert np.isfinite(sum(float(t.sum()) for t in tensors[0]))


def twin(*seeds):
    generators = [torch.Generator().manual_seed(seed) for seed in seeds or (0,)]
    classes = AuxMLP(4, 3, width=[8, 7], head_layers=[0], generators=generators)
    costs = AuxMLP(4, 6, width=[8, 7], head_layers=[0], generators=generators)
    return ClassAndCostNetwork(classes, costs)


def test_outputs_of_a_pair_stand_side_by_side():
    network, x = twin(), torch.randn(1, 5, 4)

    hidden, output = network.forward_heads(x)

    expected_hidden, expected = network.classes.forward_heads(x)
    assert torch.equal(hidden, expected_hidden)
    assert torch.equal(output, torch.cat([expected, network.costs(x)], dim=2))
    assert torch.equal(network(x), output)
    assert network.layers == ("hidden1", "output")


def test_the_second_network_starts_at_zero():
    network = twin()

    network.start_at(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]))

    assert network.classes.output.bias.flatten().tolist() == [1, 2, 3]
    assert network.classes.heads["hidden1"].bias.flatten().tolist() == [4, 5, 6]
    assert torch.equal(network(torch.randn(1, 5, 4))[:, :, 3:], torch.zeros(1, 5, 6))


def test_several_pairs_give_what_each_gives_alone():
    alone, together = [twin(seed) for seed in range(3)], twin(0, 1, 2)
    x = torch.randn(1, 5, 4)

    assert together.n_networks == 3
    for i, pair in enumerate(alone):
        for found, expected in zip(together.forward_heads(x), pair.forward_heads(x), strict=True):
            torch.testing.assert_close(found[[i]], expected)
        assert all(map(torch.equal, together.weights()[i], (p[0] for p in pair.parameters())))
