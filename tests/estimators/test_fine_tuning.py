"""Parts of a pretrained module that are frozen, or learn at a rate of their own."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
import torch

from tests.estimators.torch_modules import Residual, body, mlp, net


def test_frozen_submodules(digits):
    module = Residual()
    for part in (module.stem, module.bn):
        part.requires_grad_(False)
    estimator = net(module, early_stopping=True).fit(*digits)

    start, trained = module.state_dict(), body(estimator)
    changed = {name for name in trained if not np.array_equal(trained[name], start[name])}
    assert changed == {"conv.weight", "conv.bias", "dense.weight", "dense.bias"}


@pytest.mark.parametrize("factor", [0.1, 3.0])
def test_learning_rate_of_the_pretrained_part(problem, factor):
    X, y, _ = problem
    torch.manual_seed(0)
    module = mlp()
    start = {name: value.numpy() for name, value in module.state_dict().items()}
    steps, heads = [], []
    one_step = {"optimizer": "sgd", "weight_decay": 0, "batch_size": 60, "max_epochs": 1}
    for pretrained_lr_factor in (1.0, factor):
        estimator = net(module, pretrained_lr_factor=pretrained_lr_factor, **one_step).fit(X, y)
        steps.append(body(estimator)["0.weight"] - start["0.weight"])
        heads.append(estimator.net_.module_.networks[0].output.weight.detach().numpy())

    np.testing.assert_allclose(steps[1], factor * steps[0], atol=1e-6)
    np.testing.assert_array_equal(*heads)


def trained_mlp():
    """Biases that no initialisation makes."""
    torch.manual_seed(0)
    module = mlp()
    with torch.no_grad():
        module[0].weight.mul_(3)
        module[0].bias.mul_(3)
    return module


def trained_residual():
    """Running statistics, as after training."""
    torch.manual_seed(0)
    module = Residual()
    module.train()(torch.rand(20, 1, 8, 8))
    return module


LOOKS_NEW = "are taken for new ones"


@pytest.mark.parametrize(
    ("make", "as_instance", "expected"),
    [(trained_mlp, True, 0.0), (mlp, True, 1.0), (trained_mlp, False, 1.0), (mlp, False, 1.0)],
)
def test_gradient_of_the_heads(problem, make, as_instance, expected):
    X, y, _ = problem
    given = {"alpha": 1.0, "max_epochs": 2, "weight_decay": 0, "random_state": 0}
    module = make() if as_instance else make
    looks_new = as_instance and expected == 1
    with pytest.warns(UserWarning, match=LOOKS_NEW) if looks_new else nullcontext():
        automatic = body(net(module, **given).fit(X, y))
    factor = 1.0 if expected else 0.1
    known = {**given, "pretrained_lr_factor": factor}
    like = body(net(module, head_gradient=expected, **known).fit(X, y))
    without = body(net(module, **{**known, "alpha": 0.0}).fit(X, y))

    for name, values in automatic.items():
        np.testing.assert_array_equal(values, like[name])
    differs = np.abs(automatic["0.weight"] - without["0.weight"]).max()
    assert differs > 1e-3 if expected else differs < 1e-6


@pytest.mark.parametrize("head_input", ["mean", "flatten"])
def test_part_of_the_gradient_of_the_heads(digits, head_input):
    X, y = digits
    start = trained_residual().state_dict()["stem.weight"].numpy()
    given = {"pretrained_lr_factor": 1.0, "optimizer": "sgd", "weight_decay": 0, "max_epochs": 1}
    given |= {"batch_size": len(X), "alpha": 1.0, "head_input": head_input}
    full, none, third = (
        body(net(trained_residual(), head_gradient=g, **given).fit(X, y))["stem.weight"] - start
        for g in (1.0, 0.0, 1 / 3)
    )

    assert np.abs(full - none).max() > 1e-6
    np.testing.assert_allclose(third, none + (full - none) / 3, atol=1e-7)


@pytest.mark.parametrize("make", [trained_residual, Residual])
def test_running_statistics_are_a_sign_of_training(digits, make):
    model = net(make(), max_epochs=1)
    with nullcontext() if make is trained_residual else pytest.warns(match=LOOKS_NEW):
        model.fit(*digits)
