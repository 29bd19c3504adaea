import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification

from auxcst_sklearn import CostSensitiveAuxMLP, CSAEPretrainedMLP
from auxcst_sklearn.costs._problem import Problem
from auxcst_sklearn.losses import BayesRisk, Target
from auxcst_sklearn.losses._sample_risk import SampleRisk, for_sample_costs
from auxcst_sklearn.metrics import mean_cost
from tests.losses.formulas import softmax

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])
N_CLASSES = 3


@pytest.fixture
def problem():
    """Costs that depend on more than the class, with row minima that are not zero."""
    random = np.random.RandomState(0)
    label = np.r_[0, 1, 2, random.randint(N_CLASSES, size=17)]
    cost = MATRIX[label] * random.uniform(0.5, 2, size=(20, 3)) + random.normal(size=(20, 1))
    return cost, label, random.uniform(0.5, 2, size=20)


def of_samples(loss, cost, label, weight=None, *, stream=False):
    """The loss for these costs of samples."""
    return for_sample_costs(loss, problem_of(cost, label, weight), stream=stream)


def problem_of(cost, label, weight=None):
    return Problem(label, *[np.arange(cost.shape[1])] * 2, cost, "vectors", weight=weight)


def numpy_tables(cost, label, weight):
    lowest = cost.min(axis=1)
    return [
        np.array([np.average(values[label == k], axis=0, weights=weight[label == k])
                  for k in range(N_CLASSES)])
        for values in (cost - lowest[:, None], lowest)
    ]  # fmt: skip


def factors(a, b):
    return np.exp(6 * np.tanh((a[None, :] + b[:, None]) / 6))


@pytest.mark.parametrize("weighted", [False, True])
def test_costs_that_only_repeat_those_of_classes_need_no_cost_network(problem, weighted):
    _, label, weight = problem
    weight = weight if weighted else None

    assert of_samples(BayesRisk(), MATRIX[label], label, weight) == BayesRisk()
    fee = np.linspace(0, 9, 20)[:, None]  # what every prediction costs changes no decision
    assert of_samples(BayesRisk(), MATRIX[label] + fee, label, weight) == BayesRisk()
    assert isinstance(of_samples(BayesRisk(), MATRIX[label] * (1 + fee), label, weight), SampleRisk)


def test_loss_agrees_with_an_independent_computation(problem):
    cost, label, weight = problem
    loss = of_samples(BayesRisk(smoothing=0.1), cost, label, weight)
    outputs = np.random.RandomState(1).normal(size=(20, 3 * N_CLASSES))
    above, _ = numpy_tables(cost, label, weight)

    expected = []
    for z, c, y in zip(outputs, cost, label):
        logits, a, b = np.split(z, 3)
        smooth = 0.9 * np.eye(N_CLASSES)[y] + 0.1 / N_CLASSES
        factor = factors(a, b)[y]
        deviance = above[y] * factor - (c - c.min()) * np.log(factor)
        expected.append(-smooth @ np.log(softmax(logits)) + deviance.mean())

    found = loss(torch.from_numpy(outputs), Target(*map(torch.from_numpy, (cost, label))))
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


