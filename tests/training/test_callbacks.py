import pickle

import numpy as np
import pytest
import torch
from sklearn.metrics import get_scorer
from skorch.callbacks import (
    BatchScoring,
    Callback,
    Checkpoint,
    EpochScoring,
    GradientNormClipping,
    LRScheduler,
    TrainEndCheckpoint,
)

from auxcst_sklearn.losses import CrossEntropy
from tests.factories import small_mlp
from tests.training.stopping import stop_at


class Recorder(Callback):
    def __init__(self):
        self.events = []

    def on_batch_begin(self, net, batch, training, **kwargs):
        self.events.append(("begin", training, batch))

    def on_batch_end(self, net, batch, training, loss, y_pred, **kwargs):
        self.events.append(("batch", training, batch, y_pred.shape, float(loss)))

    def on_grad_computed(self, net, named_parameters, batch, **kwargs):
        has_gradients = all(p.grad is not None for _, p in named_parameters)
        self.events.append(("gradient", has_gradients, batch))

    def on_epoch_end(self, net, **kwargs):
        self.events.append(("epoch", net.history[-1, "train_loss"]))


def test_callbacks_are_called_for_batches_gradients_and_epochs(data):
    recorder = Recorder()
    small_mlp(callbacks=[recorder], batch_size=150, max_epochs=1).fit(*data)

    *calls, epoch = recorder.events
    assert [event[0] for event in calls] == ["begin", "gradient", "batch"] * 2
    for (_, flag, (x, y), *_), n in zip(calls, [150] * 3 + [50] * 3):
        assert flag
        assert (x.shape, y.shape, y.dtype) == ((n, data[0].shape[1]), (n,), torch.int64)
    assert calls[2][3] == (150, 3)
    mean = (150 * calls[2][4] + 50 * calls[5][4]) / 200
    assert epoch == ("epoch", pytest.approx(mean))


class Interrupted(CrossEntropy):
    """The user presses Ctrl-C during a batch."""

    def __call__(self, outputs, target):
        raise KeyboardInterrupt


def test_an_interrupt_by_the_user_gets_through(data):
    estimator = small_mlp().fit(*data)
    before = estimator.predict_cost(data[0])

    with pytest.raises(KeyboardInterrupt):
        estimator.set_params(loss=Interrupted()).fit(*data)

    np.testing.assert_array_equal(estimator.predict_cost(data[0]), before)


def test_skorch_callbacks_work(data):
    schedule = LRScheduler("StepLR", step_size=1, gamma=0.1)
    clipping = GradientNormClipping(1e-8)

    constant = {"schedule": "constant", "learning_rate": 1e-3}
    estimator = small_mlp(callbacks=[schedule, ("clip", clipping)], **constant).fit(*data)

    assert estimator.net_.optimizer_.param_groups[0]["lr"] == pytest.approx(1e-6)
    rates = [record["event_lr"] for record in estimator.history_]
    assert rates == pytest.approx([1e-3, 1e-4, 1e-5])


def test_two_schedules_are_an_error(data):
    callbacks = [LRScheduler("StepLR", step_size=1)]

    with pytest.raises(ValueError, match="LRScheduler, but schedule='one_cycle'.*'constant'"):
        small_mlp(callbacks=callbacks).fit(*data)


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

    model = small_mlp(callbacks=callbacks, **parameters).fit(*data)

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

    scores = [(record["epoch"], record["batch"]) for record in model.net_.history]
    assert scores == [(0.25, 0.25)] * 3


@pytest.mark.parametrize("scoring", ["accuracy", get_scorer("accuracy")])
def test_scorers_of_scikit_learn_are_refused_by_name(data, scoring):
    callback = EpochScoring(scoring, lower_is_better=False)
    with pytest.raises(ValueError, match="callbacks hold skorch's EpochScoring with scoring="):
        small_mlp(callbacks=[callback]).fit(*data)


@pytest.mark.parametrize(
    ("method", "n_epochs"), [("on_train_begin", 0), ("on_epoch_end", 2), ("on_train_end", 3)]
)
def test_a_callback_may_stop_the_training(data, method, n_epochs):
    model = small_mlp(callbacks=[stop_at(method, n_epochs)]).fit(*data)

    assert len(model.history_) == n_epochs
    assert model.predict(data[0]).shape == (200,)


class Counter(Callback):
    def __init__(self, log=None):
        self.log = log
        self.count_ = 0

    def on_epoch_end(self, net, **kwargs):
        self.count_ += 1


def test_callbacks_are_saved_without_what_a_training_left_in_them(data):
    counter = Counter()
    callbacks = [("count", counter)]
    model = small_mlp(callbacks=callbacks).fit(*data)

    ((name, saved),) = pickle.loads(pickle.dumps(model)).callbacks

    assert counter.count_ > 0
    assert (name, vars(saved)) == ("count", {"log": None})
    assert model.callbacks is callbacks


def test_a_warm_start_calls_the_callbacks_that_it_is_given(data):
    first, second = Counter(), Counter()
    model = small_mlp(max_epochs=1, warm_start=True, callbacks=[first]).fit(*data)

    model.set_params(callbacks=[second]).fit(*data)

    assert (first.count_, second.count_) == (1, 1)
