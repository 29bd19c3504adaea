"""Arrays by name, of which each has a row per example, as a tokenizer returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import _safe_indexing, check_consistent_length
from sklearn.utils.validation import _num_samples

from .data import are_named, check_in_memory, check_no_mask, check_row_order


class RowsByName(dict[str, Any]):
    """Arrays by name whose rows scikit-learn can count and select, in the type of each."""

    def __len__(self) -> int:
        return int(_num_samples(next(iter(self.values()), [])))

    @property
    def shape(self) -> tuple[int]:
        """The number of rows, by which scikit-learn takes this for an array."""
        return (len(self),)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, str):
            return super().__getitem__(at)
        rows = at[0] if isinstance(at, tuple) else at  # scikit-learn asks for X[rows, ...]
        return RowsByName({name: _safe_indexing(part, rows) for name, part in self.items()})


def sliceable(X: Any) -> Any:
    """Arrays by name whose rows scikit-learn can count and select; all else as it is."""
    if not are_named(X) or hasattr(X, "shape"):
        return X
    check_consistent_length(*X.values())
    return RowsByName({str(name): part for name, part in X.items()})


def named_arrays(X: Mapping[Any, Any]) -> dict[str, NDArray[Any]]:
    """Arrays of numbers by their names, with as many rows, and in one order of their indexes."""
    check_row_order(X=X)
    arrays = {str(name): _array(values, f"X[{str(name)!r}]") for name, values in X.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if not lengths or not all(lengths.values()):
        raise ValueError(
            f"X holds arrays with the numbers of rows {lengths}; expected at least one array, and "
            "one row."
        )
    first, n_rows = next(iter(lengths.items()))
    for name, n in lengths.items():
        if n != n_rows:
            raise ValueError(
                f"X[{name!r}] has {n} rows, but X[{first!r}] has {n_rows}; expected a row per "
                "example in each array."
            )
    return arrays


def _array(values: Any, name: str) -> NDArray[Any]:
    """Numbers in the type of the caller; of objects, in the type that holds them exactly."""
    check_in_memory(values, name)
    check_no_mask(values, name)
    if hasattr(values, "detach"):  # a tensor; numpy has no bfloat16
        array = (values.float() if "bfloat16" in str(values.dtype) else values).numpy(force=True)
    else:
        try:
            array = np.asarray(values)
            plain = np.array(array.tolist()) if array.dtype.kind == "O" else array
            array = plain if plain.dtype.kind in "biuf" else array
        except ValueError:  # lists of several lengths
            array = np.empty(0, dtype=object)
    if array.dtype.kind not in "biuf" or array.ndim == 0 or 0 in array.shape[1:]:
        shown = "lists of several lengths, or objects" if array.dtype.kind == "O" else array.dtype
        if sparse.issparse(values):
            shown = "sparse rows"
        elif 0 in array.shape[1:]:
            shown = f"rows of shape {array.shape[1:]}"
        raise ValueError(
            f"{name} holds {shown}; expected a dense array of numbers with a row per example. A "
            "tokenizer makes rows of one length with padding=True."
        )
    if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
        raise ValueError(
            f"{name} holds {array.max()}, but modules get int64; expected integers below 2**63, "
            "such as the remainders of hashes."
        )
    return array
