import threading

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from auxcst_sklearn import CSAEPretrainedMLP
from tests.factories import QUICK, small_cnn, small_mlp


def autocast():
    return torch.autocast("cpu", torch.bfloat16)


FITS = {
    "fit": lambda X, y, cost: small_mlp().fit(X, y, cost=cost),
    "partial_fit": lambda X, y, cost: small_mlp().partial_fit(X, y, [0, 1, 2], cost=cost),
    "bf16": lambda X, y, cost: small_mlp(precision="bf16").fit(X, y, cost=cost),
    "pretrained": lambda X, y, cost: CSAEPretrainedMLP(
        1, 8, pretrain_epochs=1, max_epochs=1, **QUICK
    ).fit(X, y, cost=cost),
    "images": lambda X, y, cost: small_cnn(channels=4).fit(X.reshape(-1, 2, 2), y, cost=cost),
}


@pytest.mark.parametrize("mode", [autocast, torch.inference_mode, torch.no_grad])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_the_modes_of_the_caller_change_nothing(fit, mode, problem):
    X = problem.X.reshape(-1, 2, 2) if fit is FITS["images"] else problem.X
    expected = fit(*problem).predict_cost(X)

    with mode():
        model = fit(*problem)
        inside = model.predict_cost(X)

    np.testing.assert_array_equal(inside, expected)
    np.testing.assert_array_equal(model.predict_cost(X), expected)
    model.partial_fit(X, problem.y, cost=problem.cost)


class Flags(Callback):
    """What cuDNN is told while a network trains."""

    def __init__(self, *, fails=False):
        self.fails, self.seen, self.waits = fails, [], []

    def on_epoch_begin(self, net, **kwargs):
        for wait in self.waits:
            wait()
        self.seen.append(cudnn_flags())
        if self.fails:
            raise OSError("no room")


def cudnn_flags():
    return torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark


@pytest.fixture
def benchmarked():
    """A caller who lets cuDNN choose the fastest kernels."""
    flags = torch.backends.cudnn
    before, (flags.deterministic, flags.benchmark) = cudnn_flags(), (False, True)
    yield
    flags.deterministic, flags.benchmark = before


@pytest.mark.usefixtures("benchmarked")
def test_fits_and_predictions_use_deterministic_kernels(problem):
    flags, within = Flags(), []
    model = small_mlp(callbacks=[flags]).fit(problem.X, problem.y)
    assert flags.seen == [(True, False)] * 3
    assert cudnn_flags() == (False, True)

    model.net_.module_.register_forward_hook(lambda *_: within.append(cudnn_flags()))
    model.predict(problem.X)
    assert within == [(True, False)]
    assert cudnn_flags() == (False, True)


@pytest.mark.usefixtures("benchmarked")
def test_an_error_gives_the_caller_its_kernels_back(problem):
    with pytest.raises(OSError, match="no room"):
        small_mlp(callbacks=[Flags(fails=True)]).fit(problem.X, problem.y)
    assert cudnn_flags() == (False, True)


@pytest.mark.usefixtures("benchmarked")
def test_of_fits_that_overlap_the_last_one_gives_the_kernels_back(problem):
    first, second = Flags(), Flags()
    first_began, second_began, first_ended = (threading.Event() for _ in range(3))
    first.waits = [first_began.set, lambda: second_began.wait(30)]
    second.waits = [second_began.set, lambda: first_ended.wait(30)]

    def fit(flags):
        small_mlp(callbacks=[flags]).fit(problem.X, problem.y)

    threads = [threading.Thread(target=fit, args=(flags,)) for flags in (first, second)]
    threads[0].start()
    assert first_began.wait(30)
    threads[1].start()
    threads[0].join()  # while the second one waits in its first epoch
    between = cudnn_flags()
    first_ended.set()
    threads[1].join()

    assert first.seen == second.seen == [(True, False)] * 3
    assert between == (True, False)
    assert cudnn_flags() == (False, True)
