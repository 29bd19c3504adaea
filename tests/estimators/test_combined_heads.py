"""Probabilities as an ensemble of those of all heads, with weights learnt on held-out rows."""

from __future__ import annotations

import pickle

import numpy as np
import onnxruntime
import pytest
import torch
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from torch import nn

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP, CostSensitiveAuxNet
from auxcst_sklearn._training.geometric_mean import weights_if_better
from auxcst_sklearn.modules import CostHead
from auxcst_sklearn.onnx import to_onnx
from tests.factories import dense

COST = np.abs(np.subtract.outer(np.arange(10), np.arange(10))).astype(float)
SMOOTHING, SMALLEST = 0.05, 1e-6


@pytest.fixture(scope="module")
def rows():
    X, y = load_digits(return_X_y=True)
    return (X / 16).astype("f"), y


def module_with_weights():
    """Its first layer separates the classes; the others still have to learn."""
    torch.manual_seed(0)
    module = dense(64, 64, 64, 64, 10)
    with torch.no_grad():
        module[0].weight.mul_(2)
        module[0].bias[0] = 0.2  # larger than any that torch draws
    return module


def fine_tuned(rows, **parameters):
    X, y = rows
    known = {"cost_matrix": COST, "max_epochs": 8, "validation_fraction": 0.3, "random_state": 0}
    model = CostSensitiveAuxNet(module_with_weights(), device="cpu", **known | parameters)
    return model.fit(X[:1000], y[:1000])


@pytest.fixture(scope="module")
def combined(rows):
    return fine_tuned(rows)


@pytest.fixture(scope="module")
def alone(rows):
    return fine_tuned(rows, combine_heads=False)


def expected(model, X):
    """The ensemble in float64 numpy: powers of clipped probabilities without their smoothing."""
    ensembles = []
    for network in model.net_.module_.networks:
        with torch.no_grad():
            outputs = [r.double().numpy() for r in network.forward_heads(torch.from_numpy(X))]
        logs = []
        for output in outputs:
            smoothed = softmax(output, axis=1)
            p = np.maximum(smoothed - SMOOTHING / 10, 1e-3 * smoothed)
            logs.append(np.log(np.maximum(p / p.sum(axis=1, keepdims=True), SMALLEST)))
        ensembles.append(softmax(np.tensordot(model.head_weights_, logs, 1), axis=1))
    return softmax(np.log(np.maximum(ensembles, SMALLEST)).mean(axis=0), axis=1)


def test_probabilities_are_an_ensemble_of_those_of_all_heads(rows, combined, alone):
    X, y = rows
    used = combined.head_weights_ > 0
    assert used[:-1].any()
    assert combined.head_weights_.shape == (3,)
    assert combined.temperature_ == 1

    p = combined.predict_proba(X)
    np.testing.assert_allclose(p, expected(combined, X), atol=2e-6)
    np.testing.assert_allclose(combined.predict_cost(X), p @ COST, atol=1e-5)
    np.testing.assert_array_equal(combined.predict(X), (p @ COST).argmin(axis=1))
    losses = [log_loss(y[1000:], model.predict_proba(X[1000:])) for model in (combined, alone)]
    assert losses[0] < 0.8 * losses[1]
    np.testing.assert_array_equal(alone.head_weights_, [0, 0, 1 / alone.temperature_])
    assert alone.training_.combine_heads is False


def test_stages_are_the_heads_and_then_the_ensemble(rows, combined, alone):
    X, _ = rows
    *stages, last = combined.staged_predict_cost(X)
    *expected_stages, _ = alone.staged_predict_cost(X)

    np.testing.assert_array_equal(stages, expected_stages)
    np.testing.assert_array_equal(last, combined.predict_cost(X))


def test_heads_without_a_weight_are_not_computed(rows, combined):
    (network,) = combined.net_.module_.networks
    calls = []
    heads = [part for part in network.modules() if isinstance(part, CostHead)]
    hooks = [head.register_forward_hook(lambda *call: calls.append(call)) for head in heads]
    combined.predict_proba(rows[0])
    for hook in hooks:
        hook.remove()

    n_used = np.count_nonzero(combined.head_weights_[:-1])
    assert n_used < len(heads) - 1  # or this test compares nothing
    assert len(calls) == n_used + 1


