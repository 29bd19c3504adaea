import pickle

import numpy as np
import torch

from auxcst_sklearn.modules import AuxMLP, Standardize, UnitRange


def test_inputs_are_centred_and_scaled():
    X = np.random.RandomState(0).normal(5, [1, 20, 300], size=(50, 3))
    layer = Standardize(X.mean(axis=0), X.std(axis=0))

    found = layer(torch.from_numpy(X.astype(np.float32)))

    np.testing.assert_allclose(found, (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-4, atol=1e-5)
    assert list(layer.parameters()) == []


def test_a_network_sees_them_and_keeps_them():
    inputs = Standardize([1.0, 2.0], [3.0, 4.0])
    network = AuxMLP(2, 3, width=[4, 4], head_layers=[0], inputs=inputs).eval()
    x = torch.randn(5, 2)
    copy = pickle.loads(pickle.dumps(network))

    heads = network.forward_heads(x)

    assert torch.equal(network(x), heads[-1])
    network.inputs = torch.nn.Identity()
    for found, expected in zip(heads, network.forward_heads(inputs(x)), strict=True):
        assert torch.equal(found, expected)
    assert torch.equal(copy(x), heads[-1])


def test_unit_range_maps_and_clips():
    unit_range = UnitRange(low=[-2.0, 0.0, 5.0], high=[2.0, 1.0, 5.0])
    x = torch.tensor([[-2.0, 0.3, 5.0], [1.0, 1.0, 5.5], [3.0, -0.1, 4.0]])
    expected = torch.tensor([[0.0, 0.3, 0.0], [0.75, 1.0, 0.5], [1.0, 0.0, 0.0]])
    assert torch.equal(unit_range(x), expected)
