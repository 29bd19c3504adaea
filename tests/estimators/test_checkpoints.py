"""Fits that are killed go on from their checkpoints, and end as if nothing had happened."""

import os
import shutil
import signal
import time
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_classification
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import LRScheduler
from torch import nn

from auxcst_sklearn import CostSensitiveAuxCNN, CostSensitiveAuxMLP, CostSensitiveAuxNet
from tests.factories import dense

X, Y = make_classification(120, 8, n_informative=5, n_classes=3, random_state=0)
X = X.astype(np.float32)
SKEWED = np.exp(2 * np.random.default_rng(0).normal(size=(400, 3)))  # long tails: columns with bins
IS_LARGE = (SKEWED[:, 0] > 1).astype(int)
COST = np.array([[0, 1, 4], [2, 0, 1], [5, 1, 0.0]])
# A process that was forked cannot use a GPU that its parent has used.
ON_CPU = {"random_state": 0, "device": "cpu"}


def mlp(**changes):
    given = {"depth": 2, "width": 8, "max_epochs": 8, "patience": 4, "cost_matrix": COST}
    return CostSensitiveAuxMLP(**{**given, **ON_CPU, **changes})


def cnn(**changes):
    given = {"image_shape": (1, 2, 4), "channels": (4, 4), "max_epochs": 4}
    return CostSensitiveAuxCNN(**{**given, **ON_CPU, **changes})


def make_module():
    first, act, *rest = dense(8, 8, 8, 3)
    return nn.Sequential(first, nn.BatchNorm1d(8), act, nn.Dropout(0.3), *rest)


def net(**changes):
    return CostSensitiveAuxNet(make_module, **{"max_epochs": 4, **ON_CPU, **changes})


def state_of(model):
    weights = {k: v.numpy() for k, v in model.net_.module_.state_dict().items()}
    records = [{k: v for k, v in r.items() if k != "dur"} for r in model.history_]
    return weights, records, model.temperature_


def assert_same(found, expected):
    for name, weight in expected[0].items():
        np.testing.assert_array_equal(found[0][name], weight, err_msg=name)
    assert found[1:] == expected[1:]


# Numbers and functions of a class would be in the key of its checkpoints, this is not.
DEATH = SimpleNamespace(steps=0, end=None)


class Dying(torch.optim.AdamW):
    """Ends the process, or raises, at its n-th step."""

    def step(self, closure=None):
        DEATH.steps -= 1
        if DEATH.steps == 0:
            DEATH.end()
        return super().step(closure)


def exit_code_of(run):
    """Of a process that calls a function."""
    process = get_context("fork").Process(target=run)
    process.start()
    process.join()
    return process.exitcode


def is_killed(model, n_steps, *args):
    """Whether a fit in another process, which kills itself at a step, gets that far."""

    def run():
        DEATH.steps, DEATH.end = n_steps, lambda: os.kill(os.getpid(), signal.SIGKILL)
        model.fit(*args)

    return exit_code_of(run) == -signal.SIGKILL


