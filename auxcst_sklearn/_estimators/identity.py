"""What identifies a fit: its processes must agree on it, and its checkpoints are of no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.metadata import PackageNotFoundError, version
from os import fspath
from pickle import PicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state

from .._checks.warn import warn
from .._training.digests import digest
from .._training.distributed import processes
from .._training.training_set import TrainingSet

if TYPE_CHECKING:  # of a fit with checkpoints only
    from .._training.checkpoints import Checkpoints

# Parameters that do not determine the result, or are treated below.
FREE = {"callbacks", "random_state", "verbose"}
NOT_IN_KEY = FREE | {"checkpoint_dir", "checkpoint_every", "distributed"}
MAY_DIFFER = FREE | {"device", "module"}  # processes start with the weights of rank 0
NAMES = {"label": "y", "weight": "sample_weight", "rows": "cost", "matrices": "cost (matrices)"}


def check_same(
    estimator: Any, data: TrainingSet, validation: TrainingSet | None, resume: bool
) -> None:
    """Raise an error if processes received different data or parameters."""

    def key() -> dict[str, str]:
        given = _given(estimator, data, validation, MAY_DIFFER)
        given["random_state"] = estimator._random_state.get_state()
        if resume:
            net = estimator.net_
            n_epochs = len(net.history)
            has_state = net.optimizer_ is not None and len(net.optimizer_.state) > 0
            given |= {"earlier weights": net.module_, "earlier training": (n_epochs, has_state)}
        return {name: _digest_or_none(value) for name, value in given.items()}

    processes().check_same(key)


def _digest_or_none(value: Any) -> str:
    try:
        return digest(value)
    except PicklingError:  # not compared
        return ""


@contextmanager
def open_checkpoints(
    estimator: Any, data: TrainingSet, validation: TrainingSet | None, **more: Any
) -> Iterator[Checkpoints | None]:
    """The checkpoint folder of a fit on these data; `more` holds what else the fit depends on.

    Without a random state, the estimator uses the random numbers of earlier fits in the folder.
    """
    from .._training.checkpoints import Checkpoints

    if estimator.checkpoint_dir is None:
        yield None
        return
    _check_use(estimator)
    draws = any(state is None for state in more.get("random_state", [estimator.random_state]))
    seed = int(check_random_state(None).randint(np.iinfo(np.int32).max)) if draws else 0
    key = _key({**_of_fit(estimator, data, validation), **more})
    with closing(Checkpoints(estimator.checkpoint_dir, estimator.checkpoint_every, key, seed)) as c:
        if estimator.random_state is None:
            estimator._random_state = np.random.RandomState(c.seed)
        yield c
    if draws and c.had_ended:
        _warn_of_equal_fits()


def _check_use(estimator: Any) -> None:
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


def _given(
    estimator: Any, data: TrainingSet, validation: TrainingSet | None, without: set[str]
) -> dict[str, Any]:
    """Parameters, data and validation set."""
    given = {k: v for k, v in estimator._determining_params().items() if k not in without}
    for part, suffix in ((data, ""), (validation, "_val")):
        fields = {"X": None} if part is None else {**vars(part), **vars(part.costs)}
        fields.pop("costs", None)
        given |= {NAMES.get(name, name) + suffix: value for name, value in fields.items()}
    return given


def _of_fit(estimator: Any, data: TrainingSet, validation: TrainingSet | None) -> dict[str, Any]:
    given = _given(estimator, data, validation, NOT_IN_KEY)
    given |= {"estimator": type(estimator), "torch": torch.__version__}
    given["auxcst_sklearn"] = _version()
    state = estimator.random_state
    is_instance = isinstance(state, np.random.RandomState)
    given["random_state"] = state.get_state() if is_instance else state
    if estimator.warm_start and hasattr(estimator, "net_"):
        given["earlier weights"] = estimator.net_.module_
    return given


def _version() -> str:
    try:
        return version("auxcst_sklearn")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def _key(given: dict[str, Any]) -> dict[str, str]:
    key = {}
    for name, value in given.items():
        try:
            key[name] = digest(value)
        except PicklingError as error:
            raise ValueError(
                f"{name}={value!r} cannot be compared with that of another fit: {error}. With "
                "checkpoint_dir, expected a value that can be pickled; put a class or function "
                "into a module of its own."
            ) from error
    return key


def _warn_of_equal_fits() -> None:
    """Warn that a fit without a random state is a copy of an earlier one."""
    warn(
        "The folder in checkpoint_dir holds a fit on these data that had ended, and with "
        "random_state=None this fit used its random numbers: the two fits are equal. If they "
        "should differ, as in an ensemble, pass a different integer as random_state to each.",
    )
