"""Which layers are hidden ones where data come by several ways, and the axis of their features."""

import numpy as np
import pytest
import torch
from torch import nn

from auxcst_sklearn.modules import find_hidden_layers
from auxcst_sklearn.modules.wrapping import is_trained
from auxcst_sklearn.modules.wrapping._hidden_layers import hidden_layers
from auxcst_sklearn.modules.wrapping._tracing import Trace
from tests.factories import small_net
from tests.modules.nets import Net, dense


def blocks(n, **parameters):
    known = {"dropout": 0.0, "batch_first": True, **parameters}
    return nn.ModuleList(nn.TransformerEncoderLayer(8, 2, 16, **known) for _ in range(n))


def encoder(masked):
    def forward(self, ids):
        keep = ids != 0
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x, src_key_padding_mask=~keep) if masked else block(x)
        weight = keep.unsqueeze(-1).float() if masked else torch.ones(1, 1, 1)
        x = (x * weight).sum(1) / weight.sum(1).clamp(min=1)
        return self.fc(torch.tanh(self.pooler(x)))

    embed, place = nn.Embedding(20, 8), nn.Embedding(20, 8)
    parts = {"pooler": nn.Linear(8, 8), "fc": nn.Linear(8, 3)}
    return Net(forward, embed=embed, place=place, blocks=blocks(4), **parts)


@pytest.mark.parametrize("masked", [False, True])
def test_blocks_of_a_transformer_are_its_hidden_layers(masked):
    found = find_hidden_layers(encoder(masked), (6,))

    assert found == [f"blocks.{i}" for i in range(4)]


def test_arrays_by_name_as_example():
    class Named(Net):
        def forward(self, ids, mask):
            return self.fc(self.blocks(self.embed(ids), src_key_padding_mask=mask == 0)[:, 0])

    stack = nn.TransformerEncoder(blocks(1)[0], 3)
    module = Named(None, embed=nn.Embedding(20, 8), blocks=stack, fc=nn.Linear(8, 3))
    given = {"ids": np.array([[3, 4, 0], [5, 0, 0]]), "mask": [[1, 1, 0], [1, 0, 0]]}

    assert find_hidden_layers(module, given) == [f"blocks.layers.{i}" for i in range(3)]
    assert stack.use_nested_tensor


def test_one_block_that_runs_several_times():
    def forward(self, x):
        for _ in range(3):
            x = self.group[0](x)
        return self.fc(x.mean(1))

    module = Net(forward, group=blocks(1), fc=nn.Linear(8, 3))

    assert find_hidden_layers(module, (5, 8)) == ["group.0:1", "group.0:2", "group.0:3"]


def test_branches_and_stages_are_no_repeated_blocks():
    def joined(self, x):
        return self.fc(torch.cat([part(x) for part in self.parts], dim=2).mean(1))

    branches = Net(joined, parts=blocks(3), fc=nn.Linear(24, 3))
    found = find_hidden_layers(branches, (5, 8))
    assert found[-1] == "cat()"
    assert [name.rpartition(".")[0] for name in found[:-1]] == [f"parts.{i // 2}" for i in range(6)]

    stages = {name: nn.Sequential(*blocks(2)) for name in "ab"}
    two = Net(lambda self, x: self.fc(self.b(self.a(x)).mean(1)), **dense(8), **stages)
    assert len(find_hidden_layers(two, (5, 8))) == 8  # a sum after attention, and one at the end


def test_joins_of_parts_of_one_tensor_are_no_layers():
    def halved(self, x):
        x = torch.relu(self.a(x))
        parts = [x[:, i::2, j::2] for i in range(2) for j in range(2)]
        x = torch.relu(self.b(self.reduction(torch.cat(parts, dim=-1))))
        first, second = x[..., :4].flatten(1), x[..., 4:].flatten(1)
        return self.fc(torch.relu(self.c(first + second)))

    layers = {"b": nn.Linear(8, 8), "c": nn.LazyLinear(6)}
    module = Net(halved, **dense(3, 4, 8, 6, **layers), reduction=nn.Linear(16, 8, bias=False))

    assert find_hidden_layers(module, (4, 4, 3)) == ["relu():1", "relu():2", "relu():3"]


class InceptionBlock(nn.Module):
    def __init__(self, n_inputs, n_maps):
        super().__init__()
        self.neck = nn.Conv1d(n_inputs, n_maps, 1) if n_inputs > 1 else nn.Identity()
        n_necks = n_maps if n_inputs > 1 else 1
        sizes = (9, 5, 3)
        self.parts = nn.ModuleList(nn.Conv1d(n_necks, n_maps, n, padding="same") for n in sizes)
        self.norm = nn.BatchNorm1d(3 * n_maps)

    def forward(self, x):
        x = self.neck(x)
        return torch.relu(self.norm(torch.cat([part(x) for part in self.parts], dim=1)))


