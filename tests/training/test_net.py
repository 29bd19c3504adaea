import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EpochScoring,
    GradientNormClipping,
    LRScheduler,
    TrainEndCheckpoint,
)

from auxcst_sklearn._training.batches import Batches
from auxcst_sklearn._training.net import check_finite
from auxcst_sklearn._training.schedule import one_cycle
from tests.factories import small_mlp


@pytest.fixture
def data():
    return make_classification(200, n_classes=3, n_informative=5, random_state=0)


def test_training_needs_no_gradients_switched_on_outside(data):
    expected = small_mlp().fit(*data).predict_cost(data[0])

    with torch.no_grad():
        np.testing.assert_array_equal(small_mlp().fit(*data).predict_cost(data[0]), expected)


def test_check_finite():
    check_finite([1.0, 2.0])
    for value in (np.inf, np.nan, 1e30):
        with pytest.raises(ValueError, match="Lower learning_rate.*StandardScaler"):
            check_finite([1.0, value])


class Recorder(Callback):
    def __init__(self):
        self.events = []

    def on_batch_end(self, net, batch, training, loss, y_pred, **kwargs):
        self.events.append(("batch", training, len(batch[0]), y_pred.shape, float(loss)))

    def on_grad_computed(self, net, named_parameters, **kwargs):
        self.events.append(("gradient", all(p.grad is not None for _, p in named_parameters)))

    def on_epoch_end(self, net, **kwargs):
        self.events.append(("epoch", net.history[-1, "train_loss"]))


def test_callbacks_hear_of_batches_gradients_and_epochs(data):
    recorder = Recorder()

    small_mlp(callbacks=[recorder], batch_size=150, max_epochs=1).fit(*data)

    kinds = [event[0] for event in recorder.events]
    assert kinds == ["gradient", "batch", "gradient", "batch", "epoch"]
    assert recorder.events[0] == ("gradient", True)
    assert recorder.events[1][1:4] == (True, 150, (150, 3))
    mean = (150 * recorder.events[1][4] + 50 * recorder.events[3][4]) / 200
    assert recorder.events[4][1] == pytest.approx(mean)


class Hearer(Callback):
    def __init__(self):
        self.heard = []

    def on_batch_begin(self, net, batch, training, **kwargs):
        self.heard.append(batch)

    def on_batch_end(self, net, batch, training, **kwargs):
        self.heard.append(batch)

    def on_grad_computed(self, net, named_parameters, batch, **kwargs):
        self.heard.append(batch)


def test_callbacks_hear_a_batch_as_inputs_and_labels(data):
    callback = Hearer()
    small_mlp(max_epochs=1, callbacks=[callback], calibration_fraction=0).fit(*data)

    for x, y in callback.heard:
        assert x.shape == (len(y), data[0].shape[1])
        assert y.dtype == torch.int64
        assert y.dim() == 1
    assert len(callback.heard) % 3 == 0


class StopAfter(Callback):
    def __init__(self, error):
        self.error = error

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) == 2:
            raise self.error


def test_a_callback_may_stop_the_training(data):
    estimator = small_mlp(callbacks=[StopAfter(KeyboardInterrupt())], max_epochs=5).fit(*data)

    assert len(estimator.history_) == 2
    assert estimator.predict(data[0]).shape == (200,)


