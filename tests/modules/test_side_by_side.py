import copy

import numpy as np
import pytest
import torch

from auxcst_sklearn.modules._aux_cnn import AuxCNN
from auxcst_sklearn.modules._cost_network import ClassAndCostNetwork
from auxcst_sklearn.modules._image_input import ImageInput
from auxcst_sklearn.modules._side_by_side import SideBySide
from auxcst_sklearn.modules._stacked import stack, weights_by_network


def make_networks(n=3, n_outputs=4, head_layers=(0,)):
    torch.manual_seed(0)
    sizes = {"channels": [3], "kernel_size": [3], "pool": [2], "width": [5]}
    return [
        AuxCNN(ImageInput((1, 6, 6)), n_outputs, head_layers=head_layers, **sizes) for _ in range(n)
    ]


@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("training", [True, False])
def test_each_network_gives_what_it_gives_alone(n_sets, training):
    networks = make_networks()
    alone = [copy.deepcopy(network).train(training) for network in networks]
    several = stack(networks).train(training)
    x = torch.randn(n_sets, 7, 1, 6, 6)

    assert isinstance(several, SideBySide)
    assert several.n_networks == 3
    assert several.layers == ("conv1", "output")
    outputs = several.forward_heads(x)
    for i, network in enumerate(alone):
        for output, expected in zip(outputs, network.forward_heads(x[i % n_sets])):
            torch.testing.assert_close(output[i], expected, rtol=0, atol=0)
        for name, value in network.state_dict().items():  # statistics of batches as well
            torch.testing.assert_close(several.networks[i].state_dict()[name], value)
    several.eval()
    torch.testing.assert_close(several(x), several.forward_heads(x)[-1])


def test_heads_of_all_networks_are_rescaled():
    several = stack(make_networks()).eval()
    x = torch.randn(1, 7, 1, 6, 6)
    hidden, output = several.forward_heads(x)
    with torch.no_grad():
        several.rescale_heads(3, 2, output=True, hidden=False)

    rescaled_hidden, rescaled = several.forward_heads(x)
    torch.testing.assert_close(rescaled, 3 * output + 2)
    torch.testing.assert_close(rescaled_hidden, hidden)


def test_the_precision_is_that_of_all_networks():
    several = stack(make_networks())
    several.set_precision(True)

    assert all(network.bf16 for network in several.networks)


def test_tensors_of_each_network_are_its_own():
    pairs = [ClassAndCostNetwork(*pair) for pair in zip(make_networks(), make_networks(3, 8, ()))]
    several = stack(pairs).eval()
    before, *_ = several.forward_heads(torch.ones(1, 2, 1, 6, 6))
    tensors = weights_by_network(several)
    with torch.no_grad():
        for tensor in tensors[1]:
            tensor.zero_()

    after, *_ = several.forward_heads(torch.ones(1, 2, 1, 6, 6))
    assert len(tensors) == 3
    assert [bool((b == a).all()) for b, a in zip(before, after)] == [True, False, True]
    names = dict(pairs[0].named_parameters()) | dict(pairs[0].named_buffers())
    assert len(tensors[0]) == len(names)
    assert np.isfinite(sum(float(t.sum()) for t in tensors[0]))
