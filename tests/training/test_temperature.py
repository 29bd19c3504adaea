import pickle

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import train_test_split

from auxcst_sklearn._training.temperature import PRIOR_ROWS
from auxcst_sklearn.costs import ordinal_cost_matrix
from auxcst_sklearn.losses import CrossEntropy
from auxcst_sklearn.metrics import mean_cost
from tests.factories import small_mlp, small_stack
from tests.training.temperatures import numpy_temperature

K = 4
COST_MATRIX = np.array([[0, 1, 1, 5], [1, 0, 1, 5], [2, 2, 0, 5], [20, 20, 20, 0]])


def overlapping(n=400, seed=0):
    return make_classification(
        n, 10, n_informative=5, n_classes=K, class_sep=0.5, flip_y=0.1, random_state=seed
    )


def network(**parameters):
    defaults = {"width": 32, "dropout": 0.0, "cost_matrix": COST_MATRIX, "max_epochs": 20}
    return small_mlp(**{**defaults, **parameters})


def fit(model, X, y, cost=None):
    """Fit on four fifths of the rows; the others are a validation set."""
    n = len(y) * 4 // 5
    costs = {} if cost is None else {"cost": cost[:n], "cost_val": cost[n:]}
    return model.fit(X[:n], y[:n], X_val=X[n:], y_val=y[n:], **costs)


@pytest.fixture(scope="module")
def fitted():
    return fit(network(), *overlapping())


class Focal(CrossEntropy):
    """A loss of the user's own; certain rows count less."""

    def __call__(self, outputs, target):
        loss = super().__call__(outputs, target)
        return (1 - torch.exp(-loss)) ** 2 * loss


def logits_of(model, X):
    with torch.no_grad():
        rows = torch.from_numpy(X.astype(np.float32))
        return model.net_.module_(rows[None])[0].double().numpy()


FEW = {"prior_rows": PRIOR_ROWS / 2}  # of a single network


@pytest.mark.parametrize("loss", [CrossEntropy(), CrossEntropy(0.05), Focal()])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_temperature_lies_between_those_of_the_loss_and_the_money(loss, weighted):
    X, y = overlapping()
    X_val, y_val = X[200:], y[200:]
    weight = np.random.default_rng(0).uniform(0, 3, 200) if weighted else np.ones(200)
    weight /= weight.mean()  # as in training
    given = {"sample_weight_val": weight} if weighted else {}
    model = network(loss=loss).fit(X[:200], y[:200], X_val=X_val, y_val=y_val, **given)

    known = {"smoothing": loss.smoothing, **FEW}
    expected = numpy_temperature(logits_of(model, X_val), y_val, COST_MATRIX, weight, **known)
    assert model.temperature_ == pytest.approx(expected)
    assert 0.2 < expected < 9
    assert expected > 1 or isinstance(loss, Focal)  # whose networks are too cautious


def test_of_many_classes_the_smoothing_of_labels_does_not_count():
    X, y = load_digits(return_X_y=True)
    X, costs = X / 16, ordinal_cost_matrix(10)
    X_val, y_val = X[800:1000], y[800:1000]
    model = network(cost_matrix=costs, max_epochs=5, loss=CrossEntropy(0.1))
    model.fit(X[:800], y[:800], X_val=X_val, y_val=y_val)

    logits = logits_of(model, X_val)
    expected = numpy_temperature(logits, y_val, costs, np.ones(200), smoothing=0.1, **FEW)
    assert model.temperature_ == pytest.approx(expected)


class Noting(CrossEntropy):
    """Notes the most rows of outputs that it gets for a temperature."""

    most = 0

    def with_temperature(self, outputs, temperature):
        self.most = max(self.most, len(outputs))
        return super().with_temperature(outputs, temperature)


def test_it_is_that_of_all_rows_though_learnt_batch_by_batch():
    X, y = overlapping()
    weight = np.arange(200) % 3.0  # rows without a weight do not count
    at_once, in_parts = (
        network(loss=Noting(), net_params=given).fit(
            X[:200], y[:200], X_val=X[200:], y_val=y[200:], sample_weight_val=weight
        )
        for given in ({}, {"iterator_valid__batch_size": 64})
    )

    assert in_parts.temperature_ == pytest.approx(at_once.temperature_, rel=1e-6)
    assert 1 < at_once.temperature_ < 9
    assert at_once.net_.criterion_.loss.most == (weight > 0).sum()
    assert 0 < in_parts.net_.criterion_.loss.most <= 64


