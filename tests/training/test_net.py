import pickle
import tracemalloc

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch import nn

from auxcst_sklearn._training import net as net_module
from auxcst_sklearn._training import plan as plan_module
from auxcst_sklearn._training.devices import largest_output
from auxcst_sklearn._training.processes import Processes
from tests.factories import small_cnn, small_mlp


def test_after_training_the_net_holds_no_data(data):
    estimator = small_mlp(early_stopping=True).fit(*data)

    assert estimator.net_.train_split is None
    assert estimator.net_.callbacks_ == []
    assert not estimator.net_.module_.training


def test_held_out_cost_is_the_mean_cost_in_currency(data):
    X, y = data
    cost = np.random.RandomState(0).uniform(50, 90, size=(200, 3))
    weight = np.random.RandomState(1).uniform(size=200)
    estimator = small_mlp(early_stopping=True, max_epochs=2, patience=5)
    held_out = []

    class Keep(Callback):
        def on_epoch_end(self, net, dataset_valid, **kwargs):
            (rows,) = dataset_valid
            index = rows.index.numpy()
            choice = net.predict_heads(X[index].astype(np.float32))[0].argmin(axis=1)
            paid = cost[index, choice]
            held_out.append((len(index), np.average(paid, weights=weight[index])))

    estimator.set_params(callbacks=[Keep()]).fit(X, y, cost=cost, sample_weight=weight)

    assert [n for n, _ in held_out] == [20, 20]
    found = [record["valid_cost"] for record in estimator.history_]
    assert found == pytest.approx([paid for _, paid in held_out], rel=1e-5)


def test_net_params_reach_skorch(data):
    estimator = small_mlp(net_params={"optimizer__betas": (0.5, 0.6)}).fit(*data)

    group = estimator.net_.optimizer_.param_groups[0]
    assert group["betas"] == (0.5, 0.6)
    with pytest.raises(ValueError, match="optimiser__betas"):
        small_mlp(net_params={"optimiser__betas": (0.5, 0.6)}).fit(*data)


def test_costs_of_classes_are_not_expanded_when_training_continues():
    n, n_classes = 4000, 200
    X, y = np.random.default_rng(0).normal(size=(n, 3)), np.arange(n) % n_classes
    known = {"cost_matrix": 1 - np.eye(n_classes), "loss": "squared", "batch_size": 500}
    model = small_mlp(warm_start=True, max_epochs=1, **known).fit(X, y)
    tracemalloc.start()
    model.fit(X, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(model.history_) == 2
    assert peak < n * n_classes * 4  # half of the costs of all samples in float64


class Attention(nn.Module):
    """A table of weights that is larger than what it computes: scores of each pair of positions."""

    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.rand(3, 5000))

    def forward(self, x):  # (n_sets, n_samples, n_positions, 3)
        return (x @ self.table.T.T[:, :3] @ x.mT).softmax(-1).sum((-1, -2))


def test_memory_is_measured_by_the_largest_output_of_one_sample():
    rows = torch.ones(4, 50, 3)
    assert largest_output(Attention(), rows) == 50 * 50 * 4
    assert largest_output(nn.Flatten(2), rows) == 50 * 3 * 4


def test_a_number_of_samples_at_once_that_the_user_set_stays_on_any_device(data):
    usual, given = small_mlp(), small_mlp(net_params={"iterator_valid__batch_size": 7})
    for model, may_grow in ((usual, True), (given, False)):
        net = pickle.loads(pickle.dumps(model.fit(*data))).net_
        assert net.may_grow is may_grow
        assert net.copy_for_training().may_grow is may_grow
    assert net.iterator_valid__batch_size == 7


def test_more_processes_than_gpus_are_an_error_in_one_sentence(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1000")

    with pytest.raises(ValueError, match=r"^1000 processes train on .* GPUs; expected at most"):
        Processes(rank=3, size=1000).gpu()
    assert Processes().gpu() == "cuda"


def test_batches_that_grow_with_the_memory_predict_alike(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 255, (300, 8, 8), dtype=np.uint8), np.arange(300) % 3
    known = {"early_stopping": True, "batch_size": 16, "max_epochs": 1}
    usual, larger = small_cnn(**known).fit(X, y), small_cnn(**known)
    monkeypatch.setattr(plan_module, "PREDICTED", {**plan_module.PREDICTED, "values": 1280})
    monkeypatch.setattr(net_module, "free_memory", lambda device: 2**24)
    larger.fit(X, y)
    sizes = []
    larger.net_.module_.register_forward_hook(lambda *call: sizes.append(call[-1].shape[1]))

    p = larger.predict_proba(X)

    assert larger.net_.iterator_valid__batch_size == 20
    np.testing.assert_allclose(p, usual.predict_proba(X), atol=1e-6)
    assert larger.history_[0]["valid_loss"] == pytest.approx(usual.history_[0]["valid_loss"])
    assert sizes == [4, 256, 44]  # of which the first tells how many there is memory for
