import numpy as np
import pytest
import torch

from auxcst_sklearn import CSAEPretrainedMLP
from tests.factories import QUICK, small_cnn, small_mlp


def autocast():
    return torch.autocast("cpu", torch.bfloat16)


FITS = {
    "fit": lambda X, y, cost: small_mlp().fit(X, y, cost=cost),
    "partial_fit": lambda X, y, cost: small_mlp().partial_fit(X, y, [0, 1, 2], cost=cost),
    "bf16": lambda X, y, cost: small_mlp(precision="bf16").fit(X, y, cost=cost),
    "pretrained": lambda X, y, cost: CSAEPretrainedMLP(
        1, 8, pretrain_epochs=1, max_epochs=1, **QUICK
    ).fit(X, y, cost=cost),
    "images": lambda X, y, cost: small_cnn(channels=4).fit(X.reshape(-1, 2, 2), y, cost=cost),
}


@pytest.mark.parametrize("mode", [autocast, torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_the_modes_of_the_caller_change_nothing(fit, mode, problem):
    X = problem.X.reshape(-1, 2, 2) if fit is FITS["images"] else problem.X
    expected = fit(*problem).predict_cost(X)

    with mode():
        model = fit(*problem)
        inside = model.predict_cost(X)

    np.testing.assert_array_equal(inside, expected)
    np.testing.assert_array_equal(model.predict_cost(X), expected)
    model.partial_fit(X, problem.y, cost=problem.cost)