def test_the_network_is_the_same_and_only_less_sure(fitted):
    X, y = overlapping()
    sure = network().fit(X[:320], y[:320])

    assert sure.temperature_ == 1
    assert fitted.temperature_ > 1
    for weight, other in zip(sure.net_.module_.parameters(), fitted.net_.module_.parameters()):
        assert torch.equal(weight, other)
    assert sure.history_[-1]["train_loss"] == fitted.history_[-1]["train_loss"]
    cost, soft = sure.predict_cost(X), fitted.predict_cost(X)
    assert np.ptp(soft, axis=1).mean() < np.ptp(cost, axis=1).mean()


@pytest.mark.slow
def test_where_classes_overlap_it_saves_money():
    soft, sure = [], []
    for seed in range(3):
        X, y = overlapping(4000, seed)
        X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
        model = fit(network(width=64, max_epochs=30), X_train, y_train)
        soft.append(mean_cost(y_test, model.predict(X_test), cost_matrix=COST_MATRIX))
        model.net_.temperature = 1.0
        sure.append(mean_cost(y_test, model.predict(X_test), cost_matrix=COST_MATRIX))

    assert np.mean(soft) < 0.98 * np.mean(sure)


def test_where_classes_are_apart_it_is_near_one():
    X, y = make_classification(
        400, 10, n_informative=5, n_classes=K, class_sep=4, flip_y=0, random_state=0
    )

    assert 0.9 < fit(network(), X, y).temperature_ <= 1


def test_a_network_that_is_too_cautious_becomes_surer():
    X, y = make_classification(
        900, 10, n_informative=8, n_classes=K, class_sep=2, flip_y=0, random_state=0
    )
    cautious = fit(network(loss=CrossEntropy(), max_epochs=3, alpha=0), X, y)

    assert cautious.temperature_ < 0.9


def test_few_rows_keep_it_near_one():
    rng = np.random.default_rng(0)
    X = np.repeat(np.eye(3), 4, axis=0) + 0.01 * rng.normal(size=(12, 3))

    model = small_stack(max_epochs=5).fit(X, np.repeat([0, 1, 2], 4))

    assert 0.5 < model.temperature_ < 2


def test_it_is_that_of_the_classes_whatever_single_rows_cost(fitted):
    X, y = overlapping()
    factor = np.random.default_rng(0).lognormal(0, 1, len(y))
    factor /= np.array([factor[:320][y[:320] == k].mean() for k in range(K)])[y]
    model = fit(network(cost_matrix=None), X, y, COST_MATRIX[y] * factor[:, np.newaxis])

    assert model.temperature_ == fitted.temperature_ > 1
    soft = model.predict_cost(X)
    model.net_.temperature = 1.0
    assert np.ptp(soft, axis=1).mean() < np.ptp(model.predict_cost(X), axis=1).mean()


def test_rows_held_out_by_early_stopping_serve():
    X, y = overlapping()
    stopping = {"early_stopping": True, "validation_fraction": 0.3, "patience": 30}
    model = network(**stopping).fit(X, y)
    sure = network(**stopping, temperature=1.0).fit(X, y)

    assert 0.2 <= model.temperature_ <= 9
    assert model.temperature_ != sure.temperature_ == 1
    assert len(model.history_) == len(sure.history_)
    for weight, other in zip(*(m.net_.module_.parameters() for m in (model, sure))):
        assert torch.equal(weight, other)


def test_it_survives_pickling_and_more_training(fitted):
    X, y = overlapping()
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.predict_cost(X), fitted.predict_cost(X))

    copy.partial_fit(X, y)
    assert copy.temperature_ == fitted.temperature_


def test_without_probabilities_or_unseen_rows_it_is_one():
    X, y = overlapping()

    assert small_stack(loss="squared").fit(X, y).temperature_ == 1
    assert network().partial_fit(X, y, classes=np.arange(K)).temperature_ == 1
