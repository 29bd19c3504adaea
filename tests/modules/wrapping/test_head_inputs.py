"""What heads read by default, how much of it, and whether they send a gradient."""

from contextlib import nullcontext
from math import prod

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxNet
from auxcst_sklearn.modules._heads import FlattenInput, MeanInput
from auxcst_sklearn.onnx import to_onnx
from tests.modules.nets import dress


def convolutions(*widths, n_inputs=3, d=2, stride=1):
    kind, layers = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[d - 1], []
    for n, n_maps in zip([n_inputs, *widths], widths):
        layers += [kind(n, n_maps, 3, padding=1, stride=stride), nn.ReLU()]
    pool = (nn.AdaptiveAvgPool1d, nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d)[d - 1]
    return nn.Sequential(*layers, pool(1), nn.Flatten(), nn.Linear(widths[-1], 5))


def test_heads_on_maps_read_all_values_and_train_the_module_and_heads_on_series_do_neither():
    torch.manual_seed(0)
    for shape, d in (((3, 6, 6), 2), ((3, 2, 4, 4), 3), ((3, 12), 1)):
        network = dress(convolutions(4, 4, d=d), shape).train()
        head, _ = network.forward_heads(torch.randn(7, *shape))
        head.square().sum().backward()

        trains = d > 1
        n_values = 4 * prod(shape[1:])
        assert (network.heads["hidden1"].in_features == n_values) is trains
        assert bool(network.head_gradient) is trains
        assert (network.body[0].weight.grad is not None) is trains
        assert network.heads["hidden1"].weight.grad.abs().sum() > 0


def test_heads_on_dense_layers_train_the_module():
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 2))
    network = dress(module, (4,)).train()
    head, _ = network.forward_heads(torch.randn(7, 4))
    head.sum().backward()

    assert network.body[0].weight.grad.abs().sum() > 0


def test_heads_on_trained_weights_read_means():
    network = dress(convolutions(6, 8), (3, 10, 10), head_gradient=0)
    assert [head.in_features for head in network.heads.values()] == [6]
    assert network.head_gradient == 0


def n_multiplications(module, shape):
    """Products of weights in convolutions and linear layers, counted by their outputs."""
    count = []

    def add(layer, _, output):
        count.append(output[0].numel() * layer.weight[0].numel())

    parts = [part for part in module.modules() if isinstance(part, (nn.Conv2d, nn.Linear))]
    hooks = [part.register_forward_hook(add) for part in parts]
    module(torch.zeros(1, *shape))
    for hook in hooks:
        hook.remove()
    return sum(count)