MODELS = {
    "stack": mlp(),
    "one network": mlp(n_networks=1),
    "to the end": mlp(early_stopping=False, schedule="one_cycle", ema_epochs=0),
    "bins": mlp(depth=1, n_bins=4, cost_matrix=None),
    "last weights": mlp(ema_epochs=0, checkpoint_every=3),
    "convolution": cnn(n_networks=1),
    "two convolutions": cnn(augmentation="flip"),
    "module": net(early_stopping=True),
    "two modules": net(early_stopping=True, n_networks=2),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.parametrize("name", MODELS)
def test_a_killed_fit_goes_on_and_ends_the_same(name, tmp_path):
    data, y = (SKEWED, IS_LARGE) if name == "bins" else (X, Y)
    model = MODELS[name].set_params(optimizer=Dying, checkpoint_dir=None)
    DEATH.steps = 0
    expected = state_of(model.fit(data, y))
    assert any(".bins." in part for part in expected[0]) == (name == "bins")
    n_steps, n_kills = -DEATH.steps, 0
    model.set_params(checkpoint_dir=tmp_path)

    for part in (0.3, 0.5, 0.55):  # of a fit each, from the last checkpoint on
        n_kills += is_killed(model, max(1, int(part * n_steps)), data, y)
    DEATH.steps = 0
    found = state_of(model.fit(data, y))

    assert n_kills >= 1
    assert -DEATH.steps < n_steps
    assert_same(found, expected)


def test_a_finished_fit_is_not_run_again(tmp_path):
    model = mlp(checkpoint_dir=tmp_path, optimizer=Dying)
    first = state_of(model.fit(X, Y))
    DEATH.steps = 0

    assert_same(state_of(model.fit(X, Y)), first)
    assert DEATH.steps == 0
    assert len(list(tmp_path.glob("*.pt"))) == 2


def test_random_state_none_goes_on_with_the_numbers_it_had(tmp_path):
    first = state_of(mlp(checkpoint_dir=tmp_path, random_state=None).fit(X, Y))
    second = state_of(mlp(checkpoint_dir=tmp_path, random_state=None).fit(X, Y))
    assert_same(second, first)


def test_other_data_and_parameters_are_refused(tmp_path):
    model = mlp(checkpoint_dir=tmp_path, max_epochs=2).fit(X, Y)
    before = state_of(model)

    with pytest.raises(ValueError, match=r"differs in X;.*'\{fit\}'"):
        model.fit(X * 1.5, Y)
    for changes, names in (
        ({"width": 9, "learning_rate": 0.1}, "learning_rate, width;"),
        ({"cost_matrix": 2 * COST}, "cost"),
        ({"random_state": 1}, "random_state"),
    ):
        with pytest.raises(ValueError, match=f"differs in {names}"):
            mlp(checkpoint_dir=tmp_path, max_epochs=2, **changes).fit(X, Y)
    assert_same(state_of(model), before)
    model.set_params(verbose=0, checkpoint_every=2, cost_matrix=COST.tolist()).fit(X, Y)


@pytest.mark.parametrize("damage", ["cut", "empty", "other"])
def test_a_damaged_checkpoint_is_an_error_and_deleted_gives_way_to_the_one_before(damage, tmp_path):
    expected = state_of(mlp().fit(X, Y))
    model = mlp(checkpoint_dir=tmp_path, max_epochs=8).fit(X, Y)
    last = max(tmp_path.glob("*.pt"))
    content = last.read_bytes()
    damaged = {"cut": content[: len(content) // 2], "empty": b"", "other": b"x" * len(content)}
    last.write_bytes(damaged[damage])

    for _ in range(2):  # the folder stays free
        with pytest.raises(ValueError, match=f"{last.name} cannot be read.* delete it, and the"):
            model.fit(X, Y)
    last.unlink()
    assert_same(state_of(model.fit(X, Y)), expected)


def test_a_search_goes_on_candidate_by_candidate(tmp_path):
    folder = tmp_path / "search" / "{fit}"
    search = GridSearchCV(
        mlp(max_epochs=2, checkpoint_dir=folder, optimizer=Dying), {"alpha": [0, 0.5]}, cv=2
    )
    scores = search.fit(X, Y).cv_results_["mean_test_score"]
    assert len(list(folder.parent.iterdir())) == 5
    DEATH.steps = 0

    np.testing.assert_array_equal(search.fit(X, Y).cv_results_["mean_test_score"], scores)
    assert DEATH.steps == 0


def test_an_interrupt_leaves_the_checkpoints(tmp_path):
    expected = state_of(mlp(optimizer=Dying).fit(X, Y))
    model = mlp(optimizer=Dying, checkpoint_dir=tmp_path)
    DEATH.steps, DEATH.end = 20, lambda: signal.raise_signal(signal.SIGINT)
    # A test process that runs in the background may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not hasattr(model, "net_")
    assert_same(state_of(model.fit(X, Y)), expected)


def test_a_folder_that_cannot_be_written(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(NotADirectoryError):
        mlp(checkpoint_dir=file / "folder").fit(X, Y)

    folder = tmp_path / "folder"
    model = mlp(checkpoint_dir=folder, max_epochs=3, optimizer=Dying)
    expected = state_of(mlp(max_epochs=3, optimizer=Dying).fit(X, Y))
    DEATH.steps, DEATH.end = 1, lambda: shutil.rmtree(folder)
    with pytest.warns(RuntimeWarning, match="was not written .*; the training goes on"):
        model.fit(X, Y)
    assert_same(state_of(model), expected)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_full_disk_from_the_first_to_the_last_epoch(tmp_path):
    """A limit on the size of files stands for the disk: the system refuses to write."""
    expected = mlp(max_epochs=24, patience=24).fit(X, Y).predict_cost(X)

    def run():
        import resource

        model = mlp(max_epochs=24, patience=24, checkpoint_dir=tmp_path)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))  # room for the key alone
        with pytest.warns(RuntimeWarning, match="was not written .*the training goes on") as told:
            found = model.fit(X, Y).predict_cost(X)
        assert len(told) >= 24
        np.testing.assert_array_equal(found, expected)

    assert exit_code_of(run) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.json", "fit.lock"]


def test_callbacks_are_refused(tmp_path):
    schedule = LRScheduler("StepLR", step_size=1)
    with pytest.raises(ValueError, match="callbacks=.* cannot be passed with checkpoint_dir"):
        mlp(checkpoint_dir=tmp_path, callbacks=[schedule]).fit(X, Y)


def test_a_checkpoint_holds_weights_optimizer_and_best_weights(tmp_path):
    model = mlp(checkpoint_dir=tmp_path, max_epochs=3).fit(X, Y)
    weights = sum(4 * p.numel() for p in model.net_.module_.parameters())
    assert max(tmp_path.glob("*.pt")).stat().st_size < 5 * weights + 50_000


def test_an_empty_name_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="checkpoint_dir is empty"):
        mlp(checkpoint_dir="").fit(X, Y)
    assert not list(tmp_path.iterdir())


def test_generators_have_keys(tmp_path):
    first, same, other = (
        mlp(random_state=np.random.RandomState(seed), checkpoint_dir=tmp_path / "fit")
        for seed in (0, 0, 1)
    )
    assert_same(state_of(first.fit(X, Y)), state_of(same.fit(X, Y)))
    with pytest.raises(ValueError, match="checkpoint_dir"):
        other.fit(X, Y)


# ------------------------------------------------------------------------- keys and locks


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
    return dense(8, 6, 3)


def wide():
    return dense(8, 9, 3)


def test_code_without_a_name_is_refused(tmp_path):
    class Local(CostSensitiveAuxMLP):
        pass

    with pytest.raises(
        ValueError, match="estimator=.*Local.* cannot be compared.*a module of its own"
    ):
        Local(**mlp(checkpoint_dir=tmp_path).get_params()).fit(X, Y)
    with pytest.raises(
        ValueError, match="module=.*lambda>.* cannot be compared.*a module of its own"
    ):
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