@pytest.mark.slow
def test_ensembles_are_saved_in_pickles_and_files(rows, combined):
    X = rows[0][:50]
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(combined)).predict_proba(X), combined.predict_proba(X)
    )
    file = onnxruntime.InferenceSession(to_onnx(combined, X).SerializeToString())
    cost, index, probability = file.run(
        ["cost", "index", "probability"], {file.get_inputs()[0].name: X}
    )
    np.testing.assert_allclose(probability, combined.predict_proba(X), atol=1e-5)
    np.testing.assert_allclose(cost, combined.predict_cost(X), atol=1e-4)
    np.testing.assert_array_equal(index, combined.predict(X))


@pytest.mark.parametrize("n_networks", [2, 5])
def test_networks_side_by_side_share_the_weights(rows, n_networks):
    X, _ = rows
    model = fine_tuned(rows, n_networks=n_networks, max_epochs=4)

    assert (model.head_weights_[:-1] > 0).any()
    np.testing.assert_allclose(model.predict_proba(X), expected(model, X), atol=2e-6)


def test_ensembles_are_decided_upon_with_costs_of_rows_and_other_frequencies(rows):
    X, y = rows
    rng = np.random.default_rng(0)
    cost = rng.uniform(1, 2, (1000, 1)) * COST[y[:1000]]
    known = {"max_epochs": 4, "validation_fraction": 0.3, "random_state": 0}
    model = CostSensitiveAuxNet(module_with_weights(), **known)
    model.fit(X[:1000], y[:1000], cost=cost)

    assert (model.head_weights_[:-1] > 0).any()
    prior = {label: 0.91 if label == 8 else 0.01 for label in range(10)}
    found = model.predict_cost(X, prior=prior)
    p = model.predict_proba(X) * np.array([*prior.values()]) / model.class_prior_
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, model._expected_cost(X, p), rtol=1e-4)


@pytest.mark.parametrize(
    "parameters",
    [
        {"temperature": 1.0},
        {"alpha": 0.0},
        {"loss": "one_sided"},
        {"aux_loss": "one_sided"},
        {"validation_fraction": 0.03},  # too few rows to learn several weights
    ],
)
def test_where_the_output_predicts_alone(rows, parameters):
    model = fine_tuned(rows, max_epochs=2, **parameters)
    weights = model.head_weights_

    assert len(weights) == len(model.hidden_layers_) + 1
    assert not weights[:-1].any()
    assert weights[-1] == pytest.approx(1 / model.temperature_)


def test_an_ensemble_is_left_when_heads_are_not_combined_any_longer(rows):
    X, y = rows
    model = fine_tuned(rows, warm_start=True, max_epochs=4)
    assert model.head_weights_[:-1].any()

    model.set_params(combine_heads=False, temperature=1.0).fit(X[:1000], y[:1000])

    np.testing.assert_array_equal(model.head_weights_, [0, 0, 1])


def test_heads_of_new_modules_are_averaged_too(rows):
    known = {"cost_matrix": COST, "max_epochs": 2, "random_state": 0}
    model = CostSensitiveAuxNet(module_with_weights, **known).fit(*rows)

    assert model.head_weights_[:-1].any()


def series_module():
    return nn.Sequential(
        nn.Conv1d(1, 8, 5, padding=2), nn.ReLU(), nn.Conv1d(8, 8, 5, padding=2), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(8, 10),
    )  # fmt: skip


def test_heads_on_series_leave_the_network_as_it_is(rows):
    X, y = rows
    series = X[:, np.newaxis]
    known = {"max_epochs": 4, "random_state": 0, "n_networks": 1, "learning_rate": 0.01}
    models = [
        CostSensitiveAuxNet(series_module, **known, **parameters).fit(series[:1000], y[:1000])
        for parameters in ({}, {"alpha": 0})
    ]
    assert models[0].hidden_layers_ == ["1"]
    assert not models[0].head_weights_[:-1].any()
    np.testing.assert_allclose(*(m.predict_proba(series[1000:]) for m in models), atol=1e-6)

    asked = {"combine_heads": True, "head_gradient": 1}
    trained = CostSensitiveAuxNet(series_module, **known, **asked).fit(series[:1000], y[:1000])
    p, alone = (m.predict_proba(series[1000:]) for m in (trained, models[1]))
    assert np.abs(p - alone).max() > 1e-3