def test_gradient(problem):
    cost, label, _ = problem
    loss = of_samples(BayesRisk(), cost, label)
    outputs = torch.randn(20, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    target = Target(*map(torch.from_numpy, (cost, label)))
    assert torch.autograd.gradcheck(lambda z: loss(z, target), outputs.requires_grad_(True))


def test_estimate_agrees_with_an_independent_computation(problem, monkeypatch):
    cost, label, weight = problem
    loss = of_samples(BayesRisk(smoothing=0.1), cost, label, weight)
    outputs = np.random.RandomState(1).normal(size=(20, 3 * N_CLASSES))
    above, level = numpy_tables(cost, label, weight)

    expected, matrices = [], []
    for z in outputs:
        logits, a, b = np.split(z, 3)
        p = np.array(softmax(logits))
        p = np.maximum(p - 0.1 / N_CLASSES, p / 1000)
        matrices.append(level[:, None] + above * factors(a, b))
        expected.append(p / p.sum() @ matrices[-1])

    found = loss.class_costs(torch.from_numpy(outputs))
    np.testing.assert_allclose(found.numpy(), matrices, rtol=1e-12)
    for size in (2**20, 40):
        monkeypatch.setattr("auxcst_sklearn.losses._sample_risk.LARGEST_TABLE", size)
        found = loss.to_cost(torch.from_numpy(outputs), None)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("spread", [0, 0.1, 0.5, 1.5, 6])
def test_estimates_of_many_classes_agree_with_an_independent_computation(spread):
    n_classes, rng = 150, np.random.default_rng(0)
    label = np.arange(2 * n_classes) % n_classes
    cost = rng.uniform(1, 9, size=(2 * n_classes, n_classes))
    cost[np.arange(2 * n_classes), label] = 0
    loss = of_samples(BayesRisk(), cost, label)
    logits, a, b = rng.normal(size=(3, 20, n_classes)) * np.array([4, spread, 2])[:, None, None]
    a[-1] *= 3  # rows of several spreads
    outputs = torch.from_numpy(np.concatenate([logits, a + 1, b], axis=1).astype(np.float32))
    outputs[3, n_classes + 5] = 400  # far out

    p = loss.probabilities(outputs.double()).numpy()
    above, level = loss.above.numpy(), loss.level.numpy()
    expected = []
    for row, z in zip(p, outputs.double().numpy()):
        _, a, b = np.split(z, 3)
        expected.append(row @ (level[:, None] + above * factors(a, b)))

    found = loss.to_cost(outputs, None)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5)
    for i in (0, 3, 19):
        (alone,) = loss.to_cost(outputs[i : i + 1], None).numpy()
        np.testing.assert_allclose(alone, expected[i], rtol=1e-5)


def test_an_estimate_that_is_not_a_number_stays_in_its_row():
    label = np.arange(200) % 100
    loss = of_samples(BayesRisk(), np.random.default_rng(0).random((200, 100)), label)
    outputs = torch.zeros(5, 300)
    outputs[1] = torch.nan

    assert loss.to_cost(outputs, None).isnan().all(dim=1).tolist() == [False, True, *[False] * 3]


def individual_costs(n=600, seed=0):
    """Classes that overlap, and prices that depend on a feature, not on the class."""
    X, y = make_classification(
        n, 8, n_informative=5, n_classes=3, class_sep=0.7, flip_y=0.3, random_state=seed
    )
    price = np.exp(np.c_[X[:, 0], -X[:, 0], X[:, 1]])
    price[np.arange(n), y] = 0
    return X.astype(np.float32), y, price


def test_costs_that_depend_on_the_example_are_learnt():
    X, y, cost = individual_costs()
    train, test = slice(400), slice(400, None)

    def paid(loss):
        model = CostSensitiveAuxMLP(2, 32, loss=loss, n_networks=2, max_epochs=40, random_state=0)
        model.fit(X[train], y[train], cost=cost[train])
        return mean_cost(y[test], model.predict(X[test]), cost=cost[test])

    assert paid("bayes_risk") < 0.5 * paid("cross_entropy")


def test_the_network_of_the_classes_is_that_of_class_costs(problem):
    X, y, cost = individual_costs(60)
    parameters = {"depth": 2, "width": 8, "max_epochs": 1, "n_networks": 2, "random_state": 0}

    example = CostSensitiveAuxMLP(**parameters).fit(X, y, cost=cost)
    repeated = CostSensitiveAuxMLP(**parameters).fit(X, y, cost=MATRIX[y])

    assert example.hidden_layers_ == repeated.hidden_layers_
    assert len(example.net_.module_.classes.hidden) == len(repeated.net_.module_.hidden) == 2
    assert [r.shape for r in example.staged_predict_cost(X)] == [(60, 3), (60, 3)]
    networks = repeated.net_.module_, example.net_.module_
    n_first, n_both = (sum(p.numel() for p in network.parameters()) for network in networks)
    assert n_both == n_first + 2 * ((8 * 8 + 8) + (8 * 8 + 8) + (6 * 8 + 6))


def test_pretrained_networks_take_costs_per_sample_by_their_class_means():
    X, y, cost = individual_costs(60)

    few = {"pretrain_epochs": 1, "max_epochs": 2, "random_state": 0}
    model = CSAEPretrainedMLP(1, 8, loss="bayes_risk", **few).fit(X, y, cost=cost)

    assert model.predict_cost(X).shape == (60, 3)


