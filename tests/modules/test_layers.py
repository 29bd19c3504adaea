import pickle

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn.modules import CostHead
from auxcst_sklearn.modules._layers import BatchedHead, BatchedLinear, SeededDropout


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.5, 1 - 1e-9])
def test_dropout_is_decided_by_a_byte_for_each_input(p):
    x = torch.ones(7, 9)
    words = torch.empty(8, dtype=torch.int64)
    words.random_(-(2**63), None, generator=torch.Generator().manual_seed(4))
    drop = min(max(round(256 * p), 1), 255)
    keep = words.numpy().view("uint8")[:63].reshape(7, 9) >= drop

    dropout = SeededDropout(p)
    dropout.generator = torch.Generator().manual_seed(4)
    drawn = dropout(x)

    assert drawn.tolist() == (keep * (256 / (256 - drop))).astype("float32").tolist()
    assert torch.equal(dropout.eval()(x), x)


def test_one_network_draws_sample_by_sample_and_several_draw_for_each():
    def draw(x):
        dropout = SeededDropout(0.5)
        dropout.generator = torch.Generator().manual_seed(0)
        return dropout(x)

    assert torch.equal(draw(torch.ones(1, 6, 50))[0].T, draw(torch.ones(50, 6)))
    kept = draw(torch.ones(4, 6, 50))
    assert set(kept.unique().tolist()) == {0, 2}
    for i in range(1, 4):
        assert abs(float((kept[0] == kept[i]).float().mean()) - 0.5) < 0.15


def test_dropout_draws_from_its_own_generator():
    before = torch.get_rng_state()
    draws = []
    for _ in range(2):
        dropout = SeededDropout(0.5)
        dropout.generator = torch.Generator().manual_seed(3)
        draws.append(dropout(torch.ones(50)))

    assert torch.equal(*draws)
    assert torch.equal(torch.get_rng_state(), before)
    assert pickle.loads(pickle.dumps(dropout)).generator is None


def linear_of(n_networks=3, scaled=None):
    torch.manual_seed(0)
    layer = BatchedLinear(4, 3, [None] * n_networks, scaled).double()
    return layer, layer.weight.detach().numpy(), layer.bias.detach().numpy()


@pytest.mark.parametrize("n_sets", [1, 3])
def test_products_of_several_networks(n_sets):
    layer, weight, bias = linear_of()
    x = np.random.RandomState(0).normal(size=(n_sets, 4, 6))
    expected = [weight[i] @ x[i % n_sets] + bias[i] for i in range(3)]

    found = layer(torch.from_numpy(x).expand(3, -1, -1)).detach()

    np.testing.assert_allclose(found, expected, rtol=1e-12)
    for i in range(3):
        rows = layer.of_network(i)(torch.from_numpy(x[i % n_sets].T)).detach()
        np.testing.assert_allclose(rows.T, expected[i], rtol=1e-12)


def test_the_layer_of_one_network_shares_its_weights():
    layer, *_ = linear_of()
    state = torch.get_rng_state()
    linear = layer.of_network(1)
    with torch.no_grad():
        linear.weight.fill_(2)
        linear.bias.fill_(3)

    assert torch.equal(torch.get_rng_state(), state)
    assert layer.weight.flatten(1).eq(2).all(dim=1).tolist() == [False, True, False]
    assert layer.bias.flatten(1).eq(3).all(dim=1).tolist() == [False, True, False]


def test_each_network_starts_like_a_linear_layer():
    torch.manual_seed(0)
    expected = [torch.nn.Linear(4, 3) for _ in range(2)]
    torch.manual_seed(0)
    layer = BatchedLinear(4, 3, [None] * 2)

    for i, linear in enumerate(expected):
        assert torch.equal(layer.weight[i], linear.weight)
        assert torch.equal(layer.bias[i, :, 0], linear.bias)


@pytest.mark.parametrize("trains", [True, False])
def test_factors_of_some_inputs_are_learnt_and_start_at_one(trains):
    layer, weight, bias = linear_of(2, slice(1, 3))
    layer.train(trains)
    x = np.random.RandomState(0).normal(size=(2, 4, 6))

    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), weight @ x + bias)

    layer.scale.data = torch.tensor([[[0.2, -0.3]], [[0.1, 0.0]]], dtype=torch.float64)
    factors = np.array([[1, 3, -2, 1], [1, 2, 1, 1]])[:, :, None]
    found = layer(torch.from_numpy(x))
    np.testing.assert_allclose(found.detach(), weight @ (x * factors) + bias)
    found.sum().backward()
    slopes = 10 * x.sum(axis=2) * weight.sum(axis=1)
    np.testing.assert_allclose(layer.scale.grad[:, 0], slopes[:, 1:3])


def test_heads_of_several_networks_compute_in_the_precision_of_their_weights():
    head = BatchedHead(4, 3, [None] * 2)
    x = torch.rand(2, 4, 5)
    with torch.autocast("cpu", torch.bfloat16):
        found = head(x)

    assert found.shape == (2, 5, 3)
    assert torch.equal(found, head(x))
    assert torch.equal(head(x.bfloat16()), head(x.bfloat16().float()))


def test_a_dense_layer_has_nothing_to_pool():
    head = CostHead((7,), 2)
    x = torch.rand(6, 7)

    assert torch.equal(head(x), torch.nn.functional.linear(x, head.weight, head.bias))


def test_a_head_computes_in_the_precision_of_its_weights():
    maps = torch.rand(6, 5, 3, 4).bfloat16()
    for head_input in ("mean", "flatten"):
        head = CostHead((5, 3, 4), 2, head_input)

        # Means of maps are rounded as the maps are.
        inputs = maps.float().mean((2, 3)).bfloat16() if head_input == "mean" else maps.flatten(1)
        expected = F.linear(inputs.float(), head.weight, head.bias)
        torch.testing.assert_close(head(maps), expected, atol=4e-3, rtol=0)
        assert head(maps).dtype == torch.float32


def test_the_mean_of_tokens_leaves_out_padding_whatever_it_contains():
    head, x = CostHead((4, 3), 2, axis=-1), torch.rand(3, 4, 3)
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0]])
    means = torch.stack([x[0, :2].mean(0), x[1].mean(0), torch.zeros(3)])
    padded = x.masked_fill(mask.unsqueeze(-1) == 0, torch.nan)  # as attention returns it

    found = head(padded, {"attention_mask": mask})

    torch.testing.assert_close(found, F.linear(means, head.weight, head.bias))
    other = head(x, {"attention_mask": torch.zeros(3, 5)})  # of other positions than the layer has
    torch.testing.assert_close(other, F.linear(x.mean(1), head.weight, head.bias))


@pytest.mark.parametrize(("axis", "n_features"), [(1, 5), (2, 8), (-1, 8), (-2, 5)])
def test_a_function_reads_the_channels_unless_it_returns_another_number(axis, n_features):
    head = CostHead((5, 8), 3, lambda x, inputs: x.mean(dim=3 - axis % 3), axis=axis)
    assert head.in_features == n_features
    assert head(torch.zeros(4, 5, 8)).shape == (4, 3)
    assert CostHead((5, 8), 3, lambda x, inputs: x[:, 0, :2], in_features=2).in_features == 2
