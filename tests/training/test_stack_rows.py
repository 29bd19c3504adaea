"""What each network of a stack sees and holds out, against numpy on the rows themselves."""

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from auxcst_sklearn._estimators.fit_steps import build, make_net, plan_training, prepare, validate
from auxcst_sklearn._training.loop import STOP_TEMPERATURES
from auxcst_sklearn._training.temperature import PRIOR_ROWS
from auxcst_sklearn.losses import CrossEntropy
from tests.factories import small_mlp, small_stack
from tests.seen import AS_THEY_ARE, held_out
from tests.training.temperatures import numpy_temperature

N, K = 62, 3  # folds of 13 and of 12 rows
COST_MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 3, 0]])


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    y = rng.integers(K, size=N)
    return (rng.normal(size=(N, 4)) + y[:, np.newaxis] / 2).astype(np.float32), y


def logits_of(model, X):
    """Outputs of every network, (n_networks, n, K)."""
    with torch.no_grad():
        return model.net_.module_(torch.from_numpy(X)[None]).double().numpy()


def built(model, X, y):
    """A training that has not been run."""
    rng = np.random.RandomState(0)
    samples = validate(model, X, y)
    plan, statistics = plan_training(model, samples)
    samples = prepare(plan, samples, statistics)
    net = make_net(model, plan, samples, statistics, rng)
    training = build(model, plan, net, samples, rng)
    net.seed(0)
    return training


def test_probabilities_are_means_of_those_of_the_networks(data):
    model = small_stack(loss=CrossEntropy(), cost_matrix=COST_MATRIX, temperature=2.0).fit(*data)

    p = softmax(logits_of(model, data[0]) / 2, axis=-1).mean(axis=0)

    assert model.temperature_ == 2
    np.testing.assert_allclose(model.predict_proba(data[0]), p, rtol=1e-5)
    np.testing.assert_allclose(model.predict_cost(data[0]), p @ COST_MATRIX, rtol=1e-5)


