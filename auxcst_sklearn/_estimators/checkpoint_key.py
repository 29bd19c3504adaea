"""Digests of everything that the result of a fit depends on: the key of its checkpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from os import fspath
from pickle import PicklingError
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import joblib
import numpy as np
import torch
from joblib.hashing import NumpyHasher
from sklearn.utils import check_random_state

from .._checks.frames import is_frame
from .._checks.warn import warn
from .._inputs.float32 import row_blocks
from .._inputs.lazy import LazyRows
from .._training.code import code_of
from .._training.distributed import processes
from .._training.state import to_state
from .._training.training_set import TrainingSet

if TYPE_CHECKING:
    from .._training.checkpoints import Checkpoints

NOT_IN_KEY = {"checkpoint_dir", "checkpoint_every", "verbose", "callbacks", "random_state"}
NOT_IN_KEY |= {"distributed"}  # only a single process has checkpoints
NAMES = {"label": "y", "weight": "sample_weight", "matrices": "cost (matrices)"}


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
    if not fspath(estimator.checkpoint_dir):
        raise ValueError("checkpoint_dir is empty; expected the name of a folder, or None.")
    if processes().size > 1:
        raise ValueError(
            f"checkpoint_dir={estimator.checkpoint_dir!r} cannot be set in a training by several "
            "processes, whose random numbers differ; expected None. Save weights by a callback "
            "of skorch on rank 0, or train by one process (distributed=False)."
        )
    draws = any(state is None for state in more.get("random_state", [estimator.random_state]))
    seed = int(check_random_state(None).randint(np.iinfo(np.int32).max)) if draws else 0
    key = _key(estimator, data, validation, more)
    with closing(Checkpoints(estimator.checkpoint_dir, estimator.checkpoint_every, key, seed)) as c:
        if estimator.random_state is None:
            estimator._random_state = np.random.RandomState(c.seed)
        yield c
    if draws and c.had_ended:
        _warn_of_equal_fits()


def _key(
    estimator: Any, data: TrainingSet, validation: TrainingSet | None, more: dict[str, Any]
) -> dict[str, str]:
    if estimator.callbacks:
        raise ValueError(
            f"callbacks={estimator.callbacks!r} cannot be passed with checkpoint_dir, because a "
            "checkpoint does not hold their state. Leave one of the two out."
        )
    given = {k: v for k, v in estimator._determining_params().items() if k not in NOT_IN_KEY}
    given["estimator"] = type(estimator)
    given |= {f"code of {k}": joblib.hash(code) for k, v in given.items() if (code := code_of(v))}
    given |= {"estimator": type(estimator).__name__, "torch": torch.__version__}
    given["auxcst_sklearn"] = _version()
    given["random_state"] = _state(estimator.random_state)
    if estimator.warm_start and hasattr(estimator, "net_"):
        given["earlier weights"] = estimator.net_.module_
    given |= _fields(data, "") | _fields(validation, "_val") | more
    return {name: _digest(name, value) for name, value in given.items()}


def _warn_of_equal_fits() -> None:
    """Warn that a fit without a random state is a copy of an earlier one."""
    warn(
        "The folder in checkpoint_dir holds a fit on these data that had ended, and with "
        "random_state=None this fit used its random numbers: the two fits are equal. If they "
        "should differ, as in an ensemble, pass a different integer as random_state to each.",
    )


def _version() -> str:
    try:
        return version("auxcst_sklearn")
    except PackageNotFoundError:  # a checkout that is not installed
        return "unknown"


def _state(random_state: Any) -> Any:
    if isinstance(random_state, np.random.RandomState):
        return random_state.get_state()
    return random_state


def _fields(data: TrainingSet | None, suffix: str) -> dict[str, Any]:
    if data is None:
        return {f"X{suffix}": None}
    return {NAMES.get(name, name) + suffix: value for name, value in vars(data).items()}


def _index(frame: Any) -> list[str] | None:
    return [str(label) for label in frame.index] if hasattr(frame, "index") else None


class _KeyHasher(NumpyHasher):
    """joblib's hasher, but with classes and functions by name, including those of a script.

    In a worker of a search their module cannot be imported; `code_of` covers differences.
    """

    dispatch = NumpyHasher.dispatch.copy()

    def save_global(self, obj: Any, name: str | None = None, **kwargs: Any) -> None:
        name = name or obj.__qualname__
        if "<" in name:  # a lambda or local function: its closure has no name
            raise PicklingError(f"{name} has no name of its own")
        self.save(f"{getattr(obj, '__module__', None)}.{name}")

    dispatch.update(dict.fromkeys((type, FunctionType, BuiltinFunctionType), save_global))


def _digest(name: str, value: Any) -> str:
    if is_frame(value):
        value = [str(c) for c in value.columns], np.asarray(value).tolist(), _index(value)
    elif isinstance(value, list | tuple | np.ndarray | np.generic):  # equal values, equal digests
        with suppress(ValueError):  # of unequal lengths: they stay as they are
            value = np.ascontiguousarray(value) if np.ndim(value) else np.asarray(value).item()
    elif isinstance(value, LazyRows):
        value = [joblib.hash(value[rows]) for rows in row_blocks(value)]
    try:  # not of the value itself, because pickles of equal tensors differ
        digest: str = _KeyHasher("md5").hash(to_state(value))
        return digest
    except (PicklingError, AttributeError, TypeError) as error:
        raise ValueError(
            f"{name}={value!r} cannot be told from others ({error}), so that checkpoint_dir has no "
            "use; expected a value that can be pickled, such as a function with a name."
        ) from error
