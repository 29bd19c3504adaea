import torch

from auxcst_sklearn.modules._aux_mlp import AuxMLP
from auxcst_sklearn.modules._cost_network import ClassAndCostNetwork


def twin():
    classes = AuxMLP(4, 3, width=[8, 7], head_layers=[0])
    return ClassAndCostNetwork(classes, AuxMLP(4, 6, width=[8, 7], head_layers=[]))


def test_outputs_stand_side_by_side():
    network, x = twin(), torch.randn(5, 4)

    hidden, output = network.forward_heads(x)

    expected_hidden, expected = network.classes.forward_heads(x)
    assert torch.equal(hidden, expected_hidden)
    assert torch.equal(output, torch.cat([expected, network.costs(x)], dim=1))
    assert torch.equal(network(x), output)
    assert network.layers == ("hidden1", "output")


def test_the_second_network_starts_at_zero():
    network = twin()

    network.start_at(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0]))

    assert network.classes.output.bias.tolist() == [1, 2, 3]
    assert network.classes.heads["hidden1"].bias.tolist() == [4, 5, 6]
    assert torch.equal(network(torch.randn(5, 4))[:, 3:], torch.zeros(5, 6))


def test_precision_is_that_of_both():
    network = twin()
    network.set_precision(True)

    assert network.classes.bf16
    assert network.costs.bf16
