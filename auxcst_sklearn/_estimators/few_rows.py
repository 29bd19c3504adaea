"""A fast path for predictions on few rows of plain numbers.

scikit-learn's validation of one row takes longer than the network. Here one look suffices, and the
module computes the same shapes as elsewhere, which gives the same bits. Other input returns None,
and takes the general path.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from .._training.runtime import FEWEST_MULTIPLICATIONS, thread_limit
from ..modules._aux_mlp import AuxMLP
from ..modules._cost_network import ClassAndCostNetwork
from ..modules._stacked import StackedMLP

MOST_ROWS = 16
# Fewer rows are padded; see `MIN_PRODUCT_ROWS` of the net, which takes a second to import.
FEWEST_ROWS = 4

_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


def predict_few(
    model: Any, X: Any, kind: Literal["to_cost", "probabilities"]
) -> NDArray[np.float64] | None:
    """Costs in units, or probabilities, of few rows; None if they take the general path."""
    net = vars(model).get("net_")
    X = None if net is None or not _is_quick(net) else _plain(model, X)
    if X is None:
        return None
    n, scaling = len(X), model._inputs.row_scaling
    rows = np.zeros((max(n, FEWEST_ROWS), X.shape[1]), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # detected below
        rows[:n] = scaling[0].scaled(X) if scaling and scaling[0].moves else X
    if not np.isfinite(rows).all():
        return None
    alone = nullcontext() if torch.get_num_threads() == 1 else thread_limit(0)
    with torch.inference_mode(), alone:
        output = net.module_(net.to_sets(torch.from_numpy(rows)))
        estimate = net.mean_of_networks(getattr(net, kind)(output))
        costs: NDArray[np.float64] = estimate[:n].numpy().astype(np.float64)
        return costs


def _is_quick(net: Any) -> bool:
    """Whether a net is a small perceptron in float32 on the CPU, in evaluation mode."""
    module = net.module_
    return (
        type(module) in (AuxMLP, StackedMLP, ClassAndCostNetwork)
        and not (module.training or getattr(module, "bf16", False))
        and net.multiplications_per_row * MOST_ROWS < FEWEST_MULTIPLICATIONS
        and net.device == "cpu"
        and not torch.is_autocast_enabled("cpu")
    )


def _plain(model: Any, X: Any) -> NDArray[Any] | None:
    """X as an array, if it is one of finite numbers, or a DataFrame of them with known names."""
    if model._inputs.categories:
        return None
    attributes = vars(model)
    names = attributes.get("feature_names_in_")
    values = X if names is None else _named_values(X, names)
    plain = (
        type(values) is np.ndarray
        and values.ndim == 2
        and 0 < len(values) <= MOST_ROWS
        and values.shape[1] == attributes.get("n_features_in_")
        and values.dtype in _FLOATS
        and values.flags.c_contiguous
    )
    return values if plain else None


def _named_values(X: Any, names: NDArray[Any]) -> NDArray[Any] | None:
    """The values of a few rows of a pandas DataFrame with these columns."""
    is_pandas = type(X).__module__.partition(".")[0] == "pandas" and X.ndim == 2
    if not is_pandas or len(X) > MOST_ROWS or list(X.columns) != list(names):
        return None
    return np.ascontiguousarray(X.to_numpy())
