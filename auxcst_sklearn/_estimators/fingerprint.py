"""What identifies a fit: its processes must agree on it, and its checkpoints are of no other."""

from __future__ import annotations

import sys
from contextlib import closing, suppress
from os import fspath
from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
import torch
from sklearn.utils import check_random_state

from .._checks.data import is_frame
from .._inputs.lazy_rows import LazyRows, row_blocks
from .._inputs.samples import Sample
from .._training.checkpoints import Checkpoints
from .._training.net import CostNet
from .._training.runtime import draw_seed, processes
from .._training.state import to_state

# Parameters that do not determine the result, or are treated below.
FREE = {"callbacks", "random_state", "verbose"}
NOT_IN_KEY = FREE | {"checkpoint_dir", "checkpoint_every", "distributed"}
MAY_DIFFER = FREE | {"device", "module"}  # processes start with the weights of rank 0
NAMES = {"label": "y", "weight": "sample_weight", "values": "cost", "matrices": "cost (matrices)"}


def check_same(
    estimator: Any,
    data: Sample,
    validation: Sample | None,
    rng: np.random.RandomState,
    net: CostNet | None,
) -> None:
    """Raise an error if processes received different data or parameters."""
    given = _given(estimator, data, validation, MAY_DIFFER)
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
    estimator: Any, data: Sample, validation: Sample | None
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


def _given(
    estimator: Any, data: Sample, validation: Sample | None, without: set[str]
) -> dict[str, Any]:
    """Parameters, data and validation set."""
    given = {k: v for k, v in estimator.get_params(deep=False).items() if k not in without}
    for part, suffix in ((data, ""), (validation, "_val")):
        fields = {"X": None} if part is None else {**vars(part), **vars(part.costs)}
        fields.pop("costs", None)
        given |= {NAMES.get(name, name) + suffix: value for name, value in fields.items()}
    return given


def _key(estimator: Any, data: Sample, validation: Sample | None) -> dict[str, str]:
    """Digests of all that determines the result."""
    given = _given(estimator, data, validation, NOT_IN_KEY)
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
