"""Tensors are accepted wherever arrays are, on any device and with a gradient."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveEnsembleClassifier
from auxcst_sklearn.costs import cost_vectors
from auxcst_sklearn.metrics import mean_cost
from tests.factories import dense, small_cnn, small_mlp, small_net

DEVICES = ["cpu", *["cuda"] * torch.cuda.is_available()]
MATRIX = np.array([[0.0, 1, 2], [3, 0, 1], [1, 2, 0]])


MODELS = {
    "mlp": lambda: small_mlp(early_stopping=True),
    "images": lambda: small_cnn(image_shape=(2, 2)),
    "module": lambda: small_net(lambda: dense(4, 8, 8, 3), n_networks=2),
    "rule": lambda: BayesMinimumRiskClassifier(LogisticRegression()),
    "ensemble": lambda: CostSensitiveEnsembleClassifier(
        [("net", small_mlp()), ("other", LogisticRegression())], cv=2, random_state=0
    ),
}


@pytest.fixture(params=DEVICES)
def as_tensor(request):
    """A tensor on a device; of floats one that numpy refuses, because it has a gradient."""

    def convert(values):
        tensor = torch.tensor(values, device=request.param)
        return tensor.requires_grad_() if tensor.is_floating_point() else tensor

    return convert


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_models_take_tensors(make, as_tensor, problem):
    weight, groups = np.linspace(0.5, 2, 60), np.arange(60) // 2
    given = {"sample_weight": weight, "cost": problem.cost, "groups": groups}
    other = {name: as_tensor(values) for name, values in given.items()}
    X, y = as_tensor(problem.X), as_tensor(problem.y)

    expected = make().fit(problem.X, problem.y, **given)
    model = make().fit(X, y, **other)

    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(problem.X))
    np.testing.assert_array_equal(model.predict(X), expected.predict(problem.X))
    known = np.repeat(MATRIX[np.newaxis], 60, axis=0)
    np.testing.assert_array_equal(
        model.predict_cost(X, as_tensor(known)), expected.predict_cost(problem.X, known)
    )
    score = model.score(X, y, other["sample_weight"], cost=other["cost"])
    assert score == expected.score(problem.X, problem.y, weight, cost=problem.cost)


def test_validation_sets_and_matrices_may_be_tensors(as_tensor, problem):
    X, y = problem.X, problem.y
    sets = (X[:40], y[:40]), {"X_val": X[40:], "y_val": y[40:]}
    expected = small_mlp(early_stopping=True, cost_matrix=MATRIX).fit(*sets[0], **sets[1])

    model = small_mlp(early_stopping=True, cost_matrix=as_tensor(MATRIX))
    model.fit(*map(as_tensor, sets[0]), **{k: as_tensor(v) for k, v in sets[1].items()})

    np.testing.assert_array_equal(model.predict_cost(as_tensor(X)), expected.predict_cost(X))


def test_metrics_and_costs_take_tensors(as_tensor, problem):
    y, matrix = as_tensor(problem.y), as_tensor(MATRIX)
    choice = problem.y[::-1].copy()

    found = mean_cost(y, as_tensor(choice), cost_matrix=matrix)

    assert found == mean_cost(problem.y, choice, cost_matrix=MATRIX)
    np.testing.assert_array_equal(cost_vectors(y, matrix), cost_vectors(problem.y, MATRIX))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_tensors_of_other_types_are_their_values(dtype, problem):
    rows = torch.tensor(problem.X).to(dtype)
    model = small_mlp().fit(rows, problem.y)

    np.testing.assert_array_equal(model.predict(rows), model.predict(rows.float().numpy()))
