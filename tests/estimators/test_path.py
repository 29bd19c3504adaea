import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from skorch.callbacks import EpochTimer

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP, alpha_path
from auxcst_sklearn._estimators import path as path_module
from auxcst_sklearn.losses import LOSSES
from tests.factories import SINGLE

ALPHAS = [0, 0.3, 1.0]
COST_MATRIX = [[0, 1, 5], [2, 0, 1], [1, 3, 0]]


@pytest.fixture
def network():
    return partial(
        CostSensitiveAuxMLP,
        depth=3,
        width=[8, 7, 6],
        max_epochs=4,
        n_networks=2,
        random_state=0,
        device="cpu",
        loss="cross_entropy",
        cost_matrix=COST_MATRIX,
    )


@pytest.fixture
def together(monkeypatch):
    """Fail where networks are not trained together."""

    def fail(self, *args, **kwargs):
        raise AssertionError("a separate fit")

    def fit(*args, **kwargs):
        with monkeypatch.context() as patch:
            patch.setattr(CostSensitiveAuxMLP, "fit", fail)
            return alpha_path(*args, **kwargs)

    return fit


def assert_same_model(found, expected, X):
    assert found.hidden_layers_ == expected.hidden_layers_
    for a, b in zip(found.staged_predict_cost(X), expected.staged_predict_cost(X)):
        assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    assert len(found.history_) == len(expected.history_)
    for a, b in zip(found.history_, expected.history_):
        assert list(a) == list(b)
        a, b = ({k: v for k, v in record.items() if k != "dur"} for record in (a, b))
        assert_allclose(list(a.values()), list(b.values()), rtol=1e-4)


def assert_same_as_separate_fits(path, estimator, alphas, X, y, **data):
    assert len(path) == len(alphas)
    for model, alpha in zip(path, alphas):
        separate = clone(estimator).set_params(alpha=alpha).fit(X, y, **data)
        assert_same_model(model, separate, X)


@pytest.mark.parametrize(
    "params",
    [
        {},
        SINGLE,
        {**SINGLE, "early_stopping": True},
        {"dropout": 0},
        {"activation": "tanh", "batch_size": 7, "standardize": True},
        {"aux_loss": "one_sided"},
        {"schedule": "one_cycle", "averaging": 0},
        {"n_networks": 5, "early_stopping": False},
        {"early_stopping": True, "validation_fraction": 0.4, "patience": 2, "max_epochs": 20},
        {"net_params": {"optimizer__betas": (0.8, 0.9)}},
        {"net_params": {"optimizer__param_groups": [("heads*", {"lr": 0.1})]}},
    ],
    ids=str,
)
def test_the_same_as_separate_fits(params, network, together, problem):
    estimator = network(**params)
    path = together(estimator, ALPHAS, problem.X, problem.y)

    assert_same_as_separate_fits(path, estimator, ALPHAS, problem.X, problem.y)


@pytest.mark.parametrize("loss", LOSSES)
def test_losses_with_costs_per_sample_and_weights(loss, network, together, problem):
    estimator = network(loss=loss, cost_matrix=None)
    data = {"cost": problem.cost, "sample_weight": np.arange(60) % 4}
    path = together(estimator, ALPHAS, problem.X, problem.y, **data)

    assert_same_as_separate_fits(path, estimator, ALPHAS, problem.X, problem.y, **data)


@pytest.mark.parametrize("optimizer", ["adagrad", "adamax", "nadam", "radam", "rmsprop", "sgd"])
def test_optimizers(optimizer, network, together, problem):
    estimator = network(optimizer=optimizer)
    path = together(estimator, ALPHAS, problem.X, problem.y)

    assert_same_as_separate_fits(path, estimator, ALPHAS, problem.X, problem.y)


