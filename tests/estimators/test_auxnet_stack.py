"""Several networks of a module side by side."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch import nn

from tests.estimators.torch_modules import Residual, mlp, net
from tests.factories import dense, small_cnn


def several(module=Residual, **parameters):
    return net(module, **{"n_networks": 2, **parameters})


def bodies(estimator):
    """The state of each network's copy of the module."""
    return [network.body.state_dict() for network in estimator.net_.module_.networks]


@pytest.mark.parametrize(
    "model",
    [
        several(),
        several(early_stopping=True),
        small_cnn(n_networks=2, early_stopping=True, combine_heads=False),
    ],
    ids=["modules", "with folds", "images"],
)
def test_predictions_are_means_of_the_networks(digits, model):
    X, y = digits
    model.set_params(loss="cross_entropy").fit(X, y)
    of_networks = []
    for network in model.net_.module_.networks:
        logits = network(torch.from_numpy(X).float()).double() / model.temperature_
        of_networks.append(torch.softmax(logits, 1).numpy(force=True))

    assert np.abs(of_networks[0] - of_networks[1]).max() > 0.01
    logs = np.log(np.maximum(of_networks, 1e-6))
    mean = np.exp(logs.mean(axis=0))  # geometric, of ten classes
    mean /= mean.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), mean, atol=1e-5)


class Starts(Callback):
    """Keeps the state of each module when training begins."""

    def on_train_begin(self, net, **kwargs):
        states = [network.body.state_dict() for network in net.module_.networks]
        net.starts = [{name: value.clone() for name, value in s.items()} for s in states]


@pytest.mark.parametrize(("module", "alike"), [(mlp, False), (mlp(), True)])
def test_copies_of_a_module_start_with_the_same_weights(problem, module, alike):
    X, y, _ = problem
    model = several(module, callbacks=[Starts()]).fit(X, y)

    one, other = (start["0.weight"] for start in model.net_.starts)
    assert torch.equal(one, other) == alike
    first, second = (state["0.weight"] for state in bodies(model))
    assert not torch.equal(first, second)


def test_the_first_network_is_that_of_a_single_fit(problem):
    X, y, _ = problem
    whole = {"batch_size": len(y), "optimizer": "sgd", "weight_decay": 0, "max_epochs": 3}
    whole["temperature"] = 1.0  # so that all samples are trained on
    single = net(mlp, **whole).fit(X, y).net_.module_.networks[0].state_dict()
    first, second = (n.state_dict() for n in several(mlp, **whole).fit(X, y).net_.module_.networks)

    for name, value in single.items():
        torch.testing.assert_close(first[name], value, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(second["output.weight"], first["output.weight"], atol=0.01)


def test_the_rate_of_the_pretrained_part_is_that_of_every_network(problem):
    X, y, _ = problem
    model = several(mlp(), pretrained_lr_factor=0.5).fit(X, y)

    groups = {group["lr"]: len(group["params"]) for group in model.net_.optimizer_.param_groups}
    rates = sorted(groups)
    assert rates[0] == pytest.approx(0.5 * rates[1])
    assert groups[rates[0]] == 2 * 4


# --- what a callable may return ---------------------------------------------------------------


def test_what_holds_for_all_networks_is_warned_of_once(problem):
    model = several(dense(4, 8, 3), n_networks=3, pretrained="auto")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            model.fit(problem.X, problem.y)
    texts = [str(warning.message) for warning in found]
    for part in ("No hidden layer but the last", "are taken for new ones"):
        assert sum(part in text for text in texts) == 2  # once for each fit


def test_networks_of_different_depths_are_refused(problem):
    X, y, _ = problem
    depths = iter([2, 3])

    with pytest.raises(ValueError, match="module made networks of different layers or sizes"):
        several(lambda: dense(4, *[8] * next(depths), 3)).fit(X, y)


def test_parts_that_networks_would_share_are_copied(problem):
    X, y, _ = problem
    backbone, whole = nn.Sequential(nn.Linear(4, 8), nn.ReLU()), mlp()
    start = backbone[0].weight.detach().clone()

    def make():
        return nn.Sequential(backbone, *dense(8, 8, 3))

    for module in (make, lambda: whole):
        one, other = several(module).fit(X, y).net_.module_.networks
        shared = {*map(id, one.parameters())} & {*map(id, other.parameters())}
        assert not shared
    assert torch.equal(backbone[0].weight, start)
    assert isinstance(whole[-1], nn.Linear)
