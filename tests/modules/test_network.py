import torch

from auxcst_sklearn.modules._aux_mlp import AuxMLP


def test_start_at_sets_the_biases_of_all_heads():
    network = AuxMLP(5, 3, width=[7, 6], head_layers=[0])

    network.start_at(torch.tensor([1.0, 2, 3]), torch.tensor([4.0, 5, 6]))

    assert network.output.bias.tolist() == [1, 2, 3]
    assert network.heads["hidden1"].bias.tolist() == [4, 5, 6]