def test_networks_stop_early_each_by_itself(network, together, problem):
    estimator = network(
        early_stopping=True,
        validation_fraction=0.5,
        patience=3,
        max_epochs=40,
        schedule="constant",
        learning_rate=3e-2,
        loss="one_sided",
        cost_matrix=None,
    )
    alphas, data = np.linspace(0, 4, 8), {"cost": problem.cost}
    path = together(estimator, alphas, problem.X, problem.y, **data)

    n_epochs = {len(model.history_) for model in path}
    assert len(n_epochs) > 1
    assert min(n_epochs) < 40
    assert_same_as_separate_fits(path, estimator, alphas, problem.X, problem.y, **data)


def test_alpha_per_layer(network, together, problem):
    alphas = [[0, 0.3], [0.2, 0], [0, 0], [0.1, 0.5]]
    path = together(network(), alphas, problem.X, problem.y)

    assert [model.hidden_layers_ for model in path] == [
        ["hidden2"],
        ["hidden1"],
        [],
        ["hidden1", "hidden2"],
    ]
    assert_same_as_separate_fits(path, network(), alphas, problem.X, problem.y)


@pytest.mark.parametrize("cost_matrix", [COST_MATRIX, None])
def test_a_path_for_each_random_state(cost_matrix, network, together, problem):
    estimator = network(cost_matrix=cost_matrix, loss="bayes_risk", early_stopping=True)
    data = {} if cost_matrix else {"cost": problem.cost}
    paths = together(estimator, ALPHAS, problem.X, problem.y, random_states=[3, 5], **data)

    assert len(paths) == 2
    for path, random_state in zip(paths, [3, 5]):
        estimator.set_params(random_state=random_state)
        assert_same_as_separate_fits(path, estimator, ALPHAS, problem.X, problem.y, **data)


@pytest.mark.parametrize("make_state", [lambda: None, lambda: np.random.RandomState(0)])
def test_alphas_share_what_a_random_state_gives(make_state, network, problem):
    twice = alpha_path(network(random_state=make_state()), [0.3, 0.3], problem.X, problem.y)

    first, second = (model.predict_cost(problem.X) for model in twice)
    assert_allclose(first, second, rtol=1e-6)


def test_sparse_and_labelled_inputs(network, together, problem):
    X = sparse.csr_matrix(np.where(problem.X > 0.5, problem.X, 0))
    for inputs in (X, pd.DataFrame(problem.X, columns=list("abcd"))):
        path = together(network(), ALPHAS, inputs, problem.y)
        assert_same_as_separate_fits(path, network(), ALPHAS, inputs, problem.y)
    assert path[0].feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize(
    "params",
    [
        {"callbacks": [EpochTimer()]},
        {"precision": "bf16"},
        {"warm_start": True},
        {"optimizer": type("Custom", (torch.optim.SGD,), {})},
        {"net_params": {"iterator_valid__batch_size": 5}},
    ],
    ids=lambda params: next(iter(params)),
)
def test_what_cannot_be_stacked_is_fitted_separately(params, network, monkeypatch, problem):
    monkeypatch.delattr(path_module, "train_together")
    estimator = network(**params)
    path = alpha_path(estimator, ALPHAS, problem.X, problem.y)

    assert_same_as_separate_fits(path, estimator, ALPHAS, problem.X, problem.y)


def test_other_estimators(problem):
    X = np.random.RandomState(0).normal(size=(20, 1, 8, 8))
    estimator = CostSensitiveAuxCNN([2, 2], 4, max_epochs=1, random_state=0, device="cpu")
    plain, with_heads = alpha_path(estimator, [0, 0.5], X, problem.y[:20])

    assert plain.hidden_layers_ == []
    assert with_heads.hidden_layers_ != []
    expected = clone(estimator).set_params(alpha=0.5).fit(X, problem.y[:20]).predict_cost(X)
    assert_allclose(with_heads.predict_cost(X), expected)


