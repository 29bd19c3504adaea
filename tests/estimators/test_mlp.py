import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.utils import check_random_state
from skorch.callbacks import Callback
from torch import nn

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.losses import OneSided, Target
from tests.factories import small_mlp

MATRIX = np.array([[0.0, 1, 5], [2, 0, 1], [1, 8, 0]])


@pytest.fixture(scope="module")
def data():
    return make_classification(
        300, n_features=6, n_informative=5, n_redundant=0, n_classes=3, random_state=0
    )


# Without what the loop by hand does not do.
PLAIN = {"loss": "one_sided", "dropout": 0.0, "learning_rate": 1e-3, "schedule": "constant"}


def small(**parameters):
    return small_mlp(**{"depth": 3, **parameters})


def raw_loop(X, label, cost, *, seed, alpha, epochs, size):
    """The same training, written by hand: a plain loop over an nn.Sequential and its heads."""
    random_state = check_random_state(seed)
    init_seed, train_seed = (random_state.randint(np.iinfo(np.int32).max) for _ in range(2))
    with torch.random.fork_rng():
        torch.manual_seed(init_seed)
        layers = [nn.Linear(X.shape[1], 8), nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 3)]
        heads = [nn.Linear(8, 3), nn.Linear(8, 3)] if alpha else []
    row_minimum = cost.min(axis=1)
    above = cost - row_minimum[:, None]
    cost = (cost - row_minimum.mean()) / above[above > 0].mean()
    with torch.no_grad():
        for layer in [layers[-1], *heads]:
            layer.bias.copy_(torch.from_numpy(cost.mean(axis=0)))
    parameters = [p for layer in layers + heads for p in layer.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=1e-2, fused=True)
    generator = torch.Generator().manual_seed(train_seed)
    X, cost = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(cost.astype(np.float32))
    for _ in range(epochs):
        order = torch.randperm(len(X), generator=generator)
        for hidden, c in zip(X[order].split(size), cost[order].split(size)):
            outputs = []
            for i, layer in enumerate(layers[:-1]):
                hidden = torch.relu(layer(hidden))
                if alpha and i < 2:
                    outputs.append(heads[i](hidden))
            outputs.append(layers[-1](hidden))
            losses = [OneSided()(r, Target(c, None)).mean() for r in outputs]
            loss = sum(weight * part for weight, part in zip([alpha, alpha], losses)) + losses[-1]
            optimizer.zero_grad()
            (loss if alpha else losses[-1]).backward()
            optimizer.step()
    return layers, heads


def weights(layers):
    """Weights and biases; those of a network are the only ones of a stack."""
    arrays = [p.detach().numpy() for layer in layers for p in layer.parameters()]
    return [a if a.ndim < 3 else np.squeeze(a, 0 if a.shape[2] > 1 else (0, 2)) for a in arrays]


def linear_layers(estimator):
    module = estimator.net_.module_
    return [*(layer[0] for layer in module.hidden.values()), module.output]


