import numpy as np
import pytest
import torch

from auxcst_sklearn._estimators.parameters import check_net_params, per_layer
from auxcst_sklearn._training.schedule import OPTIMIZERS, optimizer_arguments


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, [3, 3]), (np.float32(0.5), [0.5, 0.5]), (np.array(8), [8, 8]), (np.array([1, 2]), [1, 2])],
)
def test_a_parameter_is_one_number_or_one_for_each_layer(value, expected):
    assert per_layer(value, 2, name="width", layers="layer") == expected


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_trains(problem, mlp, name):
    history = mlp(optimizer=name, max_epochs=9).fit(problem.X, problem.y).history_

    assert history[-1]["train_loss"] < history[0]["train_loss"]


def test_the_fused_optimizer_is_taken_where_there_is_one():
    for optimizer, is_fused in (("adamw", True), (torch.optim.Rprop, False)):
        arguments = optimizer_arguments(optimizer, 0.1, "cpu", torch.nn.Linear(1, 1))
        assert ("optimizer__fused" in arguments) == is_fused


def test_a_device_is_one_of_torch(problem, mlp):
    with pytest.raises(RuntimeError, match="device string: abacus"):
        mlp(device="abacus").fit(problem.X, problem.y)


def test_check_net_params():
    assert check_net_params(None) == {}
    assert check_net_params({"optimizer__eps": 1e-6}) == {"optimizer__eps": 1e-6}
    with pytest.raises(ValueError, match="net_params contains .'lr'.*learning_rate"):
        check_net_params({"lr": 0.1})
    with pytest.raises(ValueError, match=r"net_params contains \['max_epochs'\]"):
        check_net_params({"max_epochs": 7})
    with pytest.raises(ValueError, match="sets itself or ignores"):
        check_net_params({"iterator_train__shuffle": False})
