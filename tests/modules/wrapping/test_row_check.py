import pytest
import torch
from torch import nn

from auxcst_sklearn.modules._images import ImageLayer
from auxcst_sklearn.modules.wrapping import WrappedNetwork
from auxcst_sklearn.modules.wrapping._body import check_rows_apart


class Sequences(nn.Module):
    """A layer of sequences, whatever it returns beside, and the mean or last of its outputs."""

    def __init__(self, layer, n_features, transposed=False, last=False):
        super().__init__()
        self.layer, self.fc = layer, nn.Linear(n_features, 2)
        self.transposed, self.last = transposed, last

    def forward(self, x):
        if self.transposed:
            x = x.transpose(0, 1)
        out = self.layer(x)
        out = out[0] if isinstance(out, tuple) else out
        if self.transposed:
            out = out.transpose(0, 1)
        return self.fc(out[:, -1] if self.last else out.mean(1))


def attention(**parameters):
    layer = nn.TransformerEncoderLayer(8, 2, 16, **parameters)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def wrap(module, shape=(5, 8), hidden_layers=()):
    return WrappedNetwork(ImageLayer(shape), module, 3, hidden_layers=hidden_layers)


@pytest.mark.parametrize(
    "module",
    [
        lambda: Sequences(attention(), 8),
        lambda: Sequences(nn.LSTM(8, 6), 6, last=True),
        lambda: Sequences(nn.GRU(8, 6), 6),
    ],
)
def test_modules_that_mix_rows_are_refused(module):
    with pytest.raises(ValueError, match="Sequences mixes the rows of a batch: .*batch_first=True"):
        wrap(module())


def test_layers_whose_first_dimension_is_no_row_are_refused():
    with pytest.raises(ValueError, match=r"mixes the rows of a batch in 'layer\.layers\.0'"):
        wrap(Sequences(attention(), 8, transposed=True), hidden_layers=["layer.layers.0"])


class Noisy(nn.Linear):
    def forward(self, x):
        return super().forward(x + torch.rand_like(x))


@pytest.mark.parametrize(
    ("module", "shape"),
    [
        (lambda: Sequences(attention(batch_first=True), 8), (5, 8)),
        (lambda: Sequences(attention(), 8, transposed=True), (5, 8)),
        (lambda: Sequences(nn.LSTM(8, 6, batch_first=True), 6, last=True), (5, 8)),
        (lambda: nn.Sequential(nn.LazyBatchNorm1d(), nn.LazyLinear(8), nn.Linear(8, 2)), (4,)),
        (lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(), nn.Linear(4, 2)), (4,)),
        (lambda: nn.Sequential(Noisy(4, 4), nn.Linear(4, 2)), (4,)),
        (lambda: nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 2)), (4,)),
    ],
)
def test_modules_that_keep_rows_apart(module, shape):
    module = module()
    training = [part.training for part in module.modules()]
    network = wrap(module, shape)

    assert network(torch.zeros(2, *shape)).shape == (2, 3)
    assert [part.training for part in network.body.modules()] == training
    statistics = [value for name, value in network.body.state_dict().items() if "running" in name]
    assert all(value.unique().numel() == 1 for value in statistics)


def test_the_check_draws_nothing_from_the_global_generator():
    module = nn.Sequential(Noisy(4, 4), nn.Linear(4, 2))
    state = torch.get_rng_state()

    rows = torch.ones(2, 4)
    check_rows_apart(module, rows, [rows[:1], rows[1:]], [])

    assert torch.equal(torch.get_rng_state(), state)
