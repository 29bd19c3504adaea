"""Digests of the arguments that must be equal in all processes of one fit."""

from __future__ import annotations

from pickle import PicklingError
from typing import Any

import joblib
import numpy as np
from sklearn.base import BaseEstimator

from .._training.distributed import processes
from .._training.state import to_state
from .._training.training_set import TrainingSet

# Number of rows of X and costs that are compared; labels are compared in full.
N_COMPARED = 1000

# Parameters that may differ; weights of a module are those of rank 0.
OWN = {"callbacks", "device", "module", "random_state", "verbose"}


def check_same(
    estimator: BaseEstimator, data: TrainingSet, validation: TrainingSet | None, resume: bool
) -> None:
    """Raise an error if processes received different data or parameters."""

    def digests() -> dict[str, str]:
        given: dict[str, Any] = estimator.get_params(deep=False)
        given = {name: value for name, value in given.items() if name not in OWN}
        given["random_state"] = estimator._random_state.get_state()
        given["earlier weights"] = earlier(estimator) if resume else None
        given |= fields(data, "") | ({} if validation is None else fields(validation, "_val"))
        return {name: digest(value) for name, value in given.items()}

    processes().check_same(digests)


def fields(data: TrainingSet, suffix: str) -> dict[str, Any]:
    """Shapes, all labels, and some rows of each array of a training set."""
    n = len(data.label)
    index = np.unique(np.linspace(0, n - 1, min(n, N_COMPARED)).astype(int))
    part = data.part(index)
    return {
        f"X{suffix}": (data.X.shape, part.X[:]),
        f"y{suffix}": data.label,
        f"cost{suffix}": (data.cost.shape, part.cost, part.matrices),
        f"sample_weight{suffix}": data.weight,
        f"groups{suffix}": data.groups,
    }


def earlier(estimator: BaseEstimator) -> list[Any]:
    """Weights and length of the continued training, and whether its optimizer has a state."""
    net = estimator.net_
    has_state = net.optimizer_ is not None and len(net.optimizer_.state) > 0
    weights = [value.numpy(force=True) for value in net.module_.state_dict().values()]
    return [weights, len(net.history), has_state]


def digest(value: Any) -> str:
    """Digest of a value; what cannot be pickled is not compared."""
    try:
        of_state: str = joblib.hash(to_state(value))
        return of_state
    except (PicklingError, AttributeError, TypeError):
        return ""
