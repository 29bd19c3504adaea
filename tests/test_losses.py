"""The losses against an independent float64 computation, example by example and class by class."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from auxcst_sklearn._scaling import CostStatistics
from auxcst_sklearn.losses import (
    LOSSES,
    BayesRisk,
    CrossEntropy,
    LayerWiseLoss,
    OneSided,
    Softmin,
    Squared,
    Target,
    get_loss,
)

EVERY_LOSS = [*LOSSES.values(), Softmin(tau=0.3), CrossEntropy(smoothing=0.2)]


def one_sided(r, c, label):
    return sum(max((rk - ck) if ck == min(c) else (ck - rk), 0) for rk, ck in zip(r, c))


def smooth_one_sided(r, c, label):
    signs = [1 if ck == min(c) else -1 for ck in c]
    return sum(math.log(1 + math.exp(z * (rk - ck))) for z, rk, ck in zip(signs, r, c))


def softmax(values):
    powers = [math.exp(v - max(values)) for v in values]
    return [p / sum(powers) for p in powers]


def softmin(r, c, label, tau=1.0):
    target = softmax([-ck / tau for ck in c])
    guess = softmax([-rk / tau for rk in r])
    return -sum(t * math.log(g) for t, g in zip(target, guess))


def squared(r, c, label):
    return sum((rk - ck) ** 2 for rk, ck in zip(r, c))


def cross_entropy(r, c, label, smoothing=0.0):
    p = softmax(r)
    target = [smoothing / len(r) + (1 - smoothing) * (k == label) for k in range(len(r))]
    return -sum(t * math.log(q) for t, q in zip(target, p))


INDEPENDENT = {
    OneSided(): one_sided,
    LOSSES["smooth_one_sided"]: smooth_one_sided,
    LOSSES["softmin"]: softmin,
    Softmin(tau=0.3): lambda r, c, label: softmin(r, c, label, tau=0.3),
    Squared(): squared,
    CrossEntropy(): cross_entropy,
    BayesRisk(): lambda r, c, label: cross_entropy(r, c, label, smoothing=0.05),
    CrossEntropy(smoothing=0.2): lambda r, c, label: cross_entropy(r, c, label, smoothing=0.2),
}


def problem(n=6, n_classes=4, seed=0):
    """Outputs, costs with ties and with row minima of either sign, labels."""
    random = np.random.RandomState(seed)
    cost = random.uniform(0, 3, size=(n, n_classes))
    cost -= cost.min(axis=1, keepdims=True)
    cost[1, :2] = 0.0
    cost[2] += 1.5
    cost[3] -= 2.0
    cost[4] = 0.7
    outputs = random.normal(size=(n, n_classes))
    return outputs, cost, random.randint(n_classes, size=n)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_loss_agrees_with_an_independent_computation(loss):
    outputs, cost, label = problem()
    expected = [INDEPENDENT[loss](*row) for row in zip(outputs, cost, label)]

    found = loss(*map(torch.from_numpy, (outputs, cost, label)))

    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_gradient(loss):
    outputs, cost, label = map(torch.from_numpy, problem())
    outputs.requires_grad_(True)

    assert torch.autograd.gradcheck(lambda r: loss(r, cost, label), outputs)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_stacked_heads_lose_what_each_loses_alone(loss):
    outputs, cost, label = map(torch.from_numpy, problem())
    heads = torch.stack([outputs, outputs + 1, -outputs])

    stacked = loss(heads, cost, label)

    assert stacked.shape == (3, len(outputs))
    for head, losses in zip(heads, stacked):
        torch.testing.assert_close(losses, loss(head, cost, label))


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6, 1e12])
@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_no_overflow_for_any_unit(loss, unit):
    outputs, cost, label = problem()
    outputs = torch.tensor(outputs, dtype=torch.float32, requires_grad=True)
    cost = torch.tensor(cost * unit, dtype=torch.float32)

    loss(outputs, cost, torch.from_numpy(label)).sum().backward()

    assert torch.isfinite(loss(outputs, cost, torch.from_numpy(label))).all()
    assert torch.isfinite(outputs.grad).all()


reals = st.floats(-100, 100)


@settings(deadline=None)
@given(
    outputs=arrays(float, (3, 4), elements=reals),
    cost=arrays(float, (3, 4), elements=st.floats(0, 100)),
)
def test_one_sided_loss_bounds_the_cost_of_the_prediction(outputs, cost):
    cost = cost - cost.min(axis=1, keepdims=True)
    label = torch.from_numpy(cost.argmin(axis=1))

    for name in ("one_sided", "smooth_one_sided"):
        loss = LOSSES[name](torch.from_numpy(outputs), torch.from_numpy(cost), label)
        paid = cost[np.arange(3), outputs.argmin(axis=1)]
        assert (loss.numpy() >= paid - 1e-9).all()


def test_one_sided_sign_is_plus_at_every_cheapest_class():
    cost = torch.tensor([[2.0, 2.0, 5.0]])
    label = torch.tensor([0])

    under = OneSided()(torch.tensor([[1.0, 0.0, 6.0]]), cost, label)
    over = OneSided()(torch.tensor([[3.0, 2.5, 4.0]]), cost, label)

    assert under.item() == 0.0
    assert over.item() == 1.0 + 0.5 + 1.0


def test_softmin_tends_to_cross_entropy_on_the_cheapest_class():
    outputs = torch.from_numpy(problem()[0])[:1]
    cost = torch.tensor([[2.0, 1.0, 0.0, 3.0]], dtype=torch.float64)
    tau = 1e-2

    cold = Softmin(tau)(outputs * tau, cost, torch.tensor([0]))

    torch.testing.assert_close(cold, CrossEntropy()(-outputs, cost, torch.tensor([2])))


def test_softmin_tends_to_squared_error_of_centred_rows():
    outputs, cost, label = map(torch.from_numpy, problem())
    tau = 1e4

    def centre(a):
        return a - a.mean(dim=1, keepdim=True)

    excess = Softmin(tau)(outputs, cost, label) - Softmin(tau)(cost, cost, label)

    error = (centre(outputs) - centre(cost)).square().sum(dim=1)
    torch.testing.assert_close(excess * 2 * tau**2 * 4, error, rtol=1e-3, atol=1e-3)


def statistics():
    _, cost, label = problem()
    return CostStatistics.of(cost, label), cost, label


def test_softmin_estimates_have_the_mean_cost_as_level():
    stats, cost, _ = statistics()
    outputs = torch.from_numpy(problem()[0])

    estimate = Softmin().estimate(outputs, stats)

    np.testing.assert_allclose(estimate.mean(dim=1).numpy(), cost.mean())
    assert torch.equal(estimate.argmin(dim=1), outputs.argmin(dim=1))


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_cross_entropy_estimates_are_expected_costs(smoothing):
    stats, cost, label = statistics()
    p = np.array([[0.7, 0.2, 0.1, 0.0], [0.25, 0.25, 0.25, 0.25]])
    smooth = (1 - smoothing) * p + smoothing / 4
    outputs = torch.from_numpy(np.log(smooth + 1e-300))
    class_mean = np.array(
        [
            cost[label == k].mean(axis=0) if (label == k).any() else cost.mean(axis=0)
            for k in range(4)
        ]
    )

    estimate = CrossEntropy(smoothing).estimate(outputs, stats)

    np.testing.assert_allclose(estimate.numpy(), p @ class_mean, atol=1e-12)


@pytest.mark.parametrize("n_classes", [2, 15, 16, 40])
def test_probabilities_are_those_of_an_independent_computation(n_classes):
    rng = np.random.default_rng(0)
    outputs = rng.normal(0, 20, (9, n_classes)) + 1e4
    p = np.exp(outputs - outputs.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    inverted = np.maximum(p - 0.1 / n_classes, 0)
    inverted /= inverted.sum(axis=1, keepdims=True)

    for smoothing, expected in ((0.0, p), (0.1, inverted)):
        found = CrossEntropy(smoothing).probabilities(torch.from_numpy(outputs))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


def test_start_biases():
    stats, cost, label = statistics()

    np.testing.assert_allclose(OneSided().start_bias(stats).numpy(), cost.mean(axis=0))
    share = (np.bincount(label, minlength=4) + 1) / (len(label) + 4)
    np.testing.assert_allclose(CrossEntropy().start_bias(stats).numpy(), np.log(share))


@pytest.mark.parametrize("aux_loss", [OneSided(), Squared()])
@pytest.mark.parametrize("weight", [None, torch.tensor([1.0, 0.0, 2.0, 1.0, 1.0, 1.0])])
def test_layer_wise_loss(aux_loss, weight):
    outputs, cost, label = map(torch.from_numpy, problem())
    heads = [outputs, outputs + 1, -outputs]
    w = torch.ones(6) if weight is None else weight
    expected = [
        (w * loss(head, cost, label)).mean()
        for loss, head in zip([aux_loss, aux_loss, OneSided()], heads)
    ]
    objective = LayerWiseLoss(OneSided(), aux_loss, alpha=[0.5, 0.1]).double()

    total, losses = objective(heads, Target(cost, label, weight))

    torch.testing.assert_close(losses, torch.stack(expected))
    torch.testing.assert_close(total, 0.5 * expected[0] + 0.1 * expected[1] + expected[2])


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_layer_wise_loss_of_the_output_alone(loss):
    outputs, cost, label = map(torch.from_numpy, problem())

    total, losses = LayerWiseLoss(loss, Squared(), alpha=[])([outputs], Target(cost, label))

    expected = loss(outputs, cost, label).mean()
    torch.testing.assert_close(total, expected)
    torch.testing.assert_close(losses, expected.view(1))


def test_get_loss():
    assert get_loss("one_sided") == OneSided()
    assert get_loss(Softmin(2.0)) == Softmin(2.0)
    with pytest.raises(ValueError, match="'onesided'; expected one of 'one_sided'"):
        get_loss("onesided")


@pytest.mark.parametrize("tau", [0, -1.0, float("nan")])
def test_softmin_refuses_a_temperature_that_is_not_positive(tau):
    with pytest.raises(ValueError, match="tau must be positive"):
        Softmin(tau)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, float("nan")])
def test_cross_entropy_refuses_a_share_outside_of_its_range(smoothing):
    with pytest.raises(ValueError, match="smoothing"):
        CrossEntropy(smoothing)
