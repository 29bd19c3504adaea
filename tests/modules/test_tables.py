import pickle

import numpy as np
import pytest
import torch

from auxcst_sklearn.modules._mlp import AuxMLP
from auxcst_sklearn.modules._tables import FeatureInput, PiecewiseLinear, Standardize, UnitRange


def test_inputs_are_centred_and_scaled():
    X = np.random.RandomState(0).normal(5, [1, 20, 300], size=(50, 3))
    layer = Standardize(X.mean(axis=0), X.std(axis=0))

    found = layer(torch.from_numpy(X.astype(np.float32)))

    np.testing.assert_allclose(found, (X - X.mean(axis=0)) / X.std(axis=0), rtol=1e-4, atol=1e-5)
    assert list(layer.parameters()) == []


def test_a_network_sees_them_and_keeps_them():
    inputs = Standardize([1.0, 2.0], [3.0, 4.0])
    network = AuxMLP(2, 3, width=[4, 4], head_layers=[0], inputs=inputs).eval()
    x = torch.randn(1, 5, 2)
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


NAN = float("nan")
# Columns: a number, few levels (code 1 is rare), a number with gaps, many levels (code 2 is rare).
ROWS = torch.tensor(
    [[2.0, 0, NAN, 3], [NAN, 1, 5, 2], [4, 2, NAN, -1], [5, -1, 6, NAN], [6, NAN, 7, 0]]
)


def feature_input(**changes):
    given = {"gaps": [1, 2], "few": [(1, [True, False, True])]}
    given["many"] = [(3, [True, True, False, True]), (1, [False, True, True])]
    return FeatureInput([10.0, 20.0], [0, 2], **{**given, **changes})


def test_numbers_gaps_and_few_levels():
    inputs = feature_input(many=[])

    expected = [
        [2, 20, 0, 1, 1, 0],
        [10, 5, 0, 0, 0, 0],
        [4, 20, 0, 1, 0, 1],
        [5, 6, 0, 0, 0, 0],
        [6, 7, 1, 0, 0, 0],
    ]
    assert torch.equal(inputs(ROWS), torch.tensor(expected, dtype=torch.float32))
    assert torch.equal(inputs(ROWS.expand(3, 5, 4)), inputs(ROWS).expand(3, 5, 6))
    assert inputs.n_outputs == 6
    assert list(inputs.parameters()) == []
    inputs.set_fill([1.0, 2.0, 3.0, 4.0])
    assert inputs(ROWS)[:3, :2].tolist() == [[2, 3], [1, 5], [4, 3]]


def test_many_levels_have_vectors_and_rare_ones_share_one():
    inputs = feature_input()
    size = inputs.table.shape[2]

    (found,) = inputs(ROWS.unsqueeze(0))

    assert found.shape == (5, inputs.n_outputs)
    first, second = found[:, 6 : 6 + size], found[:, 6 + size :]
    (rows,) = inputs.table.detach()
    assert len(rows) == (1 + 3) + (1 + 2)
    assert torch.equal(first, rows[[3, 0, 0, 0, 1]])
    assert torch.equal(second, rows[[4, 5, 6, 4, 4]])
    assert not rows[[0, 4]].any()
    assert rows[[1, 2, 3, 5, 6]].all()
    found.sum().backward()
    assert inputs.table.grad[0, 0].tolist() == [3.0] * size


@pytest.mark.parametrize("n_sets", [1, 3])
@pytest.mark.parametrize("many", [[], [(3, [True, True, False, True])]])
def test_networks_see_their_own_vectors_and_bins(many, n_sets):
    bins = PiecewiseLinear([0, 1, 1], [0.0, 0.0, 5.0], [4.0, 5.0, 2.0])
    seeds = [torch.Generator().manual_seed(i) for i in range(3)]
    inputs = [feature_input(many=many, bins=bins, generators=[seed]) for seed in seeds]
    x = torch.stack([ROWS.roll(i, 0) for i in range(n_sets)])
    expected = torch.cat([part(x[[i % n_sets]]) for i, part in enumerate(inputs)]).detach()
    seeds = [torch.Generator().manual_seed(i) for i in range(3)]
    joined = feature_input(many=many, bins=bins, generators=seeds)
    sees_bins = torch.tensor([0.0, 1.0, 0.0]).view(3, 1, 1)

    found = joined(x).detach()

    size = 6 + 3
    expected[:, :, 6:size] *= sees_bins
    assert torch.equal(found, expected)
    known = torch.stack([x[i % n_sets] for i in range(3)]).nan_to_num(nan=10.0)[:, :, [0]]
    np.testing.assert_allclose(found[:, :, [6]], (known / 4).clamp(0, 1) * sees_bins)
