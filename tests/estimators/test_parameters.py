from numbers import Real

import numpy as np
import pytest
import torch
from sklearn.utils._param_validation import Interval

from auxcst_sklearn._estimators.parameters import (
    check_each,
    check_net_params,
    layers_with_head,
    per_layer,
)
from auxcst_sklearn._training.schedule import OPTIMIZERS, optimizer_arguments


def test_per_layer():
    assert per_layer(3, 2, name="width", layers="layer") == [3, 3]
    assert per_layer(np.float32(0.5), 2, name="alpha", layers="layer") == [0.5, 0.5]
    assert per_layer(np.array([1, 2]), 2, name="width", layers="layer") == [1, 2]
    assert per_layer(np.array(8), 2, name="width", layers="layer") == [8, 8]
    assert per_layer([], 0, name="alpha", layers="layer") == []
    with pytest.raises(ValueError, match=r"width=\(1, 2, 3\) has 3 values; .* one per layer"):
        per_layer((1, 2, 3), 2, name="width", layers="layer")


def test_check_each():
    interval = Interval(Real, 0, 1, closed="left")

    check_each([0.0, 0.5], name="beta", interval=interval)
    with pytest.raises(ValueError, match="beta holds 1.0; expected each value to be a float in"):
        check_each([0.0, 1.0], name="beta", interval=interval)


LAYER = torch.nn.Linear(1, 1)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_every_optimizer_steps(name):
    parameter = torch.nn.Parameter(torch.ones(2))
    arguments = optimizer_arguments(name, 0.1, "cpu", LAYER)
    optimizer = arguments.pop("optimizer")([parameter], lr=0.1, **strip(arguments))

    parameter.sum().backward()
    optimizer.step()

    assert (parameter < 1).all()


def strip(arguments):
    return {key.removeprefix("optimizer__"): value for key, value in arguments.items()}


def test_the_fused_optimizer_is_taken_where_there_is_one():
    assert optimizer_arguments("adamw", 0.1, "cpu", LAYER) == {
        "optimizer": torch.optim.AdamW,
        "optimizer__weight_decay": 0.1,
        "optimizer__fused": True,
    }
    assert "optimizer__fused" not in optimizer_arguments(
        torch.optim.Rprop, 0.1, "cpu", torch.nn.Linear(1, 1)
    )


def test_an_optimizer_is_one_of_torch():
    with pytest.raises(ValueError, match=r"optimizer=<class 'dict'>; expected .*torch\.optim"):
        optimizer_arguments(dict, 0.1, "cpu", LAYER)


def test_a_device_is_one_of_torch(problem, mlp):
    with pytest.raises(RuntimeError, match="device string: abacus"):
        mlp(device="abacus").fit(problem.X, problem.y)


def test_layers_with_head_are_those_with_a_weight():
    assert layers_with_head(0.2, 3, layers="layer") == ([0, 1, 2], [0.2, 0.2, 0.2])
    assert layers_with_head([0.0, 0.5, 0.1], 3, layers="layer") == ([1, 2], [0.5, 0.1])
    assert layers_with_head(0, 3, layers="layer") == ([], [])
    with pytest.raises(ValueError, match="alpha holds -0.1"):
        layers_with_head([0.1, -0.1], 2, layers="layer")


def test_check_net_params():
    assert check_net_params(None) == {}
    assert check_net_params({"optimizer__eps": 1e-6}) == {"optimizer__eps": 1e-6}
    with pytest.raises(ValueError, match="net_params holds .'lr'.*learning_rate"):
        check_net_params({"lr": 0.1})
    with pytest.raises(ValueError, match=r"net_params holds \['max_epochs'\]"):
        check_net_params({"max_epochs": 7})
    with pytest.raises(ValueError, match="sets itself or ignores"):
        check_net_params({"iterator_train__shuffle": False})
