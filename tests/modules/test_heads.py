import numpy as np
import torch

from auxcst_sklearn.modules import CostHead


def test_pooled_heads_see_the_means_of_the_maps():
    head = CostHead((5, 3, 4), 2)
    maps = np.random.RandomState(0).normal(size=(6, 5, 3, 4))
    weight, bias = (p.detach().numpy().astype(float) for p in head.parameters())

    found = head(torch.from_numpy(maps).float()).detach().numpy()

    np.testing.assert_allclose(found, maps.mean(axis=(2, 3)) @ weight.T + bias, atol=1e-6)


def test_flat_heads_see_every_value():
    head = CostHead((5, 3, 4), 2, "flatten")
    maps = np.random.RandomState(0).normal(size=(6, 5, 3, 4))
    weight, bias = (p.detach().numpy().astype(float) for p in head.parameters())

    found = head(torch.from_numpy(maps).float()).detach().numpy()

    np.testing.assert_allclose(found, maps.reshape(6, 60) @ weight.T + bias, atol=1e-6)


def test_a_dense_layer_has_nothing_to_pool():
    head = CostHead((7,), 2)
    x = torch.rand(6, 7)

    assert torch.equal(head(x), torch.nn.functional.linear(x, head.weight, head.bias))


def test_heads_compute_in_the_precision_of_their_weights():
    maps = torch.rand(6, 5, 3, 4).bfloat16()
    for head_input in ("pool", "flatten"):
        head = CostHead((5, 3, 4), 2, head_input)

        assert torch.equal(head(maps), head(maps.float()))
