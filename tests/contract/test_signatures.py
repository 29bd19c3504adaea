"""The order of arguments: scikit-learn's, and costs by keyword."""

import inspect

import numpy as np
import pytest

import auxcst_sklearn
from auxcst_sklearn import BayesMinimumRiskClassifier, CostSensitiveAuxMLP, metrics, plotting

ESTIMATORS = [
    value
    for name in auxcst_sklearn.__all__
    if inspect.isclass(value := getattr(auxcst_sklearn, name)) and hasattr(value, "predict_cost")
]
FIRST = {
    "fit": ["X", "y", "sample_weight"],
    "score": ["X", "y", "sample_weight"],
    "partial_fit": ["X", "y", "classes", "sample_weight"],
    "predict": ["X", "cost"],
    "predict_cost": ["X", "cost"],
    "decide": ["X", "cost"],
}
FUNCTIONS = [getattr(metrics, name) for name in metrics.__all__] + [
    getattr(getattr(plotting, name), way)
    for name in plotting.__all__
    for way in ("from_estimator", "from_predictions")
    if hasattr(getattr(plotting, name), way)
]


def positional(function):
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = inspect.signature(function).parameters.values()
    return [one.name for one in names if one.kind in kinds and one.name != "self"]


@pytest.mark.parametrize("method", FIRST)
@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_methods(estimator, method):
    if not inspect.isfunction(getattr(estimator, method, None)):
        pytest.skip("has none")
    assert positional(getattr(estimator, method)) == FIRST[method]
    assert "cost" in inspect.signature(getattr(estimator, method)).parameters


POSITIONAL = {
    "BayesMinimumRiskClassifier": ["estimator"],
    "CSAEPretrainedMLP": ["depth", "width", "beta", "corruption", "pretrain_epochs"],
    "CostSensitiveAuxCNN": ["channels", "depth", "alpha"],
    "CostSensitiveAuxMLP": ["depth", "width", "alpha"],
    "CostSensitiveAuxNet": ["module"],
    "CostSensitiveEnsembleClassifier": ["estimators"],
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_constructors(estimator):
    assert positional(estimator) == POSITIONAL[estimator.__name__]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_functions(function):
    assert not {"cost", "cost_matrix"} & set(positional(function))


@pytest.mark.parametrize("model", [BayesMinimumRiskClassifier(), CostSensitiveAuxMLP()])
def test_costs_in_the_place_of_weights(model):
    with pytest.raises(ValueError, match="Sample weights must be 1D"):
        model.fit(np.eye(4), [0, 1, 0, 1], np.ones((4, 2)))
