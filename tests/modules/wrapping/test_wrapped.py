import pickle
import threading
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn

from auxcst_sklearn.modules import AuxNetwork
from auxcst_sklearn.modules._images import ImageLayer
from auxcst_sklearn.modules.wrapping import WrappedNetwork
from tests.modules.nets import dress


def small_cnn():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv2d(2, 4, 1), nn.Tanh(), nn.Flatten(), nn.Linear(24, 5), nn.Tanh(), nn.Linear(5, 10)
    )


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


class Returns(nn.Module):
    """A linear layer, and what becomes of its output."""

    def __init__(self, function):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self.unused = nn.ReLU()
        self.function = function

    def forward(self, x):
        return self.function(self, self.fc(x))


@pytest.mark.parametrize("head_input", ["mean", "flatten"])
def test_heads_agree_with_an_independent_computation(head_input):
    network = dress(small_cnn(), (2, 2, 3), head_input=head_input).double()
    w = {name: p.detach().numpy() for name, p in network.named_parameters()}
    x = np.random.RandomState(0).normal(size=(7, 2, 2, 3))
    kernels = w["body.0.weight"][:, :, 0, 0]
    maps = np.tanh(np.einsum("ncij,kc->nkij", x, kernels) + w["body.0.bias"][:, None, None])
    seen = maps.mean(axis=(2, 3)) if head_input == "mean" else maps.reshape(7, -1)
    dense = np.tanh(maps.reshape(7, -1) @ w["body.3.weight"].T + w["body.3.bias"])
    expected = [
        seen @ w["heads.hidden1.weight"].T + w["heads.hidden1.bias"],
        dense @ w["output.weight"].T + w["output.bias"],
    ]

    found = network.forward_heads(torch.from_numpy(x))

    assert isinstance(network, AuxNetwork)
    assert network.layers == ("1", "output")
    for head, values in zip(found, expected, strict=True):
        np.testing.assert_allclose(head.detach().numpy(), values)
    assert torch.equal(network(torch.from_numpy(x)), found[-1])


def test_heads_of_a_residual_network(resnet18):
    body = n_parameters(resnet18) - n_parameters(resnet18.fc)
    network = dress(resnet18, (3, 16, 16), head_input="mean", head_gradient=1).train()

    outputs = network.forward_heads(torch.randn(4, 3, 16, 16))
    torch.stack(outputs).sum().backward()

    assert network.layers[:3] == ("relu", "layer1.0", "layer1.1")
    assert [tuple(r.shape) for r in outputs] == [(4, 3)] * 9
    channels = [4, 4, 4, 4, 4, 6, 6, 8, 8]  # stem, seven blocks, and the output on the last one
    assert n_parameters(network) == body + sum((n + 1) * 3 for n in channels)
    assert all(parameter.grad is not None for parameter in network.parameters())


def test_heads_read_what_their_layer_puts_out():
    torch.manual_seed(0)
    act = nn.ReLU(inplace=True)
    module = nn.Sequential(
        nn.Linear(4, 6), act, nn.Linear(6, 5), act, nn.Linear(5, 4), act, nn.Linear(4, 2)
    )
    names = ["0", "1:1", "2", "1:2"]  # 0 and 2 are overwritten by the activation
    network = dress(module, (4,), names)
    x = torch.randn(8, 4)
    w = [p.detach() for p in network.body.parameters()]
    first = x @ w[0].T + w[1]
    second = first.relu() @ w[2].T + w[3]

    outputs = network.train().forward_heads(x)
    torch.cat(outputs).sum().backward()

    seen = [first, first.relu(), second, second.relu()]
    for head, inputs, output in zip(network.heads.values(), seen, outputs):
        torch.testing.assert_close(output, head(inputs))


def test_functional_activations_and_dropout(functional_net):
    network = dress(functional_net, (1, 10, 10)).train()
    x = torch.randn(4, 1, 10, 10)
    state = torch.get_rng_state()
    runs = []
    for _ in range(2):
        network.generator = torch.Generator().manual_seed(0)
        runs.append(network.forward_heads(x))

    assert network.layers == ("relu():1", "relu():2", "output")
    assert [tuple(r.shape) for r in runs[0]] == [(4, 3)] * 3
    assert all(torch.equal(first, again) for first, again in zip(*runs))
    assert not torch.equal(runs[0][-1], network.eval().forward_heads(x)[-1])
    assert torch.equal(torch.get_rng_state(), state)


def test_prediction_runs_without_heads_and_hooks():
    hooks = []

    class Spy(nn.ReLU):
        def forward(self, x):
            hooks.append(len(self._forward_hooks))
            return super().forward(x)

    network = dress(nn.Sequential(nn.Linear(4, 4), Spy(), nn.Linear(4, 2)), (4,), ["1"]).eval()
    hooks.clear()

    network.forward_heads(torch.ones(1, 4))
    network(torch.ones(1, 4))

    assert hooks == [1, 0]