class InceptionTime(nn.Module):
    """Residual joins pass three blocks each."""

    def __init__(self, n_inputs, n_maps=4):
        super().__init__()
        sizes = [n_inputs] + 5 * [3 * n_maps]
        self.blocks = nn.ModuleList(InceptionBlock(n, n_maps) for n in sizes)
        self.shortcuts = nn.ModuleList(
            nn.Sequential(nn.Conv1d(n, 3 * n_maps, 1), nn.BatchNorm1d(3 * n_maps))
            for n in (n_inputs, 3 * n_maps)
        )
        self.fc = nn.Linear(3 * n_maps, 3)

    def forward(self, x):
        before = x
        for i, block in enumerate(self.blocks):
            x = block(x)
            if i % 3 == 2:
                before = x = torch.relu(x + self.shortcuts[i // 3](before))
        return self.fc(x.mean(dim=2))


@pytest.mark.parametrize("n_inputs", [1, 2, 12])
def test_blocks_on_channels_that_a_shortcut_passes_are_layers(n_inputs):
    X = np.random.default_rng(0).normal(size=(30, n_inputs, 20)).astype(np.float32)

    model = small_net(lambda: InceptionTime(n_inputs)).fit(X, np.arange(30) % 3)

    assert model.hidden_layers_ == [f"blocks.{i}" for i in range(5)]
    assert {head.in_features for head in model.net_.module_.networks[0].heads.values()} == {12}


def test_a_module_is_tried_on_rows():
    class Counted(Net):
        def forward(self, ids):
            assert ids.min() > 0
            return super().forward(self.embed(ids - 1).mean(1))

    def deep(self, x):
        return self.fc(torch.relu(self.b(torch.relu(self.a(x)))))

    class Covariances(Net):
        def forward(self, x):
            return super().forward(torch.linalg.cholesky(x).diagonal(dim1=1, dim2=2))

    rng = np.random.default_rng(0)
    rows, y = rng.normal(size=(40, 4, 9)).astype(np.float32), np.arange(40) % 3
    ids, squares = rng.integers(1, 6, (40, 7)), rows @ rows.transpose(0, 2, 1)
    tried = {
        "ids": (Counted, ids, {"embed": nn.Embedding(5, 4)}),
        "pixels": (Counted, ids.astype(np.uint8), {"embed": nn.Embedding(5, 4)}),
        "covariances": (Covariances, squares, {}),
    }
    for kind, X, more in tried.values():
        model = small_net(kind(deep, **dense(4, 4, 4), **more), pretrained=False).fit(X, y)

        assert model.hidden_layers_ == ["relu():1"]
        assert model.predict(X).shape == (40,)


class MessagePassing(nn.Module):
    def __init__(self):
        super().__init__()
        self.start, self.fc = nn.Linear(5, 6), nn.Linear(6, 3)
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(2))

    def forward(self, nodes, adjacency):
        weight = adjacency.float()
        weight = weight / weight.sum(-1, keepdim=True).clamp(min=1)
        h = torch.relu(self.start(nodes))
        for layer in self.layers:
            h = torch.relu(weight @ layer(h))
        return self.fc(h.mean(1))


@pytest.mark.parametrize("dtype", [bool, np.float32, np.int64])
def test_an_input_that_only_weighs_features_makes_no_path(dtype):
    rng = np.random.default_rng(0)
    nodes = rng.normal(size=(4, 7, 5)).astype(np.float32)
    adjacency = (rng.random((4, 7, 7)) < 0.4).astype(dtype)

    found = find_hidden_layers(MessagePassing(), {"nodes": nodes, "adjacency": adjacency})

    assert found == ["relu():1", "relu():2", "relu():3"]


def test_masks_that_weights_have_not_touched_are_no_data():
    def forward(self, x):
        return self.fc(torch.relu(self.b(torch.relu(self.a(x)) * (x[:, :1] > 0))))

    assert len(find_hidden_layers(Net(forward, **dense(4, 6, 6)), (4,))) == 2


def recurrent(kind, **parameters):
    def forward(self, x):
        return self.fc(torch.relu(self.c(self.b(self.a(x)[0])[0][:, -1])))

    layers = {"a": kind(8, 5, batch_first=True), "b": kind(5, 6, batch_first=True, **parameters)}
    return Net(forward, **layers, c=nn.LazyLinear(7), fc=nn.Linear(7, 3))


def tokens(self, x):
    """Dense layers on features at the last axis."""
    return self.fc(torch.relu(self.b(torch.relu(self.a(x)).mean(1))))


def series(self, x):
    """Convolutions over the last axis."""
    return self.fc(torch.relu(self.b(torch.relu(self.a(x.transpose(1, 2))).mean(2))))


def patches(self, x):
    """A convolution whose maps become tokens, as in a vision transformer."""
    x = torch.relu(self.a(x.unsqueeze(1)).flatten(2).transpose(1, 2))
    return self.fc(torch.relu(self.b(x)).mean(1))


@pytest.mark.parametrize(
    ("module", "sizes"),
    [
        (lambda: recurrent(nn.LSTM), [5, 6]),
        (lambda: recurrent(nn.GRU, bidirectional=True), [5, 12]),
        (lambda: Net(tokens, **dense(8, 11, 6)), [11]),
        (lambda: Net(series, **dense(8, 11, 6, a=nn.Conv1d(8, 11, 3))), [11]),
        (lambda: Net(patches, **dense(1, 7, 9, a=nn.Conv2d(1, 7, 2, stride=2))), [7]),
        (lambda: encoder(False), [8, 8, 8]),
    ],
)
def test_heads_read_features(module, sizes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6, 8)).astype(np.float32)
    if "embed" in dict(module().named_children()):
        X = rng.integers(0, 20, (40, 6))

    model = small_net(module, max_epochs=1).fit(X, np.arange(40) % 3)

    (network,) = model.net_.module_.networks
    assert [head.in_features for head in network.heads.values()] == sizes


