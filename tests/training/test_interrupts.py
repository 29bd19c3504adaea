import os
import signal
import threading
import time

import pytest
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import Callback

from auxcst_sklearn._training.runtime import InterruptWatch
from tests.factories import small_mlp


@pytest.fixture(autouse=True)
def _python_handles_the_signal():
    """A test process that runs in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


class PressCtrlC(Callback):
    """Stands for a slow callback, during which the user interrupts."""

    def on_epoch_end(self, net, **kwargs):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)


class Stop(Callback):
    def on_epoch_end(self, net, **kwargs):
        raise KeyboardInterrupt


def test_ctrl_c_in_a_callback_ends_the_fit_and_leaves_the_network_as_it_was(problem):
    model = small_mlp().fit(problem.X, problem.y)
    before = model.net_

    with pytest.raises(KeyboardInterrupt):
        model.set_params(callbacks=[PressCtrlC()]).fit(problem.X, problem.y)

    assert model.net_ is before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_in_a_callback_ends_a_search(problem):
    search = GridSearchCV(small_mlp(callbacks=[PressCtrlC()]), {"alpha": [0, 1]}, cv=2)

    with pytest.raises(KeyboardInterrupt):
        search.fit(problem.X, problem.y)


def test_a_callback_may_still_end_the_training(problem):
    model = small_mlp(callbacks=[Stop()]).fit(problem.X, problem.y)

    assert len(model.history_) == 1


def test_other_threads_set_no_handler():
    found = []

    def watch():
        with InterruptWatch():
            found.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=watch)
    thread.start()
    thread.join()

    assert found == [signal.getsignal(signal.SIGINT)]


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with InterruptWatch():
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_handler_of_the_user_need_not_interrupt(problem):
    asked = []
    signal.signal(signal.SIGINT, lambda *_: asked.append(1))

    class EndIfAsked(Callback):
        def on_epoch_end(self, net, **kwargs):
            os.kill(os.getpid(), signal.SIGINT)
            while not asked:
                time.sleep(0.001)
            raise KeyboardInterrupt

    model = small_mlp(callbacks=[EndIfAsked()]).fit(problem.X, problem.y)
    assert len(model.history_) == 1
