"""A fitted network as a torch module: what it computes, and what tools need of it."""

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet
from auxcst_sklearn.losses import CrossEntropy
from tests.factories import QUICK, small_cnn, small_mlp, small_net, small_stack

N, K = 60, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = np.arange(N) % K
X[np.arange(N), Y] += 1
COSTS = np.array([[0.0, 10, 500], [30, 0, 10], [20, 70, 0]])


def skewed():
    rows = X.copy()
    rows[:, 0] = np.exp(4 * X[:, 0])  # heavy-tailed
    rows[:, 1] = np.where(X[:, 1] > 0, 1e6 * X[:, 1], X[:, 1])  # of two scales
    rows[::7, 2] = np.nan
    return rows


class Sets(nn.Module):
    """Takes an array of ids and one of numbers."""

    def __init__(self):
        super().__init__()
        self.ids, self.first, self.last = nn.Embedding(9, 4), nn.Linear(8, 6), nn.Linear(6, K)

    def forward(self, x, numbers):
        return self.last(torch.relu(self.first(torch.cat([self.ids(x), numbers], dim=1))))


class Pixels(nn.Module):
    """A network of one's own on images."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, K))

    def forward(self, x):
        return self.net(x)


IMAGES = RNG.integers(0, 256, size=(N, 1, 8, 8), dtype=np.uint8)
SAMPLE_COSTS = RNG.uniform(1, 9, size=(N, K)) * (np.arange(K) != Y[:, np.newaxis])
FITTED = {
    "several networks": lambda: small_stack(cost_matrix=COSTS).fit(X, Y),
    "default": lambda: CostSensitiveAuxMLP(max_epochs=2, **QUICK).fit(skewed(), Y),
    "costs": lambda: small_mlp(loss="one_sided", cost_matrix=COSTS).fit(X, Y),
    "costs of samples": lambda: small_mlp().fit(X, Y, cost=SAMPLE_COSTS),
    "temperature": lambda: small_mlp(loss=CrossEntropy(0.1), temperature=2.5).fit(X, Y),
    "images": lambda: small_cnn(cost_matrix=COSTS).fit(IMAGES, Y),
    "own images": lambda: small_net(Pixels, cost_matrix=COSTS, n_networks=2).fit(IMAGES, Y),
}


def rows_of(name):
    if "images" in name:
        return IMAGES
    return skewed() if name == "default" else X


@pytest.mark.parametrize("name", FITTED)
def test_costs_and_probabilities_are_those_of_the_estimator(name):
    model, rows = FITTED[name](), rows_of(name)
    found = model.to_module()(torch.from_numpy(rows))

    assert found.dtype == torch.float64
    np.testing.assert_allclose(found.detach(), model.predict_cost(rows), rtol=1e-5)
    if name != "costs":  # which has no probabilities
        found = model.to_module("probability")(torch.from_numpy(rows)).detach()
        np.testing.assert_allclose(found, model.predict_proba(rows), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["several networks", "costs", "costs of samples"])
def test_gradients_are_differences_of_costs(name):
    module, rows = FITTED[name]().to_module(), torch.from_numpy(X[:5])
    rows.requires_grad_(True)
    (slope,) = torch.autograd.grad(module(rows)[:, 1].sum(), rows)

    step = 1e-2  # networks compute in float32
    for j in range(4):
        move = torch.zeros(4, dtype=torch.float64)
        move[j] = step
        with torch.no_grad():
            rise = (module(rows + move) - module(rows - move))[:, 1] / (2 * step)
        np.testing.assert_allclose(slope[:, j], rise, atol=0.02 * float(slope.abs().max()))


def test_it_is_exported_with_any_number_of_samples():
    model = small_stack(cost_matrix=COSTS).fit(X, Y)
    example, free = (torch.from_numpy(X[:3]),), {"x": {0: torch.export.Dim("n_samples")}}
    # strict=False is the default of newer releases.
    program = torch.export.export(model.to_module(), example, dynamic_shapes=free, strict=False)
    np.testing.assert_allclose(
        program.module()(torch.from_numpy(X)).detach(), model.predict_cost(X), rtol=1e-5
    )


def test_it_is_a_copy():
    model = small_stack(cost_matrix=COSTS).fit(X, Y)
    before, module = model.predict_cost(X), model.to_module()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    np.testing.assert_array_equal(model.predict_cost(X), before)


def test_what_has_no_such_output_is_an_error():
    model = small_mlp(loss="one_sided").fit(X, Y)
    with pytest.raises(ValueError, match="no class probabilities"):
        model.to_module("probability")
    with pytest.raises(ValueError, match="output='costs'; expected 'cost' or 'probability'"):
        model.to_module("costs")
    frame = pd.DataFrame({"number": X[:, 0], "kind": np.array(["a", "b", "c"])[Y]})
    with pytest.raises(ValueError, match=r"The columns \[1\] of X are categories"):
        small_mlp().fit(frame, Y).to_module()


def test_a_network_called_with_samples_says_what_takes_them():
    model = CostSensitiveAuxNet(Pixels, max_epochs=1, **QUICK).fit(IMAGES, Y)
    rows = torch.from_numpy(IMAGES[:6])
    with pytest.raises(ValueError, match=r"first dimension of the inputs is 6; .*to_module\(\)"):
        model.net_.module_(rows)
    assert model.net_.module_(rows.unsqueeze(0)).shape == (2, 6, K)


def make_narrow():
    """A network whose first heads know more than its output, so that they have a weight."""
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 8, 3), nn.Tanh(), nn.Conv2d(8, 8, 3), nn.Tanh(), nn.AdaptiveAvgPool2d(1)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8, 2), nn.Tanh(), nn.Linear(2, K))


def test_gradients_pass_through_heads_that_are_detached_in_training():
    label = np.arange(300) % K
    images = np.random.default_rng(1).normal(size=(300, 1, 8, 8)).astype(np.float32)
    images[np.arange(300), 0, label] += 1
    settings = {"learning_rate": 1e-2, "max_epochs": 12, "head_input": "mean", "pretrained": True}
    settings |= {"combine_heads": True, "validation_fraction": 0.4, "early_stopping": True}
    model = small_net(make_narrow, **settings).fit(images, label)
    assert model.head_weights_[:-1].any()  # probabilities are those of heads, too
    images, module = torch.from_numpy(images[:3]).double(), model.to_module("probability")

    slope = torch.func.grad(lambda x: module(x)[:, 0].sum())(images)
    (expected,) = torch.autograd.grad(module(images.requires_grad_())[:, 0].sum(), images)
    slope = slope.detach()
    torch.testing.assert_close(slope, expected)
    with torch.no_grad():
        move = 1e-2 * slope / slope.abs().max()
        rise = (module(images + move) - module(images - move))[:, 0].sum() / 2
    np.testing.assert_allclose(rise, (slope * move).sum().detach(), rtol=0.05)


@pytest.mark.parametrize("change", ["columns", "channels", "order", "type"])
def test_it_refuses_what_predict_refuses(change):
    if change == "columns":
        model, rows = small_mlp().fit(X, Y), X[:5, :1]
    else:
        images = np.moveaxis(np.concatenate([IMAGES, IMAGES, IMAGES[:, :, ::-1]], axis=1), 1, -1)
        model = small_cnn().fit(np.moveaxis(images, -1, 1) / np.float32(255), Y)
        shown = images[:4] / np.float32(255)
        others = {"order": shown, "channels": np.moveaxis(shown, -1, 1)[:, :2], "type": None}
        rows = np.moveaxis(images[:4], -1, 1) if change == "type" else others[change]
    with pytest.raises(ValueError, match="X"):
        model.predict(rows)
    with pytest.raises(ValueError, match="was fitted on"):
        model.to_module()(torch.from_numpy(np.ascontiguousarray(rows)))


def test_pixels_may_be_floats_for_gradients():
    model = small_cnn(cost_matrix=COSTS).fit(IMAGES, Y)
    pixels = torch.from_numpy(IMAGES).double().requires_grad_()
    cost = model.to_module()(pixels)

    np.testing.assert_allclose(cost.detach(), model.predict_cost(IMAGES), rtol=1e-5)
    assert torch.autograd.grad(cost.sum(), pixels)[0].any()


def test_arrays_by_name_are_keyword_arguments_of_the_types_and_lengths_of_fit():
    arrays = {"x": RNG.integers(0, 9, N), "numbers": X.astype(np.float32)}
    model = small_net(Sets, cost_matrix=COSTS).fit(arrays, Y)
    module, given = model.to_module(), {k: torch.from_numpy(v) for k, v in arrays.items()}

    np.testing.assert_allclose(module(**given).detach(), model.predict_cost(arrays), rtol=1e-5)
    for call in (lambda: module(given["numbers"]), lambda: module(x=given["x"])):
        with pytest.raises(TypeError, match=r"expected the arrays \['numbers', 'x'\] by name"):
            call()
    for name, other in (
        ("x", given["x"] + 0.5),  # not whole
        ("x", given["x"][:1]),  # one for all samples
        ("numbers", given["numbers"][:, :1]),
    ):
        with pytest.raises(ValueError, match=rf"X\['{name}'\] contains|X\['x'\] contains"):
            module(**{**given, name: other})
