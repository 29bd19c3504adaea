
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




LAYER = torch.nn.Linear(1, 1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_steps(name):
    parameter = torch.nn.Parameter(torch.ones(2))
    arguments = optimizer_arguments(name, 0.1, "cpu", LAYER)
    optimizer = arguments.pop("optimizer")([parameter], lr=0.1, **strip(arguments))

    parameter.sum().backward()
    optimizer.step()

    assert (parameter < 1).all()




def test_the_fused_optimizer_is_taken_where_there_is_one():
    assert optimizer_arguments("adamw", 0.1, "cpu", LAYER) == {
        "optimizer": torch.optim.AdamW,
        "optimizer__weight_decay": 0.1,
        "optimizer__fused": True,
    }
    assert "optimizer__fused" not in optimizer_arguments(
        torch.optim.Rprop, 0.1, "cpu", torch.nn.Linear(1, 1)
    )




def test_a_device_is_one_of_torch(problem, mlp):
    with pytest.raises(RuntimeError, match="device string: abacus"):
        mlp(device="abacus").fit(problem.X, problem.y)




def test_check_net_params():
    assert check_net_params(None) == {}
    assert check_net_params({"optimizer__eps": 1e-6}) == {"optimizer__eps": 1e-6}
    with pytest.raises(ValueError, match="net_params holds .'lr'.*learning_rate"):
        check_net_params({"lr": 0.1})
    with pytest.raises(ValueError, match=r"net_params holds \['max_epochs'\]"):
        check_net_params({"max_epochs": 7})
    with pytest.raises(ValueError, match="sets itself or ignores"):
        check_net_params({"iterator_train__shuffle": False})