def test_results_are_ordinary_estimators(network, problem):
    X, y = problem.X, problem.y
    estimator = network(alpha=0.7)
    _, model = alpha_path(estimator, [0, 0.3], X, y)

    assert not hasattr(estimator, "net_")
    assert clone(model).get_params()["alpha"] == 0.3
    assert not model.net_.module_.training
    loaded = pickle.loads(pickle.dumps(model))
    assert_allclose(loaded.predict_cost(X), model.predict_cost(X))
    for copy in (model, loaded):
        copy.partial_fit(X, y)
    assert len(model.history_) == 5
    assert_allclose(loaded.predict_cost(X), model.predict_cost(X), rtol=1e-6)


def test_global_random_numbers_stay_as_they_are(network, problem):
    torch.manual_seed(0)
    before = torch.get_rng_state()
    alpha_path(network(), ALPHAS, problem.X, problem.y)

    assert torch.equal(before, torch.get_rng_state())


def test_gradients_may_be_switched_off(network, problem):
    with torch.no_grad():
        path = alpha_path(network(), ALPHAS, problem.X, problem.y)

    assert_same_as_separate_fits(path, network(), ALPHAS, problem.X, problem.y)


def test_verbose_prints_a_line_per_epoch_of_all_networks(network, problem, capsys):
    alpha_path(network(verbose=1, max_epochs=2), ALPHAS, problem.X, problem.y)

    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["epoch", "time", "left"]
    assert [line.split()[0] for line in lines] == ["1", "2"]


@pytest.mark.parametrize("alphas", [[], 0.5])
def test_alphas_must_be_a_sequence(alphas, network, problem):
    with pytest.raises(ValueError, match="expected a sequence"):
        alpha_path(network(), alphas, problem.X, problem.y)


@pytest.mark.parametrize("params", [{}, {"warm_start": True}])
def test_errors_name_the_alpha(params, network, problem):
    with pytest.raises(ValueError, match="alpha=-1.*must be a float"):
        alpha_path(network(**params), [0, -1], problem.X, problem.y)
    with pytest.raises(ValueError, match="contains infinity"):
        alpha_path(network(**params), [0, 1], np.full((60, 4), np.inf), problem.y)
    diverging = network(loss="squared", optimizer="sgd", **params)
    with pytest.raises(ValueError, match="alpha=10000000000.0: .*infinite or NaN"):
        alpha_path(diverging, [0.1, 1e10], problem.X, problem.y)


def test_alphas_may_differ_in_kind(network, problem):
    X, y, *_ = problem
    alphas = [0, [0.1, 0.5]]

    models = alpha_path(network(depth=3), alphas, X, y)

    assert [model.alpha for model in models] == alphas
    assert [len(model.hidden_layers_) for model in models] == [0, 2]


def test_float64_may_be_the_default(network, problem, float64_default):
    X, y, *_ = problem

    models = alpha_path(network(), [0, 0.3], X, y)

    assert len(models) == 2
    for model in models:
        assert model.predict_cost(X).shape == (60, 3)
        assert np.isfinite(model.predict_cost(X)).all()
        assert {p.dtype for p in model.net_.module_.parameters()} == {torch.float32}


@pytest.mark.parametrize("n_networks", [1, 2])
@pytest.mark.parametrize("alphas", [[0.2], [0.2, 0.5]])
def test_several_seeds_that_hold_out_groups_of_different_sizes(network, n_networks, alphas):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 4)), np.arange(150) % 3
    groups = rng.choice(12, 150, p=np.r_[[0.3, 0.15], np.full(10, 0.055)])
    estimator = network(n_networks=n_networks)

    paths = alpha_path(estimator, alphas, X, y, groups=groups, random_states=[0, 1, 2])

    for seed, path in enumerate(paths):
        for alpha, found in zip(alphas, path, strict=True):
            expected = clone(estimator).set_params(alpha=alpha, random_state=seed)
            assert_same_model(found, expected.fit(X, y, groups=groups), X)


@pytest.mark.parametrize("states", [3, []])
def test_random_states_are_a_sequence(network, states):
    X, y = np.eye(6), np.arange(6) % 2
    with pytest.raises(ValueError, match=r"random_states=.* expected a sequence of at least one"):
        alpha_path(network(), [0.5], X, y, random_states=states)