def test_alpha_zero_is_the_network_without_heads(data):
    X, y = data
    layers, _ = raw_loop(X, y, MATRIX[y], seed=0, alpha=0, epochs=3, size=9)

    estimator = small(alpha=0, batch_size=9, cost_matrix=MATRIX, **PLAIN).fit(X, y)

    assert estimator.hidden_layers_ == []
    for found, expected in zip(weights(linear_layers(estimator)), weights(layers), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_heads_are_trained_as_by_hand(data):
    X, y = data
    layers, heads = raw_loop(X, y, MATRIX[y], seed=0, alpha=0.4, epochs=3, size=9)

    estimator = small(alpha=0.4, batch_size=9, cost_matrix=MATRIX, **PLAIN).fit(X, y)

    trained = [*linear_layers(estimator), *estimator.net_.module_.heads.values()]
    for found, expected in zip(weights(trained), weights(layers + heads), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_every_hidden_layer_but_the_last_has_a_head(data):
    estimator = small(depth=4, width=[8, 7, 6, 5]).fit(*data)

    assert estimator.hidden_layers_ == ["hidden1", "hidden2", "hidden3"]
    shapes = [head.weight.shape for head in estimator.net_.module_.heads.values()]
    assert shapes == [(1, 3, 8), (1, 3, 7), (1, 3, 6)]


def test_depth_one_has_no_head(data):
    estimator = small(depth=1, alpha=0.5).fit(*data)

    assert estimator.hidden_layers_ == []
    assert len(list(estimator.staged_predict(data[0]))) == 1


def test_one_alpha_per_layer(data):
    estimator = small(alpha=[0.0, 0.7]).fit(*data)

    assert estimator.hidden_layers_ == ["hidden2"]
    assert estimator.net_.criterion_.alphas.flatten().tolist() == pytest.approx([0.7, 1.0])


def test_history_has_the_loss_of_every_layer(data):
    estimator = small(alpha=[0.3, 0.5], max_epochs=4).fit(*data)

    assert [record["epoch"] for record in estimator.history_] == [1, 2, 3, 4]
    for record in estimator.history_:
        total = 0.3 * record["train_loss_hidden1"] + 0.5 * record["train_loss_hidden2"]
        total += record["train_loss_output"]
        assert record["train_loss"] == pytest.approx(total)
    assert estimator.history_[-1]["train_loss"] < estimator.history_[0]["train_loss"]


def test_heads_may_learn_another_loss(data):
    estimator = small(loss="cross_entropy", aux_loss="squared").fit(*data)

    hidden, _, output = estimator.staged_predict_cost(data[0])
    np.testing.assert_allclose(output.sum(axis=1), 2, rtol=1e-5)  # 0/1 costs times probabilities
    assert not np.allclose(hidden.sum(axis=1), 2, rtol=1e-5)


def test_costs_are_lower_than_those_of_the_cost_blind_network():
    X, y = load_digits(return_X_y=True)
    cost = np.random.RandomState(0).lognormal(sigma=2, size=(10, 10)) * (1 - np.eye(10))
    train, test = np.arange(0, 1797, 2), np.arange(1, 1797, 2)
    bills = []
    for cost_matrix in (cost, None):
        estimator = CostSensitiveAuxMLP(
            2, 64, n_networks=1, max_epochs=20, cost_matrix=cost_matrix, random_state=0
        )
        y_pred = estimator.fit(X[train] / 16, y[train]).predict(X[test] / 16)
        bills.append(cost[y[test], y_pred].mean())

    assert bills[0] < 0.8 * bills[1]


def test_bfloat16_learns_as_well(data):
    X, y = data
    rough, exact = (
        small(precision=precision, cost_matrix=MATRIX, max_epochs=10).fit(X, y)
        for precision in ("bf16", "float32")
    )

    difference = np.abs(rough.predict_cost(X) - exact.predict_cost(X))
    assert 0 < difference.mean() < 0.1 * MATRIX.mean()
    assert rough.predict_cost(X).dtype == np.float64
    assert all(weight.dtype == np.float32 for weight in weights(linear_layers(rough)))


def test_of_small_weights_only_the_ratios_count(problem, mlp):
    X, y, cost = problem
    weight = np.linspace(0.5, 1, len(y))

    one, other = (
        mlp().fit(X, y, cost=cost, sample_weight=w).predict_cost(X) for w in (weight, weight / 1024)
    )

    np.testing.assert_array_equal(one, other)


def test_a_training_that_goes_on_decides_by_the_new_matrix(problem, mlp):
    X, y, _ = problem
    model = mlp(warm_start=True, cost_matrix=1 - np.eye(3)).fit(X, y)
    new = np.array([[0.0, 1, 7], [3, 0, 9], [1, 2, 0]])

    model.set_params(cost_matrix=new).fit(X, y)

    np.testing.assert_allclose(
        model.net_.statistics.to_currency(model.net_.statistics.class_mean), new, atol=1e-12
    )


def test_without_a_random_state_two_networks_go_on_with_different_numbers(problem, mlp):
    X, y, _ = problem
    models = [mlp(random_state=None).partial_fit(X, y, classes=[0, 1, 2]) for _ in range(2)]

    for model in models:
        model.partial_fit(X, y)

    seeds = [model._random_state.randint(2**31) for model in models]
    assert seeds[0] != seeds[1]


@pytest.mark.parametrize(("n_columns", "first"), [(256, 8e-3), (257, 4e-3)])
def test_the_automatic_rate(n_columns, first):
    class Rates(Callback):
        def on_epoch_begin(self, net, **kwargs):
            seen.append(net.optimizer_.param_groups[0]["lr"])

    X, y = np.random.default_rng(0).normal(size=(60, n_columns)), np.arange(60) % 2
    for fit, expected in {
        "fit": first,
        "partial_fit": 2e-3,
        "fit without held-out rows": 2e-3,
        "constant": 2e-3,
    }.items():
        seen: list[float] = []
        schedule = "constant" if fit == "constant" else "plateau"
        model = CostSensitiveAuxMLP(
            **{"depth": 1, "width": 4, "max_epochs": 1, "n_bins": 0, "schedule": schedule},
            classes=[0, 1],
            early_stopping="without" not in fit,
            callbacks=[Rates()],
            random_state=0,
        )
        (model.partial_fit if fit == "partial_fit" else model.fit)(X, y)
        assert seen == pytest.approx([expected])
