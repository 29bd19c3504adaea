import numpy as np
import pytest
import torch

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.costs._statistics import CostStatistics
from auxcst_sklearn.losses import BayesRisk, CrossEntropy, Target
from tests.losses.formulas import statistics


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_estimates_are_expected_costs(smoothing):
    stats, cost, label = statistics()
    p = np.array([[0.7, 0.2, 0.09, 0.01], [0.25, 0.25, 0.25, 0.25]])
    smooth = (1 - smoothing) * p + smoothing / 4
    outputs = torch.from_numpy(np.log(smooth))
    rows = [label == k if (label == k).any() else slice(None) for k in range(4)]
    class_mean = np.array([cost[of_class].mean(axis=0) for of_class in rows])

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
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-300)
        assert smoothing == 0 or found.min() > 0


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_cross_entropy_refuses_a_share_outside_of_its_range(smoothing):
    with pytest.raises(ValueError, match="smoothing"):
        CrossEntropy(smoothing)


WEIGHT = np.array([900.0, 0.0, 9.0])  # samples of each class


def bound(smoothing):
    """The loss for extreme costs, and samples of which one class is rare, and one is missing."""
    costs = np.array([[0, 1, 1], [1, 0, 1], [1000, 1000, 0.0]])
    return CrossEntropy(smoothing)._for_statistics(CostStatistics(WEIGHT, costs))


def numpy_probabilities(outputs):
    p = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    p /= p.sum(axis=-1, keepdims=True)
    p = np.maximum(p, 1 / 909 / 2)  # one of 909 samples, for two other classes
    return p / p.sum(axis=-1, keepdims=True)


@pytest.mark.parametrize("smoothing", [0.05, 0.2])
@pytest.mark.parametrize("shape", [(7, 3), (2, 7, 3), (4, 2, 7, 3)])
def test_extreme_costs_smooth_labels_towards_the_class_frequencies(smoothing, shape):
    rng = np.random.default_rng(0)
    outputs, label = rng.normal(0, 3, shape), rng.integers(3, size=7)
    target = (1 - smoothing) * np.eye(3)[label] + smoothing * (WEIGHT + 1) / (WEIGHT + 1).sum()
    log_p = outputs - np.log(np.exp(outputs).sum(axis=-1, keepdims=True))
    expected, weight = -(target * log_p).sum(axis=-1), rng.uniform(size=7)
    tensors = torch.from_numpy(outputs), torch.from_numpy(label)

    found = bound(smoothing)(tensors[0], Target(None, tensors[1]))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)
    for w in (None, weight):
        of_batch = Target(None, tensors[1], None if w is None else torch.from_numpy(w))
        means = (expected * (1 if w is None else w)).mean(axis=-1)
        np.testing.assert_allclose(bound(smoothing)._mean(tensors[0], of_batch), means, rtol=1e-12)
    found = bound(smoothing).probabilities(tensors[0])
    np.testing.assert_allclose(found, numpy_probabilities(outputs), rtol=1e-12)


def test_outputs_of_given_probabilities_down_to_one_of_all_samples():
    p = torch.tensor([[0.99, 0.008, 0.002], [1 - 1.2e-3, 6e-4, 6e-4]], dtype=torch.float64)
    found = bound(0.1).probabilities(bound(0.1).with_probabilities(None, p))
    np.testing.assert_allclose(found, p, rtol=1e-12)


@pytest.mark.slow
def test_decisions_far_below_the_smoothing_are_good():
    """A miss costs as much as 1,000 alarms. Of each class 0.025 of the labels would be too much."""
    rng = np.random.default_rng(0)

    def draw(n):
        signal = rng.normal(size=n)
        rate = 1 / (1 + np.exp(6.5 - 2.2 * signal))
        X = signal[:, np.newaxis] * np.sin(np.arange(24) / 4) + rng.normal(0, 0.3, (n, 24))
        return X, (rng.random(n) < rate).astype(int), rate

    model = CostSensitiveAuxMLP(cost_matrix=[[0, 1], [1000, 0]], random_state=0)
    (X, y, _), (X_test, _, rate) = draw(12_000), draw(20_000)
    alarm = model.fit(X, y).predict(X_test) == 1
    cost = np.where(alarm, 1 - rate, 1000 * rate).mean()
    possible = np.minimum(1 - rate, 1000 * rate).mean()
    assert possible <= cost < 1.3 * possible  # always to alarm: 1.4; random states 1.14 to 1.21


@pytest.mark.slow
def test_no_cost_can_outweigh_what_the_samples_cannot_show():
    """Of 500 samples none at X < 0 is a 1, which does not show that one in 5,000 is none."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(500, 1))
    y = (X[:, 0] > 0).astype(int)
    model = CostSensitiveAuxMLP(cost_matrix=[[0, 1], [1e4, 0]], random_state=0).fit(X, y)
    assert (model.predict(X) == 1).all()
    assert model.predict_proba(X).min() >= 1 / 501


@pytest.mark.parametrize(
    ("ratio", "extreme"), [(100, False), (190, False), (210, True), (10_000, True)]
)
def test_only_extreme_costs_change_the_smoothing(ratio, extreme):
    """A miss of `ratio` alarms: decisions depend on probabilities of about 1 / ratio."""
    for currency in (1, 1e-3, 1e6):
        costs = currency * (np.array([[0, 1.0], [ratio, 0]]) + 3)  # whoever pays a fee
        stats = CostStatistics(np.array([90, 10.0]), costs)
        assert stats.smallest_threshold == pytest.approx(1 / (1 + ratio))
        loss = BayesRisk()
        assert (loss._for_statistics(stats) is not loss) == extreme
        assert CrossEntropy()._for_statistics(stats) == CrossEntropy()


@pytest.mark.parametrize("aux_loss", [None, CrossEntropy(0.1)])
def test_extreme_costs_bound_the_probabilities_of_heads_too(aux_loss):
    X, y = np.arange(60.0).reshape(-1, 1), np.arange(60) // 30
    costs = {"cost_matrix": [[0, 1], [1e4, 0]], "early_stopping": False, "max_epochs": 1}
    model = CostSensitiveAuxMLP(alpha=0.3, aux_loss=aux_loss, random_state=0, **costs).fit(X, y)

    for loss in (model.net_.criterion_.loss, model.net_.criterion_.aux_loss):
        assert loss.probabilities(torch.tensor([[40.0, -40.0]]))[0, 1] == pytest.approx(1 / 61)


def test_costs_near_zero_are_not_extreme():
    """To take a 0 for a 1 costs next to nothing, whatever the probability of a 1 is."""
    costs = np.array([[0, 1e-4, 3.0], [2, 0, 1], [4, 5, 0.0]])
    stats = CostStatistics(np.array([50, 30, 20.0]), costs)
    assert stats.smallest_threshold == pytest.approx(1 / 6)  # of class 1, for class 2


def test_costs_without_a_conflict_are_not_extreme():
    for costs in (np.zeros((3, 3)), np.tile([0, 1.0, 2], (3, 1)), np.array([[0, 0], [9, 0.0]])):
        stats = CostStatistics(np.full(len(costs), 5.0), costs)
        assert stats.smallest_threshold == 1
