"""Checkpoints of a fit, and what identifies a fit: its checkpoints are of no other.

Processes that train together must also agree on it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from io import BytesIO
from os import fspath
from pathlib import Path
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
import torch
from filelock import FileLock, Timeout
from sklearn.utils import check_random_state

from .._checks.calls import warn
from .._checks.data import is_frame
from .._checks.lazy_rows import LazyRows, row_blocks
from ..costs._problem import Problem
from ..modules._network import plain_attributes, set_attributes
from .net import CostNet
from .processes import processes, report
from .state import to_state
from .torch_modes import draw_seed

KEY_FILE, LOCK_FILE = "fit.json", "fit.lock"
# Replaced by a name of the fit in a folder's name, so that each candidate of a search has its own.
OF_FIT = "{fit}"
KEPT = 2

# Parameters that do not determine the result, or are treated below.
FREE = {"callbacks", "random_state", "verbose"}
NOT_IN_KEY = FREE | {"checkpoint_dir", "checkpoint_every", "distributed"}
MAY_DIFFER = FREE | {"device", "module"}  # processes start with the weights of rank 0


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically, even if the process is killed; a folder has one writer."""
    temporary = path.with_name(f".{path.name}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


class Checkpoints:
    """The folder of one fit, with the state after some epochs; the last two files are kept.

    `key` has a digest for each part of the data and each parameter that determines the result. A
    folder of another fit raises an error, as does one in use by another process or thread: the
    folder is locked until `close`, or the end of the process. `seed` is the seed of the fit that
    wrote the checkpoints.
    """

    def __init__(
        self, folder: str | os.PathLike[str], every: int, key: Mapping[str, str], seed: int
    ):
        name = os.fspath(folder)
        self.folder = Path(name.replace(OF_FIT, joblib.hash(sorted(key.items()))))
        self.every = every
        self._lock = FileLock(self.folder / LOCK_FILE)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._lock.acquire(timeout=0)
            self.seed = self._open(name, key, seed)
            self.state = self._load()
        except Timeout as error:
            raise ValueError(
                f"checkpoint_dir={name!r} is in use: another fit, in this process or another one, "
                f"writes its checkpoints to {self.folder} now; expected a folder for each. Wait "
                "for its end, or name another folder; equal members of an ensemble need a "
                "random_state each."
            ) from error
        except BaseException:
            self.close()
            raise
        self.n_saved = self.n_finished

    def _open(self, name: str, key: Mapping[str, str], seed: int) -> int:
        path = self.folder / KEY_FILE
        if not path.exists():
            write_whole(path, json.dumps({"seed": seed, "key": dict(key)}, indent=1).encode())
            return seed
        # {"seed": 7, "key": {"X": "3f2a...", "alpha": "9c01...", ...}}
        stored = json.loads(path.read_bytes())
        others, seed = dict(stored["key"]), int(stored["seed"])
        differing = sorted(k for k in {*others, *key} if others.get(k) != key.get(k))
        if differing:
            raise ValueError(
                f"checkpoint_dir={name!r} contains checkpoints of another fit, which differs in "
                f"{', '.join(differing)}; expected the same data and parameters. Name another "
                f"folder, or delete this one. In a search write {OF_FIT!r} in the name: it stands "
                "for each fit, which then has a folder of its own."
            )
        return seed

    def close(self) -> None:
        """Release the folder for other fits."""
        self._lock.release()

    @property
    def n_finished(self) -> int:
        """Number of epochs that need not be trained again."""
        return 0 if self.state is None else self.state["epoch"]

    def restore(self, training: Any, n_epochs: int) -> int:
        """Restore the state of a training; return the number of epochs that are left."""
        if self.state is None:
            return n_epochs
        set_state(training, self.state)
        report(f"Epochs 1 to {self.n_finished} were read from {self.folder}.", training.net.verbose)
        return 0 if self.state["stopped"] else n_epochs - self.n_finished

    def save_epoch(self, training: Any, *, is_last: bool = False) -> None:
        """Save the state after an epoch, if it is time."""
        # The history of a warm start begins with the epochs of earlier fits.
        epoch = len(training.net.history) - training.n_before
        if epoch > self.n_saved and (is_last or epoch % self.every == 0):
            self.save({"epoch": epoch, **get_state(training)})
            self.n_saved = epoch

    # ------------------------------------------------------------------ files

    def _paths(self) -> list[Path]:
        """Files of finished epochs, last ones first."""
        return sorted(self.folder.glob("epoch-*.pt"), reverse=True)

    def _load(self) -> dict[str, Any] | None:
        """The state after the last epoch with a file; None without one."""
        if not (paths := self._paths()):
            return None
        # A device that this machine lacks is replaced by the CPU.
        place = None if torch.cuda.is_available() else "cpu"
        try:
            return torch.load(paths[0], map_location=place, weights_only=True)
        except Exception as error:  # torch raises errors of many classes
            raise ValueError(
                f"The checkpoint {paths[0]} cannot be read. Continue on a machine like the one "
                "that wrote it. If it is damaged, delete it, and the one before it is used; or "
                f"name another folder. torch says: {error}"
            ) from error

    def save(self, state: Mapping[str, Any]) -> None:
        """Write a state; a full disk only gives a warning."""
        buffer = BytesIO()
        torch.save(_without_numpy(dict(state)), buffer)
        path = self.folder / f"epoch-{state['epoch']:08d}.pt"
        try:
            write_whole(path, buffer.getvalue())
            for old in self._paths()[KEPT:]:
                old.unlink(missing_ok=True)
        except OSError as error:
            warn(
                f"The checkpoint {path} was not written ({error}); the training goes on, and "
                "earlier checkpoints stay.",
                RuntimeWarning,
            )


def _without_numpy(value: Any) -> Any:
    """A state with tensors and Python's numbers, because files without code contain no others."""
    if isinstance(value, dict):
        return {key: _without_numpy(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_without_numpy, value))
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value)
    return value.item() if isinstance(value, np.generic) else value


