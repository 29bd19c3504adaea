import numpy as np
import pytest
import torch

from auxcst_sklearn.modules import CostHead
from auxcst_sklearn.modules._layers import MapMeans


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


@pytest.mark.parametrize("shape", [(3, 4, 5, 6), (3, 4, 7), (2, 3, 2, 3, 4)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_gradient_of_pooled_maps_is_that_of_their_mean(shape, dtype):
    maps = torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    factors = torch.arange(shape[0] * shape[1]).view(shape[:2]).float()
    found, expected = maps.clone().requires_grad_(), maps.clone().requires_grad_()
    pooled = MapMeans.apply(found, torch.float32)
    torch.testing.assert_close(pooled, maps.float().flatten(2).mean(2))
    (pooled * factors).sum().backward()
    (expected.float().flatten(2).mean(2) * factors).sum().backward()
    assert found.grad.dtype == dtype
    torch.testing.assert_close(found.grad, expected.grad)
