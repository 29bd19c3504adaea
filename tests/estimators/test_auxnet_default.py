"""The default of a module of one's own: two networks, calibrated by the samples they hold out."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

from auxcst_sklearn import CostSensitiveAuxNet
from tests.factories import dense

COSTS = np.array([[0, 1, 2], [5, 0, 1], [9, 3, 0.0]])


def module(n_features=10, n_classes=3):
    return dense(n_features, 32, 32, n_classes)


def net(**parameters):
    known = {"cost_matrix": COSTS, "max_epochs": 3, "random_state": 0, "learning_rate": 1e-2}
    return CostSensitiveAuxNet(module, **{**known, **parameters})


def problem(n=200, seed=0):
    X, y = make_classification(
        n, 10, n_informative=5, n_classes=3, class_sep=0.7, flip_y=0.1, random_state=seed
    )
    return X.astype(np.float32), y


def weights(model):
    parameters = model.net_.module_.parameters()
    return np.concatenate([p.numpy(force=True).ravel() for p in parameters])


@pytest.mark.parametrize(
    ("parameters", "n_networks", "learns"),
    [
        ({}, 2, True),
        ({"early_stopping": True}, 2, True),
        ({"n_networks": 1}, 1, True),
        ({"n_networks": 3}, 3, True),
        ({"pretrained": True}, 1, True),
        ({"temperature": 1.0}, 1, False),
        ({"loss": "one_sided"}, 1, False),
    ],
)
def test_new_modules_are_two_networks_if_a_temperature_is_learnt(parameters, n_networks, learns):
    X, y = problem()
    model = net(**parameters).fit(X, y)

    assert model.training_.n_networks == n_networks
    # The weights of averaged heads contain the temperature.
    assert (not np.array_equal(model.head_weights_, [0, 1])) == learns
    assert ("valid_loss" in model.history_[0]) == learns
    if n_networks == 2:
        first, second = (list(one.parameters()) for one in model.net_.module_.networks)
        assert not np.array_equal(first[0].numpy(force=True), second[0].numpy(force=True))


@pytest.mark.slow
def test_the_default_is_better_calibrated_than_one_network_without_a_temperature():
    losses = []
    for seed in range(3):
        X, y = problem(1200, seed)
        models = [net(max_epochs=30), net(max_epochs=30, temperature=1.0)]
        p = [model.fit(X[:200], y[:200]).predict_proba(X[200:]) for model in models]
        losses.append([log_loss(y[200:], one) for one in p])
    default, one = np.mean(losses, axis=0)
    assert default < 0.9 * one


def test_with_a_validation_set_all_samples_are_trained_on():
    X, y = problem()
    model = net(alpha=0).fit(X[:150], y[:150], X_val=X[150:], y_val=y[150:])
    other = net(alpha=0).fit(X[:150], y[:150], X_val=X[:50], y_val=y[:50])

    np.testing.assert_array_equal(weights(model), weights(other))
    assert model.temperature_ != other.temperature_


def test_groups_are_held_out_together_even_if_there_are_few():
    """With a label of noise for each of six groups, an unseen group is a coin toss."""
    rng = np.random.default_rng(0)
    group = np.arange(240) % 6
    X = np.eye(6, 10, dtype=np.float32)[group] + rng.normal(0, 0.05, (240, 10)).astype(np.float32)
    y = np.array([0, 1, 2, 2, 1, 0])[group]
    # Without heads, whose weights would contain the temperature.
    known = net(max_epochs=15, alpha=0, n_networks=5).fit(X, y)
    unseen = clone(known).fit(X, y, groups=group)
    assert known.temperature_ < 1 < unseen.temperature_


def test_more_training_keeps_the_temperature_or_learns_it_anew():
    X, y = problem()
    model = net(warm_start=True).fit(X, y)
    learnt, seed = model.temperature_, model._fold_seed
    model.partial_fit(X, y)
    assert model.temperature_ == learnt

    model.fit(X, y)
    assert model._fold_seed == seed  # so that no sample is held out that was trained on
    assert model.temperature_ != learnt
    assert net().partial_fit(X, y, classes=[0, 1, 2]).temperature_ == 1


def signals(n, rng):
    """Sines in noise; the probability, 1 % on average, grows with the amplitude."""
    size = rng.normal(size=n)
    X = size[:, np.newaxis] * np.sin(np.arange(10) / 2) + rng.normal(0, 0.3, (n, 10))
    p = 1 / (1 + np.exp(6.5 - 2.2 * size))
    return X.astype(np.float32), (rng.random(n) < p).astype(int), p


@pytest.mark.slow
def test_decisions_by_small_probabilities_cost_less_than_to_alarm_always():
    """A miss of 1,000 alarms; after thirty epochs the networks are far too sure."""
    rng = np.random.default_rng(0)
    (X, y, _), (X_test, _, p) = signals(12_000, rng), signals(20_000, rng)
    known = {"module__n_classes": 2, "max_epochs": 30, "learning_rate": 0.02}
    model = net(cost_matrix=[[0, 1], [1000, 0]], **known)

    def cost(n):
        return np.where(model.fit(X[:n], y[:n]).predict(X_test) == 1, 1 - p, 1000 * p).mean()

    default = cost(12_000)  # 0.76 to 0.82 of the cost of alarms; without what follows, 1.3 to 1.5
    model.set_params(early_stopping=False, temperature=1.0)
    assert default < (1 - p).mean() < cost(4000)


def test_with_extreme_costs_a_temperature_makes_nothing_surer():
    X = np.eye(2, 10, dtype=np.float32)[np.arange(200) % 2]
    learnt = [
        net(cost_matrix=[[0, 1], [ratio, 0]], module__n_classes=2).fit(X, np.arange(200) % 2)
        for ratio in (100, 1000)
    ]
    assert learnt[0].temperature_ < learnt[1].temperature_ == 1