def test_layers_with_other_rows_than_the_examples_are_left_out():
    def forward(self, x):
        halves = torch.relu(self.a(x.reshape(-1, 4)))
        return self.fc(torch.relu(self.b(halves.view(-1, 12))))

    module = Net(forward, **dense(4, 6, 6, b=nn.Linear(12, 6)))
    assert len(find_hidden_layers(module, (8,))) == 1


# ------------------------------------------------------------------- the output, and weights


class Output:
    def __init__(self, logits):
        self.logits = logits


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x[:, -1],
        lambda x: x.mean(1),
        lambda x: Output(x[:, 0]),
        lambda x: (x[:, 0], x),
        lambda x: {"loss": None, "prediction_logits": x[:, 0]},
        lambda x: x[torch.arange(len(x)), x[..., 0].argmax(1) * 0 + 2],
    ],
)
def test_outputs_that_select_rows_of_the_last_linear_layer(wrap):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4, 8)).astype(np.float32), np.arange(60) % 3

    def forward(self, x):
        return wrap(self.fc(torch.relu(self.b(torch.relu(self.a(x))))))

    model = small_net(lambda: Net(forward, **dense(8, 8, 8)), max_epochs=1).fit(X, y)

    (network,) = model.net_.module_.networks
    assert (network.output.in_features, len(network.heads)) == (8, 1)
    assert model.predict_cost(X).shape == (60, 3)


def changed(module, change):
    with torch.no_grad():
        change(module)
    return module


def xavier(module):
    nn.init.xavier_normal_(module.weight, gain=4)
    nn.init.zeros_(module.bias)


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.Linear(9, 9), False),
        (changed(nn.Linear(9, 9), xavier), False),
        (changed(nn.Linear(9, 9), lambda m: m.bias.fill_(5)), False),
        (changed(nn.Linear(9, 9), lambda m: m.bias[0].fill_(0.4)), True),
        (nn.BatchNorm2d(3), False),
        (changed(nn.BatchNorm2d(3), lambda m: m(torch.randn(9, 3, 2, 2))), False),
        (changed(nn.BatchNorm2d(3), lambda m: m.weight[0].fill_(0.9)), True),
        (nn.LayerNorm(3), False),
        (changed(nn.LayerNorm(3), lambda m: m.weight.zero_()), False),
        (changed(nn.LayerNorm(3), lambda m: m.weight[0].fill_(0.9)), True),
        (changed(nn.GroupNorm(1, 3), lambda m: m.bias[0].fill_(0.1)), True),
        (nn.LSTM(3, 3), False),
        (nn.LazyLinear(3), False),
    ],
)
def test_signs_of_a_training(module, expected):
    assert is_trained(nn.Sequential(nn.ReLU(), module)) == expected