@pytest.mark.parametrize("loss", ["bayes_risk", CrossEntropy()])
@pytest.mark.parametrize("per_sample", [False, True])
def test_means_of_many_classes_are_geometric(loss, per_sample):
    rng = np.random.default_rng(0)
    y = np.arange(240) % 12
    X = (rng.normal(size=(240, 5)) + np.eye(12)[y][:, :5]).astype(np.float32)
    cost = rng.uniform(1, 5, size=(240, 12)) * (np.arange(12) != y[:, None])
    matrix = 1.0 - np.eye(12) if not per_sample else None
    model = small_stack(loss=loss, cost_matrix=matrix, temperature=0.8, learning_rate=0.02)
    model.fit(X, y, cost=cost if per_sample else None)

    logits = logits_of(model, X)[..., :12]
    p = softmax(logits / 0.8, axis=-1)
    smoothing = getattr(model.net_.criterion_.loss, "classes", model.net_.criterion_.loss).smoothing
    p = np.maximum(p - smoothing / 12, 1e-3 * p)
    p /= p.sum(axis=-1, keepdims=True)
    mean = softmax(np.log(np.maximum(p, 1e-6)).mean(axis=0), axis=1)
    np.testing.assert_allclose(model.predict_proba(X), mean, rtol=1e-4, atol=1e-7)
    if not per_sample:
        np.testing.assert_allclose(model.predict_cost(X), 1 - mean, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("ema_epochs", [0, 1.0])
def test_each_network_ends_as_alone_on_its_rows(problem, ema_epochs):
    parameters = {"dropout": 0, "schedule": "constant", "learning_rate": 2e-3, "max_epochs": 8}
    parameters |= {"patience": 20, "early_stopping": True, "ema_epochs": ema_epochs}
    X, y = problem.X, problem.y
    stack = built(small_stack(**parameters), X, y)
    rows, held_out, generators = stack.rows, stack.held_out, stack.net.generators
    states = [generator.get_state() for generator in generators]
    alone = [built(small_mlp(**parameters, activation="silu"), X, y) for _ in rows]
    for training, start in zip(alone, stack.net.module_.weights(), strict=True):
        for weight, value in zip(*training.net.module_.weights(), start, strict=True):
            weight.copy_(value)
    stack.run()

    for i, (training, end) in enumerate(zip(alone, stack.net.module_.weights(), strict=True)):
        training.rows, training.held_out = [rows[i]], [held_out[i]]
        training.net.generators[0].set_state(states[i])
        training.net.batch_size = stack.net.batch_size
        training.run()
        for weight, expected in zip(end, *training.net.module_.weights(), strict=True):
            torch.testing.assert_close(weight, expected, rtol=1e-4, atol=1e-5)


def test_a_network_does_not_learn_from_its_fold(data):
    X, _ = data
    y = np.arange(N) % K
    parameters = {"alpha": 0.3, "ema_epochs": 0, "schedule": "constant", "max_epochs": 1}
    model = small_stack(**parameters, **AS_THEY_ARE)
    folds = held_out(model, X, y)
    before = logits_of(model, X)

    for i, fold in enumerate(folds):
        other = X.copy()
        other[fold] = np.random.default_rng(i).permutation(-X[fold])
        after = logits_of(small_stack(**parameters, **AS_THEY_ARE).fit(other, y), X)
        same = [np.array_equal(one, two) for one, two in zip(before, after)]
        assert same == [j == i for j in range(3)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_held_out_values_are_those_of_the_true_rows_of_folds_that_differ_in_size(
    data, weighted, grouped
):
    X, y = data
    weight = np.random.default_rng(1).uniform(0.1, 3, size=N) if weighted else None
    groups = np.minimum(np.arange(N) // 3, 15) if grouped else None
    model = small_stack(
        loss=CrossEntropy(), cost_matrix=COST_MATRIX, max_epochs=1, learning_rate=0.1, alpha=0
    )
    parts = held_out(model, X, y, sample_weight=weight, groups=groups)
    weight = np.ones(N) if weight is None else weight / weight.mean()
    logits = logits_of(model, X)

    cost, loss, refinement = [], [], []
    for z, part in zip(logits, parts):
        choice = (softmax(z[part], axis=1) @ COST_MATRIX).argmin(axis=1)
        cost.append(np.average(COST_MATRIX[y[part], choice], weights=weight[part]))
        of_label = np.arange(len(part)), y[part]
        losses = [
            -np.average(log_softmax(z[part] / t, axis=1)[of_label], weights=weight[part])
            for t in (1.0, *STOP_TEMPERATURES)
        ]
        loss.append(losses[0])
        prior = PRIOR_ROWS / max(map(len, parts)) * np.log(STOP_TEMPERATURES) ** 2
        refinement.append(min(losses[1:] + prior))

    assert len({len(part) for part in parts}) > 1
    (record,) = model.history_
    assert record["valid_cost"] == pytest.approx(np.mean(cost), rel=1e-5)
    assert record["valid_loss"] == pytest.approx(np.mean(loss), rel=1e-5)
    assert record["valid_refinement"] == pytest.approx(np.mean(refinement), rel=1e-5)
    unseen = np.concatenate([z[part] for z, part in zip(logits, parts)])
    rows = np.concatenate(parts)
    expected = numpy_temperature(unseen, y[rows], COST_MATRIX, weight[rows])
    assert model.temperature_ == pytest.approx(expected)


def test_groups_are_in_one_fold_each_and_too_few_are_an_error(data):
    X, y = data
    groups = np.arange(N) // 4

    parts = held_out(small_stack(n_networks=5), X, y, groups=groups)
    assert sorted(np.concatenate(parts)) == list(range(N))
    assert sum(len(set(groups[part])) for part in parts) == len(set(groups))
    with pytest.raises(ValueError, match="2 different values of groups, but 3 folds"):
        small_stack().fit(X, y, groups=np.arange(N) // 31)


def test_more_networks_than_rows_are_an_error(data):
    X, y = data[0][:12], np.arange(12) % K
    with pytest.raises(ValueError, match="12 samples, but 13 folds"):
        small_stack(n_networks=13).fit(X, y)


def test_fewer_than_ten_rows_hold_out_none(data):
    X, y = data[0][:9], np.arange(9) % K
    model = small_stack().fit(X, y)

    assert "valid_loss" not in model.history_[-1]
    assert model.temperature_ == 1
    assert "valid_loss" in small_stack().fit(data[0][:10], np.arange(10) % K).history_[-1]


def test_a_warm_start_holds_out_the_same_folds(data):
    model = small_stack(warm_start=True, random_state=np.random.RandomState(0))
    assert held_out(model, *data) == held_out(model, *data)
    assert len(model.history_) == 6


def test_a_class_of_one_row_and_classes_of_few_rows(data):
    y = np.r_[np.zeros(20, int), [1, 1, 2]]
    parts = held_out(small_stack(n_networks=5), data[0][:23], y)
    assert {len(part) for part in parts} <= {4, 5}
    assert sorted(np.concatenate(parts)) == list(range(22))  # the last class is trained on
    every = held_out(small_stack(n_networks=5), data[0][:12], np.arange(12))
    assert sorted(np.concatenate(every)) == list(range(12))  # all classes have one row


def test_a_warm_start_of_one_network_holds_out_the_same_rows(data):
    model = small_stack(n_networks=1, warm_start=True)
    first, second = held_out(model, *data), held_out(model, *data)
    assert len(first[0]) == N // 5
    assert first == second
    model.set_params(warm_start=False, random_state=1)
    assert held_out(model, *data) != first