@pytest.mark.parametrize(
    ("widths", "shape", "n_classes"),
    [
        ((8, 8, 8, 8), (3, 40, 36), 200),  # a fifth of the multiplications
        ((64, 64, 64), (3, 97, 97), 20),  # 8 MB, and sides that no window divides
        ((64, 64, 64, 64), (3, 64, 64), 1000),
    ],
)
def test_wide_heads_stay_within_their_budget(widths, shape, n_classes):
    module = convolutions(*widths)
    most = min(n_multiplications(module[:-1], shape) / 5, 2**21)
    network = dress(module, shape, n_classes=n_classes).eval()
    heads = [*network.heads.values()]

    assert len(heads) == len(widths) - 1
    read_more_than_means = [head for head in heads if isinstance(head.reads, FlattenInput)]
    assert sum(head.weight.numel() for head in read_more_than_means) <= most
    for head in read_more_than_means:  # finer windows would be too many
        finer = (
            [-(-side // (head.reads.window - 1)) for side in shape[1:]]
            if head.reads.window > 1
            else [0]
        )
        assert prod(finer) * widths[0] * n_classes * len(heads) > most or head.reads.window == 1
    assert all(torch.isfinite(r).all() for r in network.forward_heads(torch.randn(2, *shape)))


def test_means_of_windows_agree_with_an_independent_computation():
    network = dress(convolutions(8, 8, 8), (3, 13, 9), n_classes=40).eval()
    head = network.heads["hidden1"]
    x = torch.randn(4, 3, 13, 9)
    maps = network.body[1](network.body[0](x)).detach().double().numpy()
    w = head.reads.window
    assert 1 < w < 13

    corners = [(i, j) for i in range(0, 13, w) for j in range(0, 9, w)]
    means = [maps[:, :, i : i + w, j : j + w].mean(axis=(2, 3)) for i, j in corners]
    rows = np.stack(means, axis=-1).reshape(4, -1)
    expected = rows @ head.weight.detach().double().numpy().T + head.bias.detach().numpy()
    assert head.in_features == rows.shape[1]
    found = network.forward_heads(x)[0].detach().numpy()
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_files_and_modules_compute_means_of_windows():
    rng = np.random.default_rng(0)
    y = rng.integers(60, size=600)
    X = rng.normal(size=(600, 1, 13, 9)).astype(np.float32)
    X[np.arange(600), 0, y % 13, y % 9] += 4
    known = {"max_epochs": 3, "random_state": 0, "n_networks": 1, "device": "cpu"}
    model = CostSensitiveAuxNet(wide_output, **known).fit(X, y)
    head = model.net_.module_.networks[0].heads["hidden1"]
    assert head.reads.window > 1
    assert model.head_weights_[0] > 0

    session = onnxruntime.InferenceSession(to_onnx(model, X[:20]).SerializeToString())
    (found,) = session.run(["probability"], {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(found, model.predict_proba(X), atol=1e-6)
    costs = model.to_module()(torch.from_numpy(X)).detach().numpy()
    np.testing.assert_allclose(costs, model.predict_cost(X), atol=1e-6)


def wide_output():
    return nn.Sequential(*convolutions(8, 8, n_inputs=1)[:-1], nn.Linear(8, 60))


@pytest.mark.parametrize("d", [1, 2, 3])
def test_maps_of_one_position_are_vectors(d):
    torch.manual_seed(0)
    kind = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[d - 1]
    layers = [kind(3, 6, 2), nn.ReLU(), kind(6, 4, 1), nn.ReLU(), nn.Flatten(), nn.Linear(4, 5)]
    network = dress(nn.Sequential(*layers), (3, *[2] * d)).train()
    head, _ = network.forward_heads(torch.randn(7, 3, *[2] * d))
    head.square().sum().backward()
    assert network.heads["hidden1"].in_features == 6
    assert network.body[0].weight.grad.abs().sum() > 0


class Spectra(nn.Module):
    """Convolutions over steps and frequencies, with 1-d or 2-d maps."""

    def __init__(self, d=2):
        super().__init__()
        kind, sides = (nn.Conv1d, 5) if d == 1 else (nn.Conv2d, 1)
        self.d = d
        self.first = nn.Sequential(kind(sides, 6, 3, padding=1), nn.ReLU())
        self.second = nn.Sequential(kind(6, 6, 3, padding=1), nn.ReLU())
        self.third = nn.Sequential(kind(6, 8, 3, padding=1), nn.ReLU())
        self.last = nn.Linear(8, 2)

    def forward(self, spectrum, attention_mask):
        mask = attention_mask[:, None, :].float()
        x = spectrum.mT if self.d == 1 else spectrum.unsqueeze(1)
        mask = mask if self.d == 1 else mask.unsqueeze(-1)
        for layer in (self.first, self.second, self.third):
            x = layer(x * mask)
        axes = (2,) if self.d == 1 else (2, 3)
        return self.last((x * mask).sum(axes) / (mask.sum(axes) * (x.shape[-1] if axes[1:] else 1)))


def spectra(n, n_steps):
    rng, steps = np.random.default_rng(n_steps), np.arange(n_steps)
    y = np.arange(n) % 2
    mask = (steps < rng.integers(n_steps // 2 + 2, n_steps + 1, n)[:, None]).astype(int)
    x = rng.normal(0, 0.5, (n, n_steps, 5)) + 2 * (steps // 3 == y[:, None] + 1)[..., None]
    return {"spectrum": (x * mask[:, :, None]).astype("float32"), "attention_mask": mask}, y


def lengthened(X, n):
    more = {name: np.zeros((len(part), n, *part.shape[2:]), part.dtype) for name, part in X.items()}
    return {name: np.concatenate([part, more[name]], axis=1) for name, part in X.items()}


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("pretrained", [False, True])  # the heads of a pretrained module vote
def test_networks_on_sequences_take_every_length(d, pretrained):
    X, y = spectra(120, 20)
    longer, labels = spectra(30, 28)
    known = {"module__d": d, "max_epochs": 2, "n_networks": 1, "alpha": 1.0, "random_state": 0}
    model = CostSensitiveAuxNet(Spectra, pretrained=pretrained, **known).fit(X, y)
    heads = model.net_.module_.networks[0].heads.values()
    assert {type(head.reads) for head in heads} == {MeanInput}
    assert bool(model.net_.module_.head_gradient) is False
    assert model.predict(longer).shape == (30,)
    assert [p.shape for p in model.staged_predict(longer)] == [(30,)] * 3
    tensors = {name: torch.from_numpy(part) for name, part in longer.items()}
    found = model.to_module()(**tensors).detach().numpy()
    np.testing.assert_allclose(found, model.predict_cost(longer), atol=1e-6)
    session = onnxruntime.InferenceSession(to_onnx(model, X).SerializeToString())
    (found,) = session.run(["cost"], longer)
    np.testing.assert_allclose(found, model.predict_cost(longer), atol=1e-5)
    # Padding changes nothing, also not what heads read.
    for one, other in zip(model.staged_predict(X), model.staged_predict(lengthened(X, 7))):
        np.testing.assert_array_equal(one, other)
    model.partial_fit(longer, labels)


class Attention(nn.Module):
    """A weighted mean of the positions of feature maps."""

    def __init__(self, n_maps):
        super().__init__()
        self.score = nn.Linear(n_maps, 1)

    def forward(self, x, inputs):
        positions = x.flatten(2).mT
        return (self.score(positions).softmax(dim=1) * positions).sum(dim=1)


def test_each_head_trains_a_copy_of_a_module_that_reads_its_layer():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 1, 8, 8)).astype(np.float32), rng.integers(3, size=40)
    torch.manual_seed(0)
    attention = Attention(4)
    before = attention.score.weight.detach().clone()
    given = {"channels": (4, 4), "n_networks": 2, "max_epochs": 2, "random_state": 0}

    model = CostSensitiveAuxCNN(head_input=attention, **given).fit(X, y)

    heads = [*model.net_.module_.networks[0].heads.values()]
    heads += model.net_.module_.networks[1].heads.values()
    weights = [before, *(head.reads.function.score.weight for head in heads)]
    assert len({tuple(weight.flatten().tolist()) for weight in weights}) == 1 + len(heads) == 3
    assert torch.equal(attention.score.weight, before)
    for head_input, n_values in (("mean", 4), ("flatten", 4 * 4 * 4)):
        plain = CostSensitiveAuxCNN(head_input=head_input, **given).fit(X, y)
        (head,) = plain.net_.module_.networks[0].heads.values()
        assert head.in_features == n_values


class Normalised(nn.Module):
    """Means of maps, in units of a batch."""

    def __init__(self, n_maps):
        super().__init__()
        self.norm = nn.BatchNorm1d(n_maps)

    def forward(self, x, inputs):
        return self.norm(x.mean((2, 3)))


def test_a_module_that_reads_a_layer_is_tried_as_a_copy():
    X, y = (
        np.random.default_rng(0).normal(3, size=(40, 1, 8, 8)).astype(np.float32),
        np.arange(40) % 3,
    )
    own = Normalised(4).double()

    CostSensitiveAuxCNN(channels=(4, 4), head_input=own, max_epochs=1, random_state=0).fit(X, y)

    assert torch.equal(own.norm.running_mean, torch.zeros(4, dtype=torch.float64))


def over_the_batch(x, inputs):
    return x.mean((2, 3)) - x.mean((0, 2, 3))


def noise(x, inputs):
    return torch.rand_like(x.mean((2, 3)))


@pytest.mark.parametrize(
    ("head_input", "message"),
    [
        (over_the_batch, "head_input mixes the rows of a batch.*first one.*expected features"),
        (nn.LazyBatchNorm2d(), "head_input contains lazy layers.*expected layers with sizes"),
        (noise, None),
    ],
)
def test_a_function_of_a_layer_keeps_rows_apart(head_input, message):
    X, y = np.random.default_rng(0).random((40, 1, 8, 8), np.float32), np.arange(40) % 3
    model = CostSensitiveAuxCNN(channels=(4, 4), head_input=head_input, max_epochs=1)
    with nullcontext() if message is None else pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_a_function_of_arrays_by_name_keeps_rows_apart():
    rng = np.random.default_rng(0)
    X = {"x": rng.random((40, 5, 4), np.float32), "scale": rng.random((40, 4), np.float32)}

    def scaled(x, inputs):
        return x.mean(dim=1) * inputs["scale"].sum(dim=1, keepdim=True)

    def scaled_by_all(x, inputs):
        return x.mean(dim=1) * inputs["scale"].sum()

    given = {"hidden_layers": ["first", "second"], "max_epochs": 1, "random_state": 0}
    CostSensitiveAuxNet(TwoLayers, head_input=scaled, **given).fit(X, np.arange(40) % 3)
    with pytest.raises(ValueError, match="head_input mixes the rows of a batch"):
        CostSensitiveAuxNet(TwoLayers, head_input=scaled_by_all, **given).fit(X, np.arange(40) % 3)


class TwoLayers(nn.Module):
    """Layers on each step of a sequence, and a mean that ignores the scale."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 6)
        self.output = nn.Linear(6, 3)

    def forward(self, x, scale):
        return self.output(torch.relu(self.second(torch.relu(self.first(x)))).mean(dim=1))