def test_an_interrupt_by_the_user_gets_through(data, monkeypatch):
    estimator = small_mlp().fit(*data)
    before = estimator.predict_cost(data[0])

    def interrupted(self):
        yield from ()
        raise KeyboardInterrupt

    monkeypatch.setattr(Batches, "__iter__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        estimator.fit(*data)
    monkeypatch.undo()

    np.testing.assert_array_equal(estimator.predict_cost(data[0]), before)


def test_skorch_callbacks_work(data):
    schedule = LRScheduler("StepLR", step_size=1, gamma=0.1)
    clipping = GradientNormClipping(1e-8)

    estimator = small_mlp(
        callbacks=[schedule, ("clip", clipping)], schedule="constant", learning_rate=1e-3
    ).fit(*data)

    assert estimator.net_.optimizer_.param_groups[0]["lr"] == pytest.approx(1e-6)
    assert [record["event_lr"] for record in estimator.history_] == pytest.approx(
        [1e-3, 1e-4, 1e-5]
    )


def test_two_schedules_are_an_error(data):
    callbacks = [LRScheduler("StepLR", step_size=1)]

    with pytest.raises(ValueError, match="LRScheduler, but schedule='one_cycle'.*'constant'"):
        small_mlp(callbacks=callbacks).fit(*data)


def test_the_rate_rises_to_its_peak_falls_to_zero_and_is_back_after_training(data):
    rates = []

    class Keep(Callback):
        def on_batch_end(self, net, training, **kwargs):
            rates.append(net.optimizer_.param_groups[0]["lr"])

    estimator = small_mlp(
        learning_rate=0.02,
        max_epochs=4,
        batch_size=20,
        calibration_fraction=0,
        callbacks=[Keep()],
    ).fit(*data)

    assert rates == pytest.approx([0.02 * share for share in one_cycle(40)])
    assert np.argmax(rates) == 3
    rates.clear()
    estimator.partial_fit(*data)
    assert rates == pytest.approx([0.02] * 10)


def test_net_params_reach_skorch(data):
    estimator = small_mlp(net_params={"optimizer__betas": (0.5, 0.6), "lr": 0.125}).fit(*data)

    group = estimator.net_.optimizer_.param_groups[0]
    assert group["betas"] == (0.5, 0.6)
    assert group["lr"] == 0.125
    with pytest.raises(ValueError, match="optimiser__betas"):
        small_mlp(net_params={"optimiser__betas": (0.5, 0.6)}).fit(*data)


def test_early_stopping_restores_the_epoch_of_the_smallest_held_out_cost(data):
    X, y = data
    cost = np.random.RandomState(0).uniform(size=(200, 3))
    parameters = {
        "early_stopping": True,
        "learning_rate": 0.05,
        "schedule": "constant",
        "validation_fraction": 0.3,
        "loss": "one_sided",
        "dropout": 0.0,
    }
    estimator = small_mlp(patience=3, max_epochs=60, **parameters).fit(X, y, cost=cost)

    costs = [record["valid_cost"] for record in estimator.history_]
    best = int(np.argmin(costs))
    assert best < len(costs) - 1 == best + 3 < 59
    shorter = small_mlp(patience=60, max_epochs=best + 1, **parameters).fit(X, y, cost=cost)
    np.testing.assert_array_equal(estimator.predict_cost(X), shorter.predict_cost(X))


def test_held_out_cost_is_the_mean_cost_in_currency(data):
    X, y = data
    cost = np.random.RandomState(0).uniform(50, 90, size=(200, 3))
    weight = np.random.RandomState(1).uniform(size=200)
    estimator = small_mlp(early_stopping=True, max_epochs=2, patience=5)
    held_out = []

    class Keep(Callback):
        def on_epoch_end(self, net, dataset_valid, **kwargs):
            index = dataset_valid.index.numpy()
            choice = net.predict_heads(X[index].astype(np.float32))[0].argmin(axis=1)
            paid = cost[index, choice]
            held_out.append((len(index), np.average(paid, weights=weight[index])))

    estimator.set_params(callbacks=[Keep()]).fit(X, y, cost=cost, sample_weight=weight)

    assert [n for n, _ in held_out] == [20, 20]
    found = [record["valid_cost"] for record in estimator.history_]
    assert found == pytest.approx([paid for _, paid in held_out], rel=1e-5)


def test_after_training_the_net_holds_no_data(data):
    estimator = small_mlp(early_stopping=True).fit(*data)

    assert estimator.net_.train_split is None
    assert estimator.net_.callbacks_ == []
    assert not estimator.net_.module_.training


def test_verbose_prints_a_line_per_epoch(data, capsys):
    small_mlp(verbose=1, calibration_fraction=0).fit(*data)

    lines = capsys.readouterr().out.splitlines()
    assert "train_loss_hidden1" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == ["1", "2", "3"]


def test_verbose_names_the_calibration_network(data, capsys):
    small_mlp(verbose=1).fit(*data)

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "The calibration network, which does not see all rows:"
    assert [line.split()[0] for line in lines].count("1") == 2


def test_silent_by_default(data, capsys):
    small_mlp().fit(*data)

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("monitor", "parameters"),
    [
        (None, {}),
        ("train_loss_best", {}),
        ("valid_loss_best", {"early_stopping": True}),
        ("valid_cost_best", {"early_stopping": True}),
    ],
)
def test_checkpoints_are_written(data, tmp_path, monitor, parameters):
    callbacks = [
        Checkpoint(monitor=monitor, dirname=tmp_path, f_pickle="net.pkl"),
        TrainEndCheckpoint(dirname=tmp_path / "end"),
    ]

    model = small_mlp(callbacks=callbacks, calibration_fraction=0, **parameters).fit(*data)

    assert (tmp_path / "net.pkl").exists()
    weights = torch.load(tmp_path / "end" / "train_end_params.pt", weights_only=True)
    for name, value in model.net_.module_.state_dict().items():
        assert torch.equal(weights[name], value)
    assert not any(key.endswith("_best") for record in model.history_ for key in record)


def test_best_epochs_are_those_of_the_smallest_loss(data):
    model = small_mlp(max_epochs=8, schedule="constant", learning_rate=0.05).fit(*data)

    losses = model.net_.history[:, "train_loss"]
    best = [loss < min(losses[:i], default=np.inf) for i, loss in enumerate(losses)]
    assert model.net_.history[:, "train_loss_best"] == best
    assert not all(best)


@pytest.mark.parametrize("on_train", [False, True])
def test_scores_of_epochs_and_batches(data, on_train):
    def agreement(net, X, y):
        return 0.25

    callbacks = [
        EpochScoring(agreement, name="epoch", on_train=on_train),
        BatchScoring(agreement, name="batch", on_train=on_train),
    ]

    model = small_mlp(early_stopping=True, callbacks=callbacks).fit(*data)

    assert [(record["epoch"], record["batch"]) for record in model.net_.history] == [
        (0.25, 0.25)
    ] * 3


class StopAt(Callback):
    def __init__(self, method):
        setattr(self, method, self.stop)

    def stop(self, net, **kwargs):
        raise KeyboardInterrupt


@pytest.mark.parametrize("method", ["on_train_begin", "on_train_end"])
def test_a_callback_may_stop_at_either_end_of_the_training(data, method):
    model = small_mlp(callbacks=[StopAt(method)], calibration_fraction=0).fit(*data)

    assert len(model.history_) == (0 if method == "on_train_begin" else 3)


def test_a_failed_call_takes_its_epochs_back(data):
    X, y = data
    model = small_mlp().partial_fit(X, y, classes=[0, 1, 2])

    with pytest.raises(ValueError, match="infinite or NaN"):
        model.partial_fit(X * np.float32(1e30), y)

    assert len(model.net_.history) == 1
    assert len(model.partial_fit(X, y).history_) == 2