def get_state(training: Any) -> dict[str, Any]:
    """The state to resume from, as tensors and plain values."""
    net, stop, average = training.net, training.stop, training.average
    return {
        "weights": net.module_.state_dict(),
        "buffers": dict(net.module_.named_buffers()),
        "attributes": plain_attributes(net.module_),
        "optimizer": net.optimizer_.state_dict(),
        "generators": [g.get_state() for g in (*net.generators, net.device_generator)],
        "history": list(net.history[training.n_before :]),
        "average": average and {"weights": average.average, "step": average.step},
        "stop": stop
        and {
            # `stop.best` has the tensors of each network; a file has those of all in one tensor.
            "best": [torch.stack(tensors) for tensors in zip(*stop.best)],
            "attributes": stop.attributes,
            **{name: getattr(stop, name) for name in stop.counts},
        },
        "stopped": stop is not None and not stop.running,
    }


@torch.no_grad()
def set_state(training: Any, state: dict[str, Any]) -> None:
    """Restore a state, when weights, optimizer and average of the training exist."""
    net, stop = training.net, training.stop
    net.module_.load_state_dict(state["weights"])
    for name, values in state["buffers"].items():  # load_state_dict leaves some out
        path, _, last = name.rpartition(".")
        if name not in state["weights"]:
            setattr(net.module_.get_submodule(path), last, values)
    set_attributes(net.module_, state["attributes"])
    net.optimizer_.load_state_dict(state["optimizer"])
    generators = (*net.generators, net.device_generator)
    for generator, of_state in zip(generators, state["generators"], strict=True):
        generator.set_state(of_state)
    net.history.extend(state["history"])
    if training.average is not None:
        training.average.take_up(state["average"]["weights"], state["average"]["step"])
    if stop is not None:
        stop.best = [*map(list, zip(*state["stop"]["best"]))]
        stop.attributes = state["stop"]["attributes"]
        for name in stop.counts:
            value = state["stop"][name]
            setattr(stop, name, value.numpy() if isinstance(value, torch.Tensor) else value)


# --------------------------------------------------------------------- what identifies a fit


def check_same(
    estimator: Any,
    data: Problem,
    validation: Problem | None,
    rng: np.random.RandomState,
    net: CostNet | None,
) -> None:
    """Raise an error if processes received different data or parameters."""
    # All that the ranks must have in common, by name, so that the error can say what differs.
    given = _given_to(estimator, data, validation, MAY_DIFFER)
    given["random_state"] = rng.get_state()
    if net is not None:
        n_epochs = len(net.history)
        has_state = net.optimizer_ is not None and len(net.optimizer_.state) > 0
        given |= {"earlier weights": net.module_, "earlier training": (n_epochs, has_state)}
    digests = dict.fromkeys(given, "")
    for name, value in given.items():
        with suppress(PicklingError):  # which is not compared
            digests[name] = digest(value)
    processes().check_same(digests)


