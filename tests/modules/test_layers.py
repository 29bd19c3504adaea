import pickle

import numpy as np
import pytest
import torch

from auxcst_sklearn.modules._aux_mlp import AuxMLP
from auxcst_sklearn.modules._layers import ACTIVATIONS, ScaledLinear, SeededDropout, draw_dropout


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(activation):
    network = AuxMLP(2, 2, width=[3], head_layers=[], activation=activation)

    assert type(network.hidden["hidden1"][1]) is ACTIVATIONS[activation]
    assert network(torch.ones(1, 2)).shape == (1, 2)


def test_dropout_drops_its_share_and_keeps_the_mean():
    dropout = SeededDropout(0.25)
    dropout.generator = torch.Generator().manual_seed(0)
    x = torch.ones(100_000)

    y = dropout(x)

    assert (y == 0).float().mean().item() == pytest.approx(0.25, abs=0.01)
    assert y[y > 0].unique().tolist() == pytest.approx([1 / 0.75])
    assert torch.equal(dropout.eval()(x), x)


@pytest.mark.parametrize("p", [1e-9, 0.3, 0.5, 1 - 1e-9])
def test_dropout_is_decided_by_a_byte_for_each_input(p):
    x = torch.ones(7, 9)
    words = torch.empty(8, dtype=torch.int64)
    words.random_(-(2**63), None, generator=torch.Generator().manual_seed(4))
    drop = min(max(round(256 * p), 1), 255)
    keep = words.numpy().view("uint8")[:63].reshape(7, 9) >= drop

    drawn = draw_dropout(x.shape, p, x, torch.Generator().manual_seed(4))

    assert drawn.tolist() == (keep * (256 / (256 - drop))).astype("float32").tolist()


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


def test_factors_of_some_inputs_are_learnt_and_start_at_one():
    torch.manual_seed(0)
    layer = ScaledLinear(4, 3, slice(1, 3)).double()
    x = np.random.RandomState(0).normal(size=(6, 4))
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()

    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), x @ weight.T + bias)

    layer.scale.data = torch.tensor([0.2, -0.3], dtype=torch.float64)
    expected = (x * [1, 3, -2, 1]) @ weight.T + bias
    np.testing.assert_allclose(layer(torch.from_numpy(x)).detach(), expected)
    layer(torch.from_numpy(x)).sum().backward()
    np.testing.assert_allclose(layer.scale.grad, 10 * (x.sum(axis=0) * weight.sum(axis=0))[1:3])
