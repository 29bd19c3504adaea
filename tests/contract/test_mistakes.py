"""Mistakes get a clear error, and leave a fitted network as it was."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from scipy import sparse

from auxcst_sklearn import BayesMinimumRiskClassifier, CSAEPretrainedMLP
from tests.factories import dense, small_cnn, small_net

NAMES = np.array(["ant", "bee", "cat"])
MATRIX = np.array([[0.0, 1, 5], [3, 0.2, 1], [2, 7, 0]])


def state(network):
    """All that a failed fit must leave as it is."""
    net = network.net_
    return {
        "attributes": {name: id(value) for name, value in vars(network).items()},
        "weights": [p.tolist() for p in net.module_.parameters()],
        "training": net.module_.training,
        "optimizer": repr(net.optimizer_.state_dict()),
        "history": deepcopy(network.history_),
        "net history": deepcopy(list(net.history)),
        "unit": (net.statistics.offset, net.statistics.unit),
        "class costs": net.statistics.costs.tolist(),
    }


def bad_cost(value):
    return lambda cost: np.where(cost > 0.9, value, cost)


# An argument of fit and partial_fit, what becomes of it, and what the message must say: the
# argument, its value, what was expected, what to do.
BAD_DATA = {
    "too few rows": ("cost", lambda c: c[:50], "cost has 50 rows", "Select the same rows"),
    "too few columns": ("cost", lambda c: c[:, :2], "expected (60, 3)", "samples in classes="),
    "one dimension": ("cost", lambda c: c[:, 0], "cost has shape (60,)", "(n_samples, n_classes)"),
    "three dimensions": ("cost", lambda c: c[:, :, np.newaxis], "cost has shape (60, 3, 1)"),
    "a cost matrix": ("cost", lambda _: MATRIX, "Costs of classes are passed as cost_matrix="),
    "NaN": ("cost", bad_cost(np.nan), "cost contains nan in row", "a finite cost some ten times"),
    "infinity": ("cost", bad_cost(-np.inf), "cost contains -inf in row"),
    "missing in pandas": (
        "cost",
        lambda c: pd.DataFrame(c).astype("Float64").mask(c > 0.9),
        "cost of type DataFrame cannot be read as numbers",
    ),
    "missing in polars": (
        "cost",
        lambda c: pl.DataFrame(c, schema=list("012")).fill_nan(None).shift(1),
        "cost contains nan in row 0",
    ),
    "text": ("cost", lambda _: "balanced", "cost of type str cannot be read as numbers"),
    "ragged": ("cost", lambda _: [[0, 1], [1]], "cost of type list", "(n_samples, n_classes)"),
    "sparse": ("cost", sparse.csr_matrix, "cost of type csr_matrix", "expected an array"),
    "masked": ("cost", lambda c: np.ma.masked_greater(c, 0.5), "cost"),
    "complex": ("cost", lambda c: c + 1j, "cost"),
    "dates": ("cost", lambda c: (c * 1e9).astype("datetime64[s]"), "cost"),
    "unknown label": ("y", lambda y: y + 1, "not among the classes: [3]", "[0, 1, 2]", "classes="),
    "labels of another type": ("y", lambda y: NAMES[y], "y contains labels", "'ant', 'bee', 'cat'"),
    "labels of two types": (
        "y",
        lambda y: np.where(y, y.astype(object), "ant"),
        "y contains labels of types int, str",
        "astype(str)",
    ),
    "fractions as labels": ("y", lambda y: y + 0.5, "Unknown label type"),
    "too few labels": ("y", lambda y: y[:50], "inconsistent numbers of samples"),
    "infinity in X": ("X", lambda X: np.where(X > 2, np.inf, X), "Input X contains infinity"),
    "negative weights": ("sample_weight", lambda _: np.full(60, -1.0), "`sample_weight`"),
    "all weights zero": ("sample_weight", lambda _: np.zeros(60), "zero"),
    "too few weights": ("sample_weight", lambda _: np.ones(50), "sample_weight.shape"),
}


@pytest.mark.parametrize("method", ["fit", "warm fit", "partial_fit"])
@pytest.mark.parametrize("mistake", BAD_DATA)
@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_bad_data_is_named_and_leaves_the_network_as_it_was(problem, mlp, mistake, method):
    argument, change, *message = BAD_DATA[mistake]
    X, y, cost = problem
    network = mlp(classes=[0, 1, 2], dropout=0.2, warm_start=method == "warm fit")
    network.fit(X, y, cost=cost)
    before, predictions = state(network), network.predict_cost(X)
    arguments = {"X": X, "y": y, "cost": cost, "sample_weight": None}
    arguments[argument] = change(arguments[argument])
    with pytest.raises((ValueError, TypeError)) as error:
        getattr(network, method.removeprefix("warm "))(**arguments)
    for part in message:
        assert part in str(error.value)
    assert state(network) == before
    np.testing.assert_array_equal(network.predict_cost(X), predictions)


def test_other_features_than_before_are_an_error(problem, mlp):
    X, y, cost = problem
    named = pd.DataFrame(X, columns=list("abcd"))
    for first, second, message in [
        (X, X[:, :3], "X has 3 features"),
        (named, named[list("badc")], "feature names should match"),
    ]:
        network = mlp(warm_start=True).fit(first, y, cost=cost)
        before = state(network)
        for method in (network.fit, network.partial_fit):
            with pytest.raises(ValueError, match=message):
                method(second, y, cost=cost)
        assert state(network) == before


BAD_PARAMETERS = {
    "negative alpha": ("alpha", -0.1, "'alpha'", "-0.1", "[0.0, inf)"),
    "negative alpha of a layer": ("alpha", [-0.1], "alpha", "-0.1", "[0.0, inf)"),
    "alpha of wrong length": ("alpha", [0.1, 0.2], "has 2 values", "per hidden layer but the last"),
    "NaN alpha": ("alpha", [np.nan], "alpha contains nan"),
    "alpha that is no number": ("alpha", ["x"], "alpha contains 'x'"),
    "width of wrong length": ("width", [8, 8, 8], "width=[8, 8, 8] has 3 values", "or 2"),
    "width of a layer 0": ("width", [8, 0], "width contains 0", "[1, inf)"),
    "depth 0": ("depth", 0, "'depth'", "0", "[1, inf)"),
    "unknown optimizer": ("optimizer", "fastest", "'optimizer'", "'fastest'", "'adamw'"),
    "not an optimizer": ("optimizer", dict, "optimizer", "dict", "torch.optim.Optimizer"),
    "unknown loss": ("loss", "hinge", "'loss'", "'hinge'", "'one_sided'"),
    "NaN learning rate": ("learning_rate", np.nan, "'learning_rate'", "nan"),
    "dropout 1": ("dropout", 1.0, "'dropout'", "1.0", "[0.0, 1.0)"),
    "a Generator": ("random_state", np.random.default_rng(0), "'random_state'", "Generator"),
    "classes of other labels": ("classes", ["ant", "bee", "cat"], "[0, 1, 2]", "'ant'", "classes="),
    "unsorted classes": ("classes", [2, 1, 0], "classes=[2, 1, 0]", "in sorted order"),
    "classes without one in y": ("classes", [0, 1], "not among the classes: [2]", "classes="),
    "unknown argument of skorch": ("net_params", {"speed": 9}, "speed"),
    "a matrix too small": ("cost_matrix", MATRIX[:2, :2], "shape (2, 2); expected (3, 3)"),
    "no square": ("cost_matrix", MATRIX[:2], "shape (2, 3); expected (3, 3)", "in decisions="),
    "a vector": ("cost_matrix", [0, 1, 2], "has shape (3,)", "(n_classes, n_decisions)"),
    "NaN": ("cost_matrix", MATRIX * np.nan, "contains nan in row 0, column 0", "finite"),
    "other columns": (
        "cost_matrix",
        pd.DataFrame(MATRIX, list(range(3)), NAMES),
        *("columns of cost_matrix", "'ant', 'bee', 'cat'", "[0, 1, 2]", "decisions="),
    ),
    "other rows": (
        "cost_matrix",
        pd.DataFrame(MATRIX, list("xyz"), list(range(3))),
        *("columns of cost_matrix are [0, 1, 2]", "'x', 'y', 'z'"),
    ),
    "text": ("cost_matrix", [["a"] * 3] * 3, "cost_matrix of type list cannot be read as numbers"),
}


@pytest.mark.parametrize("mistake", BAD_PARAMETERS)
def test_bad_parameters_are_named_and_leave_the_network_as_it_was(problem, mlp, mistake):
    X, y, _ = problem
    name, value, *message = BAD_PARAMETERS[mistake]
    network = mlp(cost_matrix=MATRIX).fit(X, y)
    before, predictions, old = state(network), network.predict_cost(X), network.get_params()[name]
    with pytest.raises((ValueError, TypeError)) as error:
        network.set_params(**{name: value}).fit(X, y)
    for part in message:
        assert part in str(error.value)
    network.set_params(**{name: old})
    assert state(network) == before
    np.testing.assert_array_equal(network.predict_cost(X), predictions)


def test_a_first_fit_that_fails_leaves_nothing_behind(problem, mlp):
    X, y, cost = problem
    for method in ("fit", "partial_fit"):
        network = mlp(classes=[0, 1, 2])
        before = dict(vars(network))
        with pytest.raises(ValueError, match="cost has 50 rows"):
            getattr(network, method)(X, y, cost=cost[:50])
        assert vars(network) == before


def test_one_class_asks_for_the_others(problem, mlp):
    X, y, cost = problem
    with pytest.raises(ValueError, match=r"y contains 1 class only, \[0\].*classes="):
        mlp().fit(X, np.zeros_like(y), cost=cost)
    network = mlp(classes=[0, 1, 2]).fit(X, np.zeros_like(y), cost=cost)
    assert network.predict_cost(X).shape == (60, 3)


def test_partial_fit_asks_for_the_classes_once(problem, mlp):
    X, y, cost = problem
    with pytest.raises(ValueError, match="classes must be passed at the first call"):
        mlp().partial_fit(X, y, cost=cost)
    network = mlp().partial_fit(X, y, [0, 1, 2], cost=cost).partial_fit(X[:1], y[:1], cost=cost[:1])
    before = state(network)
    with pytest.raises(ValueError, match=r"classes=\[0, 1\] differs from .* with, \[0, 1, 2\];"):
        network.partial_fit(X, y, [0, 1], cost=cost)
    assert state(network) == before


@pytest.mark.parametrize(
    ("parameters", "columns", "message"),
    [
        ({}, [0, 1, 5], "[0, 1, 5], the labels of cost"),
        ({}, [0, 1, 1], "[0, 1], the labels of cost"),
        ({"classes": [0]}, [0, 1, 2], "classes=[0]"),
        ({"cost_matrix": MATRIX}, [0, 1, 2], "both cost and cost_matrix; expected one source"),
    ],
)
def test_messages_name_the_argument_at_fault(problem, mlp, parameters, columns, message):
    X, y, cost = problem
    with pytest.raises(ValueError) as error:
        mlp(**parameters).fit(X, y, cost=pd.DataFrame(cost, columns=columns))
    assert message in str(error.value)


# ------------------------------------------------------------------------------ divergence


DIVERGED = "The training loss became infinite or NaN.*Lower learning_rate"


@pytest.mark.parametrize("single_step", [False, True])
def test_a_training_that_diverges_names_the_learning_rate(problem, mlp, single_step):
    X, y, cost = problem
    network = mlp(optimizer="sgd", learning_rate=1e30)
    if single_step:
        network.set_params(max_epochs=1, batch_size=60)
    before = dict(vars(network))
    with pytest.raises(ValueError, match=DIVERGED):
        network.fit(X, y, cost=cost)
    assert vars(network) == before


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_training_that_diverges_leaves_the_network_as_it_was(problem, mlp, method):
    X, y, cost = problem
    known = {"loss": "squared", "dropout": 0.3, "warm_start": True}
    network, other = (mlp(**known).fit(X, y, cost=cost) for _ in range(2))
    before = state(network)
    with pytest.raises(ValueError, match=DIVERGED):
        getattr(network, method)(X * 1e25, y, cost=cost)
    assert state(network) == before
    np.testing.assert_array_equal(network.predict_cost(X), other.predict_cost(X))
    for one in (network, other):  # goes on as if the call had not been
        one.partial_fit(X, y, cost=cost)
    np.testing.assert_array_equal(network.predict_cost(X), other.predict_cost(X))


@pytest.mark.parametrize(("weight", "finite"), [(1e308, False), (np.nan, True)])
def test_weights_whose_sum_is_not_finite_are_named(problem, mlp, weight, finite):
    weights = np.full(60, weight)

    with sklearn.config_context(assume_finite=finite):
        for model in (mlp(), BayesMinimumRiskClassifier()):
            with pytest.raises(ValueError, match="sample_weight"):
                model.fit(problem.X, problem.y, sample_weight=weights)


def test_nan_costs_decide_nothing(problem):
    """Checks of X are off; CSDNN, images and modules take no missing values."""
    X, y, _ = problem
    images = np.repeat(X[:, :, None, None], 16, axis=2).reshape(-1, 4, 4, 4)
    fitted = [
        (CSAEPretrainedMLP(width=8, max_epochs=1, pretrain_epochs=1).fit(X, y), X),
        (small_net(dense(4, 8, 3)).fit(X, y), X),
        (small_cnn().fit(images, y), images),
    ]
    with sklearn.config_context(assume_finite=True):
        for model, given in fitted:
            rows = given.copy()
            rows[[3, 5]] = np.nan
            for few in (rows, rows[3:4]):
                with pytest.raises(ValueError, match="NaN for . of .* rows, first for row"):
                    model.predict(few)


def test_held_out_rows_may_weigh_next_to_nothing(problem, mlp):
    weight = np.where(np.arange(60) < 30, 1.0, 1e-60)

    stopping = {"early_stopping": True, "validation_fraction": 0.5}
    model = mlp(**stopping).fit(problem.X, problem.y, sample_weight=weight)

    half = mlp(**stopping).fit(problem.X[:30], problem.y[:30])
    np.testing.assert_allclose(
        model.predict_cost(problem.X), half.predict_cost(problem.X), rtol=1e-5
    )