@pytest.mark.parametrize("pretrained", [True, False])
def test_pretrained_decides_what_is_auto(pretrained):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)).astype(np.float32), np.arange(60) % 3

    def make():
        hidden = [part for _ in range(2) for part in (nn.Linear(4, 4), nn.ReLU())]
        return nn.Sequential(*hidden, nn.Linear(4, 3))

    model = small_net(make, pretrained=pretrained, n_networks="auto").fit(X, y)
    given = {
        "head_gradient": 1.0 - pretrained,
        "combine_heads": pretrained,
        "pretrained_lr_factor": 0.1 if pretrained else 1.0,
        "early_stopping": pretrained,
        "n_networks": 1 if pretrained else 2,
    }
    like = small_net(make, **given).fit(X, y)

    np.testing.assert_array_equal(model.predict_cost(X), like.predict_cost(X))


# ------------------------------------------------------------- axes that are not obvious


def first_axis(module, shape):
    trace = Trace(module, shape)
    return trace.axis(hidden_layers(trace)[0])


def convolution(*parts, n=4):
    return nn.Sequential(nn.Conv2d(1, n, 3, padding=1), *parts)


class Inception(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(1, 4, 3, padding=1), nn.Conv2d(1, 3, 1)

    def forward(self, x):
        return torch.cat([torch.relu(self.a(x)), torch.relu(self.b(x))], dim=1)


@pytest.mark.parametrize(
    "maps",
    [
        Inception,
        lambda: nn.Sequential(Inception(), nn.MaxPool2d(2)),
        lambda: convolution(nn.GLU(1)),
        lambda: convolution(nn.AvgPool2d(3, 2, 1), nn.ReLU()),
        lambda: convolution(nn.Upsample(scale_factor=2, mode="bilinear"), nn.ReLU()),
        lambda: convolution(nn.LayerNorm([4, 8, 8]), nn.ReLU()),
    ],
)
def test_maps_before_dense_layers(maps):
    end = [nn.Flatten(), nn.LazyLinear(16), nn.ReLU(), nn.Linear(16, 3)]

    assert first_axis(nn.Sequential(maps(), *end), (1, 8, 8)) == 1


@pytest.mark.parametrize("order", [1, -1])
def test_a_mixer_adds_its_branch_in_any_order(order):
    def forward(self, x):
        x = torch.relu(self.a(x))
        mixed = self.mix(x.transpose(1, 2)).transpose(1, 2)
        return self.fc(torch.relu(self.b(sum((x, mixed)[::order]).mean(1))))

    module = Net(forward, **dense(3, 7, 7), mix=nn.Linear(5, 5))

    assert first_axis(module, (5, 3)) == 2


def test_a_graph_convolution_keeps_its_maps():
    def forward(self, x):
        return self.fc(torch.relu(self.b(torch.relu(self.a(x) @ self.adjacency))).mean(2))

    module = Net(forward, a=nn.Conv1d(3, 6, 1), b=nn.Conv1d(6, 6, 1), fc=nn.Linear(6, 3))
    module.register_buffer("adjacency", torch.rand(5, 5))

    assert first_axis(module, (3, 5)) == 1


@pytest.mark.parametrize(
    ("product", "following", "axis"),
    [
        (lambda x, w: x @ w, nn.LazyLinear(3), 2),
        (lambda x, w: x @ w.mT, nn.LazyLinear(3), 2),
        (lambda x, w: torch.einsum("nsi,oi->nso", x, w), nn.LazyLinear(3), 2),
        (lambda x, w: w @ x, nn.LazyConv1d(3, 1), 1),
        (lambda x, w: w.mT @ x, nn.LazyConv1d(3, 1), 1),
        (lambda x, w: torch.einsum("oi,nis->nos", w, x), nn.LazyConv1d(3, 1), 1),
    ],
)
def test_products_with_weights_that_no_layer_contains(product, following, axis):
    def forward(self, x):
        return self.fc(self.following(torch.relu(product(x, self.weight))).flatten(1))

    module = Net(forward, following=following, fc=nn.LazyLinear(3))
    module.weight = nn.Parameter(torch.rand(6, 6))

    assert first_axis(module, (6, 6)) == axis


@pytest.mark.parametrize(
    ("equation", "shape", "axis"),
    [
        ("oi,nis->nos", (6, 5), 1),
        ("oi, ni... -> no...", (6, 5, 5), 1),
        ("oi,nsi->nos", (5, 6), 1),
        ("oi,nsi->nso", (5, 6), 2),
        ("oi,...i->...o", (5, 4, 6), 3),
    ],
)
def test_the_letter_of_einsum_that_weights_alone_contain(equation, shape, axis):
    """A linear layer that reads all values would leave the axis open."""

    def forward(self, x):
        return self.fc(torch.relu(torch.einsum(equation, self.weight, x)).flatten(1))

    module = Net(forward, fc=nn.LazyLinear(3))
    module.weight = nn.Parameter(torch.rand(8, 6))

    assert first_axis(module, shape) == axis


def test_masks_and_raw_inputs_that_are_used_late():
    def forward(self, ids):
        mask = (ids != 0).unsqueeze(-1).float()
        x = torch.relu(self.b(torch.relu(self.a(self.embed(ids)))))
        return self.fc(torch.relu(self.c((x * mask).sum(1) / mask.sum(1).clamp(min=1))))

    module = Net(forward, embed=nn.Embedding(9, 5), **dense(5, 5, 5, 5))
    assert len(find_hidden_layers(module, (4,))) == 3

    def beside(self, x):
        return self.fc(torch.relu(self.c(torch.relu(self.b(torch.relu(self.a(x)))) + x)))

    assert len(find_hidden_layers(Net(beside, **dense(5, 5, 5, 5)), (5,))) == 2


def test_the_blocks_of_a_decoder():
    stack = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, batch_first=True), 2)

    def forward(self, x):
        return self.fc(self.decoder(x, self.encoder(x))[:, -1])

    encoder = nn.TransformerEncoder(blocks(1)[0], 3)
    module = Net(forward, encoder=encoder, decoder=stack, fc=nn.Linear(8, 3))

    assert find_hidden_layers(module, (5, 8)) == ["decoder.layers.0", "decoder.layers.1"]