def test_threads_may_share_a_network(resnet18):
    network = dress(resnet18, (3, 16, 16)).eval()
    xs = torch.randn(8, 2, 3, 16, 16)
    expected = [network.forward_heads(x) for x in xs]
    found = [None] * len(xs)

    def run(i):
        network(xs[i])
        found[i] = network.forward_heads(xs[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(xs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for heads, values in zip(found, expected):
        torch.testing.assert_close(heads, values)


def test_networks_with_and_without_heads_start_alike():
    networks = []
    for names in (["1"], []):
        module = small_cnn()
        torch.manual_seed(1)
        networks.append(dress(module, (2, 2, 3), names))
    with_heads, plain = networks

    for name, parameter in plain.named_parameters():
        assert torch.equal(parameter, with_heads.get_parameter(name))


@pytest.mark.parametrize("end", [nn.Softmax(dim=1), nn.LogSoftmax(dim=1), nn.Dropout()])
def test_what_may_stand_behind_the_output_layer(end):
    network = dress(nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2), end), (4,)).eval()
    x = torch.randn(3, 4)

    torch.testing.assert_close(network(x), network.output(network.body[0](x).relu()))


def test_a_linear_layer_alone():
    network = dress(nn.Linear(4, 2), (4,))

    assert network.layers == ("output",)
    assert network(torch.ones(5, 4)).shape == (5, 3)


def test_an_output_layer_of_two_names_is_removed_from_both():
    module = Returns(lambda self, x: x)
    module.head = module.fc

    network = dress(module, (4,))

    assert n_parameters(network) == (4 + 1) * 3


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda self, x: ("x", 1), TypeError, "Returns returns an object of type tuple; expected"),
        (lambda self, x: {"out": x}, TypeError, "returns an object of type dict"),
        (lambda self, x: x.softmax(1), ValueError, "Returns does not end with an nn.Linear"),
        (lambda self, x: x.relu_(), ValueError, "does not end with an nn.Linear"),
        (lambda self, x: self.fc(x.repeat(1, 2)), ValueError, "does not end with an nn.Linear"),
        (lambda self, x: x.sum(1), ValueError, r"returned a tensor of shape \(1,\)"),
    ],
)
def test_modules_without_a_plain_output_layer(function, error, message):
    with pytest.raises(error, match=message):
        dress(Returns(function), (4,), [])


def test_an_output_layer_must_give_rows():
    with pytest.raises(ValueError, match=r"it returned a tensor of shape \(1, 6, 2\)"):
        dress(nn.Sequential(nn.Linear(4, 2)), (6, 4), [])


def test_the_head_of_a_skipped_layer_learns_nothing():
    class Skips(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x):
            return self.b(x if self.training else self.a(x))

    network = dress(Skips(), (4,), ["a"])

    assert len(network.eval().forward_heads(torch.ones(2, 4))) == 2
    heads = network.train().forward_heads(torch.ones(2, 4))
    torch.testing.assert_close(heads[0], network.heads["hidden1"].bias.expand(2, -1))
    assert not heads[0].requires_grad


def test_outputs_must_be_tensors_in_training():
    network = dress(Returns(lambda self, x: {"out": x} if self.training else x), (4,), [])

    with pytest.raises(TypeError, match="Returns returns an object of type dict in training"):
        network.train().forward_heads(torch.ones(2, 4))


def test_frozen_parts_stay_as_they_are(resnet18):
    network = dress(resnet18, (3, 16, 16))
    for name in ("layer1", "layer2", "conv1", "bn1"):
        network.body.get_submodule(name).requires_grad_(False)
    network.train()
    before = deepcopy(network.state_dict())
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    torch.stack(network.forward_heads(torch.randn(4, 3, 16, 16))).square().sum().backward()
    optimizer.step()

    parts = ("body.layer1", "body.layer2", "body.conv1", "body.bn1")
    frozen = {name for name in before if name.startswith(parts)}
    after = network.state_dict()
    changed = {name for name in before if not torch.equal(after[name], before[name])}
    assert changed == set(before) - frozen


def test_copies_and_pickles(functional_net):
    network = dress(functional_net, (1, 10, 10)).eval()
    network.generator = torch.Generator()
    x = torch.randn(2, 1, 10, 10)

    for copy in (deepcopy(network), pickle.loads(pickle.dumps(network))):
        assert copy.generator is None
        assert copy.layers == network.layers
        torch.testing.assert_close(copy.forward_heads(x), network.forward_heads(x))


@pytest.mark.parametrize(
    ("n_channels", "stride", "is_safe"), [(3, 2, False), (3, 1, True), (16, 2, True)]
)
def test_strided_convolutions_of_few_channels_keep_the_order_of_rows(n_channels, stride, is_safe):
    """With channels last oneDNN writes beyond its memory in their gradient."""
    seen = []
    first = nn.Conv2d(n_channels, 48, 1, stride)
    first.register_forward_hook(lambda part, given, output: seen.append(given[0]))
    module = nn.Sequential(
        first, nn.ReLU(), nn.Conv2d(48, 4, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)
    )
    images = ImageLayer((32, 32, n_channels), channels_last=True)
    network = WrappedNetwork(images, module, 2, hidden_layers=[])
    x = torch.rand(8, 32, 32, n_channels)
    plain = deepcopy(network.body).to(memory_format=torch.contiguous_format)
    seen.clear()

    network(x)

    assert seen[0].is_contiguous() != is_safe
    assert network.body[2].weight.is_contiguous() != is_safe
    network.body(seen[0]).sum().backward()
    plain(x.movedim(-1, 1).contiguous()).sum().backward()
    for own, expected in zip(network.body.parameters(), plain.parameters()):
        torch.testing.assert_close(own.grad, expected.grad, rtol=1e-4, atol=1e-3)
