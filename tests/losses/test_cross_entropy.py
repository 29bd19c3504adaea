import numpy as np
import pytest
import torch

from auxcst_sklearn.losses import CrossEntropy
from tests.losses.formulas import statistics


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_estimates_are_expected_costs(smoothing):
    stats, cost, label = statistics()
    p = np.array([[0.7, 0.2, 0.09, 0.01], [0.25, 0.25, 0.25, 0.25]])
    smooth = (1 - smoothing) * p + smoothing / 4
    outputs = torch.from_numpy(np.log(smooth))
    class_mean = np.array(
        [
            cost[label == k].mean(axis=0) if (label == k).any() else cost.mean(axis=0)
            for k in range(4)
        ]
    )

    estimate = CrossEntropy(smoothing).to_cost(outputs, stats)

    np.testing.assert_allclose(estimate.numpy(), p @ class_mean, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 15, 16, 40])
def test_probabilities_are_those_of_an_independent_computation(n_classes):
    rng = np.random.default_rng(0)
    outputs = rng.normal(0, 20, (9, n_classes)) + 1e4
    p = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    inverted = np.maximum(p - 0.1 / n_classes, p / 1000)
    inverted /= inverted.sum(axis=1, keepdims=True)

    for smoothing, expected in ((0.0, p), (0.1, inverted)):
        found = CrossEntropy(smoothing).probabilities(torch.from_numpy(outputs))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_cross_entropy_refuses_a_share_outside_of_its_range(smoothing):
    with pytest.raises(ValueError, match="smoothing"):
        CrossEntropy(smoothing)


def test_no_probability_is_zero_where_smoothing_is_removed():
    logits = torch.tensor([[0.0, -9.0, -20.0]], dtype=torch.float64)
    p = CrossEntropy(smoothing=0.1).probabilities(logits)[0].numpy()
    q = np.exp([0.0, -9.0, -20.0])
    q /= q.sum()
    expected = np.maximum(q - 0.1 / 3, q / 1000)

    np.testing.assert_allclose(p, expected / expected.sum(), rtol=1e-9)
    assert p.min() > 0