def test_the_main_logits_are_meant():
    class Two(Net):
        def forward(self, x):
            x = torch.relu(self.a(x))
            return {"aux_logits": self.aux(x), "logits": self.fc(torch.relu(self.b(x)))}

    module = Two(None, **dense(4, 4, 4), aux=nn.Linear(4, 4))
    assert len(find_hidden_layers(module, (4,))) == 2


# ------------------------------------------------------------------------ parallel branches


def tower(n_layers=2):
    layers = [part for _ in range(n_layers) for part in (nn.LazyLinear(6), nn.Tanh())]
    return nn.Sequential(*layers)


class LSTMFCN(nn.Module):
    """A recurrent and a convolutional branch, as of F. Karim et al., IEEE Access 6, 2018."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 8, batch_first=True)
        self.first = nn.Sequential(nn.Conv1d(1, 8, 7, padding=3), nn.BatchNorm1d(8), nn.ReLU())
        self.second = nn.Sequential(nn.Conv1d(8, 8, 5, padding=2), nn.BatchNorm1d(8), nn.ReLU())
        self.last = nn.Linear(16, 3)

    def forward(self, x):
        steps, _ = self.lstm(x.mT)
        maps = self.second(self.first(x)).mean(dim=-1)
        return self.last(torch.cat([steps[:, -1], maps], dim=1))


class Towers(nn.Module):
    """A tower for each of two inputs, and layers for both."""

    def __init__(self):
        super().__init__()
        self.numbers, self.ids = tower(), nn.Sequential(nn.Embedding(9, 4), *tower(1))
        self.both = nn.Sequential(*tower(), nn.Linear(6, 3))

    def forward(self, numbers, ids):
        return self.both(torch.cat([self.numbers(numbers), self.ids(ids)], dim=1))


class Shortcut(nn.Module):
    """A residual block at the input is one hidden layer."""

    def __init__(self):
        super().__init__()
        self.block, self.projection = nn.Sequential(*tower(1), nn.Linear(6, 6)), nn.Linear(4, 6)
        self.rest = nn.Sequential(nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3))

    def forward(self, x):
        return self.rest(self.block(x) + self.projection(x))


def test_layers_of_parallel_branches_are_hidden_layers():
    series = torch.randn(4, 1, 20)
    assert find_hidden_layers(LSTMFCN(), series) == ["lstm", "first", "second", "cat()"]
    arrays = {"numbers": torch.randn(4, 4), "ids": torch.randint(9, (4,))}
    names = ["numbers.1", "numbers.3", "ids", "cat()", "both.1", "both.3"]
    assert find_hidden_layers(Towers(), arrays) == names
    assert find_hidden_layers(Shortcut(), (4,)) == ["rest.0", "rest.2"]


def test_heads_of_parallel_branches_learn():
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    X = rng.normal(0, 0.3, (90, 1, 20)) + np.sin((y[:, None] + 1) * np.linspace(0, 3, 20))[:, None]
    model = small_net(LSTMFCN, max_epochs=25, learning_rate=0.01).fit(X.astype(np.float32), y)

    assert model.hidden_layers_ == ["lstm", "first", "second"]
    for found in model.staged_predict(X.astype(np.float32)):
        assert (found == y).mean() > 0.7
