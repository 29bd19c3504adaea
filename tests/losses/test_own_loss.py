"""Losses of one's own: what they must define, and what follows from it."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import GridSearchCV
from torch.nn import functional as F  # noqa: N812

from auxcst_sklearn import CostSensitiveAuxMLP
from auxcst_sklearn.losses import CrossEntropy, ProbabilisticLoss, SmoothOneSided, Target
from tests.factories import QUICK

COSTS = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(float)


class Focal(ProbabilisticLoss):
    """Only the abstract methods."""

    def __call__(self, outputs, target):
        logs = outputs.log_softmax(-1)
        own = logs.gather(-1, target.label.expand(logs.shape[:-1]).unsqueeze(-1)).squeeze(-1)
        return -((1 - own.exp()) ** 2) * own

    def probabilities(self, outputs):
        return outputs.softmax(-1)


@dataclass(frozen=True)
class Grades(ProbabilisticLoss):
    """K - 1 logits of being above a grade, given that the grades below are passed (CORN)."""

    def n_outputs(self, n_classes, n_decisions):
        return n_classes - 1

    def __call__(self, outputs, target):
        grade = torch.arange(outputs.shape[-1], device=outputs.device)
        label = target.label.unsqueeze(-1)
        losses = F.binary_cross_entropy_with_logits(
            outputs, (label > grade).to(outputs).expand(outputs.shape), reduction="none"
        )
        return (losses * (label >= grade)).sum(-1)

    def probabilities(self, outputs):
        above = outputs.sigmoid().cumprod(-1)
        ends = torch.ones_like(above[..., :1])
        return torch.cat([ends, above], -1) - torch.cat([above, 0 * ends], -1)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:900].astype(np.float32), y[:900]


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4)).astype(np.float32)
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=600), [-1, -0.3, 0.3, 1])


def small(loss, **parameters):
    return CostSensitiveAuxMLP(2, 32, loss=loss, max_epochs=15, n_networks=2, **QUICK, **parameters)


def test_costs_follow_from_the_probabilities(digits):
    X, y = digits
    model = small(Focal()).fit(X[:700], y[:700])

    p = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_cost(X), 1 - p, atol=1e-5)
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    assert (model.predict(X[700:]) == y[700:]).mean() > 0.85
    assert model.temperature_ > 0


def test_biases_start_at_the_frequencies(digits):
    X, y = digits
    statistics = small(Focal()).fit(X, y).net_.statistics

    expected = torch.as_tensor(statistics.prior).log()
    torch.testing.assert_close(Focal().start_bias(statistics), expected)


def test_a_loss_of_fewer_outputs_than_classes(graded):
    X, y = graded
    model = small(Grades(), cost_matrix=COSTS, alpha=0.3).fit(X[:400], y[:400])

    assert model.net_.module_(torch.from_numpy(X[None, :3])).shape == (2, 3, 4)
    p = model.predict_proba(X)
    np.testing.assert_allclose(p.sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(model.predict_cost(X), p @ COSTS, rtol=1e-4, atol=1e-4)
    assert COSTS[y[400:], model.predict(X[400:])].mean() < 0.5
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_probabilities_of_grades_are_those_of_the_loss():
    outputs = torch.randn(7, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    p = Grades().probabilities(outputs)
    for grade in range(5):
        loss = Grades()(outputs, Target(None, torch.full((7,), grade)))
        torch.testing.assert_close(loss, -p[:, grade].log())


def test_losses_of_other_numbers_of_outputs_do_not_go_together(graded):
    with pytest.raises(ValueError, match="have 4 and 5 outputs .* Leave aux_loss out"):
        small(Grades(), aux_loss=CrossEntropy()).fit(*graded)


class Powered(Focal):
    """With an argument that a search sets."""

    def __init__(self, gamma=2.0):
        self.gamma = gamma

    def __call__(self, outputs, target):
        return super().__call__(outputs, target) ** self.gamma


@pytest.mark.parametrize("loss", [Powered(), CrossEntropy(), SmoothOneSided()])
def test_a_search_sets_arguments_of_a_loss(digits, loss):
    (name,) = loss.get_params()
    network = CostSensitiveAuxMLP(1, 8, loss=loss, n_networks=1, max_epochs=2, random_state=0)
    search = GridSearchCV(network, {f"loss__{name}": [0.5, 0.75]}, cv=2).fit(*digits)

    (best,) = search.best_params_.values()
    assert repr(search.best_estimator_.loss) == f"{type(loss).__name__}({name}={best})"
    assert loss.get_params() == type(loss)().get_params()  # that of the caller stays as it is
    found = [
        network.set_params(**{f"loss__{name}": value}).fit(*digits).predict_cost(digits[0][:9])
        for value in (0.5, 0.75)
    ]
    assert not np.allclose(*found)
    assert loss.get_params() == {name: 0.75}


def test_arguments_of_a_loss_are_checked_as_in_its_constructor():
    loss = CrossEntropy(0.1)
    for wrong in ({"smoothing": 1.5}, {"smothing": 0.2}):
        with pytest.raises((ValueError, TypeError), match="smoothing|smothing"):
            loss.set_params(**wrong)

    assert loss == CrossEntropy(0.1)
