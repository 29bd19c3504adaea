"""What a fit depends on is in the key of its checkpoints; a folder is for one fit at a time."""

import os
import time
from multiprocessing import get_context

import numpy as np
import pytest
import torch
from sklearn.ensemble import BaggingClassifier

from auxcst_sklearn import CostSensitiveAuxMLP, CostSensitiveAuxNet
from tests.estimators.test_checkpoints import X, Y, mlp


def test_members_of_a_bag_have_seeds_and_folders_of_their_own(tmp_path):
    member = mlp(max_epochs=2, checkpoint_dir=tmp_path / "{fit}", random_state=None)
    bag = BaggingClassifier(member, 2, bootstrap=False, random_state=0).fit(X, Y)
    first, second = bag.estimators_
    assert not np.array_equal(first.predict_cost(X), second.predict_cost(X))


def test_code_counts_by_its_name(tmp_path):
    given = {"max_epochs": 1, "random_state": 0, "checkpoint_dir": tmp_path / "fit"}
    CostSensitiveAuxNet(narrow, **given).fit(X, Y)
    CostSensitiveAuxNet(narrow, **given).fit(X, Y)
    with pytest.raises(ValueError, match="differs in module;"):
        CostSensitiveAuxNet(wide, **given).fit(X, Y)


def narrow():
    return torch.nn.Sequential(torch.nn.Linear(8, 6), torch.nn.ReLU(), torch.nn.Linear(6, 3))


def wide():
    return torch.nn.Sequential(torch.nn.Linear(8, 9), torch.nn.ReLU(), torch.nn.Linear(9, 3))


def test_code_without_a_name_is_refused(tmp_path):
    class Local(CostSensitiveAuxMLP):
        pass

    with pytest.raises(ValueError, match="estimator=.*Local.*not found as.*a module of its own"):
        Local(**mlp(checkpoint_dir=tmp_path).get_params()).fit(X, Y)
    with pytest.raises(ValueError, match="module=.*lambda>.*not found as.*a module of its own"):
        CostSensitiveAuxNet(lambda: wide(), checkpoint_dir=tmp_path).fit(X, Y)
    assert not list(tmp_path.iterdir())


class Slow(torch.optim.AdamW):
    def step(self, closure=None):
        time.sleep(0.02)
        return super().step(closure)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("widths", [(8, 8), (8, 9)])
def test_two_processes_in_one_folder(widths, tmp_path):
    """One trains, the other is refused; or, where the first has ended before, both are right."""
    context = get_context("fork")
    start, results = context.Barrier(2), context.Queue()

    def run(width):
        model = mlp(width=width, max_epochs=2, optimizer=Slow, checkpoint_dir=tmp_path)
        start.wait()
        try:
            results.put((width, model.fit(X, Y).predict_cost(X)))
        except ValueError as error:
            results.put((width, str(error)))

    processes = [context.Process(target=run, args=(width,)) for width in widths]
    for process in processes:
        process.start()
    found = [results.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()

    n_fitted = 0
    for width, result in found:
        if isinstance(result, str):
            assert str(tmp_path) in result
            assert "is in use" in result or "differs in width" in result
        else:
            expected = mlp(width=width, max_epochs=2, optimizer=Slow).fit(X, Y).predict_cost(X)
            np.testing.assert_array_equal(result, expected)
            n_fitted += 1
    assert n_fitted >= 1
