import numpy as np
import pytest
import torch


@pytest.mark.parametrize(
    ("value", "expected"),
    [(3, [3, 3]), (np.int64(5), [5, 5]), (np.array(8), [8, 8]), (np.array([1, 2]), [1, 2])],
)
def test_a_parameter_is_one_number_or_one_for_each_layer(problem, mlp, value, expected):
    model = mlp(width=value, depth=2, max_epochs=1).fit(problem.X, problem.y)

    layers = model.net_.module_.hidden.values()
    assert [layer[0].bias.numel() for layer in layers] == expected


def test_a_share_may_be_a_number_of_any_type(problem, mlp):
    found, expected = (
        mlp(alpha=alpha).fit(problem.X, problem.y).predict_cost(problem.X)
        for alpha in (np.float32(0.5), [0.5])
    )
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    "name", ["adagrad", "adam", "adamax", "adamw", "nadam", "radam", "rmsprop", "sgd"]
)
def test_every_optimizer_trains(problem, mlp, name):
    history = mlp(optimizer=name, max_epochs=9).fit(problem.X, problem.y).history_

    assert history[-1]["train_loss"] < history[0]["train_loss"]


def test_the_fused_optimizer_is_taken_where_there_is_one(problem, mlp):
    for optimizer, is_fused in (("adamw", True), (torch.optim.Rprop, None)):
        net = mlp(optimizer=optimizer, max_epochs=1).fit(problem.X, problem.y).net_
        assert net.optimizer_.defaults.get("fused") == is_fused


def test_a_device_is_one_of_torch(problem, mlp):
    with pytest.raises(RuntimeError, match="device string: abacus"):
        mlp(device="abacus").fit(problem.X, problem.y)


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_gpu_that_is_not_there_is_named(problem, mlp, device):
    with pytest.raises(ValueError, match=f"device='{device}', but torch finds no such GPU"):
        mlp(device=device).fit(problem.X, problem.y)
    model = mlp(device="cpu").fit(problem.X, problem.y)  # as of a file from a machine with a GPU
    model.set_params(device=device).partial_fit(problem.X, problem.y)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lr": 0.1}, "net_params contains .'lr'.*learning_rate"),
        ({"max_epochs": 7}, r"net_params contains \['max_epochs'\]"),
        ({"iterator_train__shuffle": False}, "sets itself or ignores"),
        ({"optimizer__lr": 0.1}, r"\['optimizer__lr'\].*such as learning_rate"),
        ({"optimizer__weight_decay": 0.1, "optimizer__lr_decay": 0.1}, r"\['optimizer__weight_dec"),
    ],
)
def test_arguments_of_the_net_that_the_estimator_sets_are_refused(problem, mlp, given, message):
    with pytest.raises(ValueError, match=message):
        mlp(net_params=given).fit(problem.X, problem.y)