def open_checkpoints(
    estimator: Any, data: Problem, validation: Problem | None
) -> closing[Checkpoints]:
    """The checkpoint folder of a fit on these data, as a context.

    Without a random state, it takes the seed of earlier fits in the folder.
    """
    if not fspath(estimator.checkpoint_dir):
        raise ValueError("checkpoint_dir is empty; expected the name of a folder, or None.")
    if processes().size > 1:
        raise ValueError(
            f"checkpoint_dir={estimator.checkpoint_dir!r} cannot be set in a training by several "
            "processes, whose random numbers differ; expected None. Save weights by a callback "
            "of skorch on rank 0, or train by one process (distributed=False)."
        )
    if estimator.callbacks:
        raise ValueError(
            f"callbacks={estimator.callbacks!r} cannot be passed with checkpoint_dir, because a "
            "checkpoint does not hold their state. Leave one of the two out."
        )
    seed = draw_seed(check_random_state(None)) if estimator.random_state is None else 0
    key = _key(estimator, data, validation)
    return closing(Checkpoints(estimator.checkpoint_dir, estimator.checkpoint_every, key, seed))


def _given_to(
    estimator: Any, data: Problem, validation: Problem | None, without: set[str]
) -> dict[str, Any]:
    """Parameters, data and validation set; the costs instead of a function that computes them."""
    given = {k: v for k, v in estimator.get_params(deep=False).items() if k not in without}
    # Two lambdas with one code are not equal, but the costs that they return are.
    if callable(given["cost_matrix"]):
        del given["cost_matrix"]
    for part, suffix in ((data, ""), (validation, "_val")):
        fields = {"X": None} if part is None else part.by_name()
        given |= {name + suffix: value for name, value in fields.items()}
    return given


def _key(estimator: Any, data: Problem, validation: Problem | None) -> dict[str, str]:
    """Digests of all that determines the result."""
    given = _given_to(estimator, data, validation, NOT_IN_KEY)
    given |= {"estimator": type(estimator), "torch": torch.__version__}
    given["auxcst_sklearn"] = sys.modules["auxcst_sklearn"].__version__
    state = estimator.random_state
    is_instance = isinstance(state, np.random.RandomState)
    given["random_state"] = state.get_state() if is_instance else state
    if estimator.warm_start and hasattr(estimator, "net_"):
        given["earlier weights"] = estimator.net_.module_
    key = {}
    for name, value in given.items():
        try:
            key[name] = digest(value)
        except PicklingError as error:
            raise ValueError(
                f"{name}={value!r} cannot be compared with another fit: {error}. With "
                "checkpoint_dir, expected a value that can be pickled; put a class or function "
                "into a module of its own."
            ) from error
    return key


# -------------------------------------------------------------------------------- digests


def digest(value: Any) -> str:
    """The same for equal values in any process; classes and functions count by their names.

    A value that cannot be pickled, or is not defined at the top of a module, raises a
    PicklingError.
    """
    if is_frame(value):
        index = [str(label) for label in value.index] if hasattr(value, "index") else None
        value = [str(c) for c in value.columns], np.asarray(value).tolist(), index
    elif isinstance(value, LazyRows):
        value = [digest(value[rows]) for rows in row_blocks(value)]
    elif isinstance(value, list | tuple | np.ndarray | np.generic):
        names = [getattr(value, name, None) for name in ("classes", "decisions")]  # of costs
        with suppress(ValueError):  # of unequal lengths: they stay as they are, as do objects
            array = np.asarray(value)
            if array.dtype.kind != "O":
                value = np.ascontiguousarray(array) if array.ndim else array.item()
        value = [value, *map(digest, names)] if any(n is not None for n in names) else value
    try:  # not of the value itself, because pickles of equal tensors differ
        of_state: str = joblib.hash(to_state(value), hash_name="sha1")
    except PicklingError as error:  # joblib adds a description of the whole value
        raise PicklingError(str(error.args[0])) from error
    except (AttributeError, TypeError) as error:
        raise PicklingError(str(error)) from error
    return of_state