def test_heads_of_images_are_averaged(rows):
    X, y = rows
    images = X.reshape(-1, 1, 8, 8)
    known = {"channels": (8, 16), "max_epochs": 6, "random_state": 0, "cost_matrix": COST}
    model = CostSensitiveAuxCNN(**known).fit(images[:1000], y[:1000])
    alone = CostSensitiveAuxCNN(combine_heads=False, **known).fit(images[:1000], y[:1000])

    assert model.head_weights_.shape == (2,)
    assert model.head_weights_[0] > 0
    assert alone.head_weights_ == pytest.approx([0, 1 / alone.temperature_])
    losses = [log_loss(y[1000:], m.predict_proba(images[1000:])) for m in (model, alone)]
    assert losses[0] < losses[1]


def test_alpha_may_be_a_function_of_the_number_of_heads(rows):
    X, y = rows
    asked = []

    def falling(n_heads):
        asked.append(n_heads)
        return [0.5 ** (i + 1) for i in range(n_heads)]

    known = {"max_epochs": 2, "random_state": 0, "n_networks": 1}
    models = [
        CostSensitiveAuxNet(module_with_weights, alpha=alpha, **known).fit(X, y)
        for alpha in (falling, [0.5, 0.25])
    ]
    assert asked == [2]
    np.testing.assert_array_equal(*(model.predict_proba(X) for model in models))

    for depth in (2, 4):
        deep = CostSensitiveAuxMLP(depth=depth, width=8, alpha=falling, max_epochs=2).fit(X, y)
        assert len(deep.hidden_layers_) == depth - 1
    with pytest.raises(ValueError, match=r"alpha=.* has 1 values; expected one number, or 2"):
        CostSensitiveAuxNet(module_with_weights, alpha=lambda n: [0.5], **known).fit(X, y)


def test_an_ensemble_that_gains_less_than_its_noise_is_not_used():
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=300)
    good, noise = rng.normal(size=(2, 300, 3))
    good[np.arange(300), label] += 2
    other = rng.normal(size=(300, 3))
    other[np.arange(300), label] += 2
    logs = np.log(softmax([noise, other, good], axis=2))

    assert weights_if_better(logs[[0, 2]], label) is None
    assert weights_if_better(logs[1:], label) == pytest.approx([1, 1], abs=0.2)
    assert weights_if_better(logs[1:, :40], label[:40]) is None  # too few rows
    weight = np.repeat([1.0, 0.0], 150)
    of_half = weights_if_better(logs[1:, :150], label[:150])
    wrong = np.where(weight > 0, label, (label + 1) % 3)
    assert weights_if_better(logs[1:], wrong, weight) == pytest.approx(of_half, rel=0.2)


def test_rows_of_one_sample_judge_the_weights_as_one():
    rng = np.random.default_rng(0)
    label = rng.integers(3, size=60)
    noise, good = rng.normal(size=(2, 60, 3))
    good[np.arange(60), label] += 2
    noise[np.arange(60), label] += 0.7
    logs = np.log(softmax([noise, good], axis=2))
    assert weights_if_better(logs, label) is None

    copies = np.tile(logs, (1, 9, 1)), np.tile(label, 9)

    assert weights_if_better(*copies) is not None
    assert weights_if_better(*copies, number=np.tile(np.arange(60), 9)) is None


def test_several_networks_do_not_make_samples_of_a_validation_set(rows):
    X, y = rows
    few = {"X_val": X[1000:1030], "y_val": y[1000:1030]}
    many = {"X_val": X[1000:1300], "y_val": y[1000:1300]}
    known = {"cost_matrix": COST, "max_epochs": 8, "random_state": 0}
    model = CostSensitiveAuxNet(module_with_weights(), n_networks=3, **known)

    assert not model.fit(X[:1000], y[:1000], **few).head_weights_[:-1].any()
    assert model.fit(X[:1000], y[:1000], **many).head_weights_[:-1].any()