def test_several_heads_at_once(problem):
    cost, label, _ = problem
    loss = of_samples(BayesRisk(), cost, label)
    outputs = torch.randn(2, 20, 9, dtype=torch.float64)
    target = Target(torch.from_numpy(cost), torch.from_numpy(label))

    found = loss(outputs, target)

    for head, expected in zip(outputs, found, strict=True):
        torch.testing.assert_close(loss(head, target), expected)


@pytest.mark.parametrize("how", ["partial_fit", "warm_start"])
def test_a_class_that_first_occurs_later_costs_what_it_costs_then(how):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)).astype(np.float32)
    y = (X[:, 0] > 1).astype(int)
    cost = np.zeros((600, 2))
    cost[y == 1, 0] = rng.uniform(50, 150, (y == 1).sum())
    cost[y == 0, 1] = rng.uniform(1, 3, (y == 0).sum())
    first = np.flatnonzero(y == 0)[:100]
    parameters = {"n_networks": 2, "max_epochs": 20, "random_state": 0, "classes": [0, 1]}
    model = CostSensitiveAuxMLP(1, 16, **parameters)
    if how == "partial_fit":
        model.partial_fit(X[first], y[first], cost=cost[first])
        for _ in range(20):
            model.partial_fit(X, y, cost=cost)
    else:
        model.set_params(warm_start=True).fit(X[first], y[first], cost=cost[first])
        model.fit(X, y, cost=cost)

    assert -model.score(X, y, cost=cost) < 0.5 * cost.mean(axis=0).min()
    expected = cost[y == 1].mean(axis=0)
    above = model.net_.criterion_.loss.above[1].numpy(force=True)
    np.testing.assert_allclose(model.net_.statistics.unit * above, expected)


def test_factors_stay_those_of_the_means_that_they_were_learnt_for():
    cost = np.array([[0.0, 1, 2], [0, 3, 4], [2, 0, 0]])
    loss = of_samples(BayesRisk(), cost, np.array([0, 0, 1]))

    more = np.array([[0.0, 9, 9], [5, 0, 7], [1, 2, 0]])
    later = loss.with_samples(problem_of(more, np.arange(3)), stream=False)

    # The zeros of class 1 and all of class 2, which had no example, are new.
    np.testing.assert_allclose(later.above.numpy(), [[0, 2, 3], [2, 0, 7], [1, 2, 0]])
    assert later.seen.tolist() == [3, 2, 1]
    assert loss.seen.tolist() == [2, 1, 0]


def test_in_a_stream_the_means_are_those_of_all_samples():
    random = np.random.default_rng(0)
    cost, label = random.uniform(size=(40, 3)), random.integers(3, size=40)
    blocks = [slice(3), slice(3, 10), slice(10, 40)]
    whole = problem_of(cost, label)
    first, *others = (whole.take(np.r_[block]) for block in blocks)

    loss = for_sample_costs(BayesRisk(), first, stream=True)
    for costs in others:
        loss = loss.with_samples(costs, stream=True)

    whole = of_samples(BayesRisk(), cost, label)
    torch.testing.assert_close(loss.above, whole.above)
    torch.testing.assert_close(loss.level, whole.level)
    torch.testing.assert_close(loss.seen, whole.seen)


def test_another_unit_rescales_the_means(problem):
    cost, label, _ = problem
    outputs = torch.randn(20, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss = of_samples(BayesRisk(), cost, label)

    found = loss.in_unit(3.0, 7.0).to_cost(outputs, None)

    torch.testing.assert_close(found, 3 * loss.to_cost(outputs, None) + 7)


def test_the_network_of_costs_starts_alike_with_and_without_heads():
    X, y, cost = individual_costs(60)
    at_start = {"max_epochs": 1, "learning_rate": 1e-12, "weight_decay": 0, "random_state": 0}
    models = [CostSensitiveAuxMLP(2, 8, alpha, **at_start) for alpha in (0, 0.3)]
    starts = [model.fit(X, y, cost=cost).net_.module_.costs.parameters() for model in models]

    for one, other in zip(*starts, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-8)
