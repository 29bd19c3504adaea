"""X as a mapping: arrays that a module takes by name, such as the output of a tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite, check_consistent_length
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from .._checks.bases import BaseEstimator
from .._checks.calls import error_context
from .._checks.data import check_no_mask, check_row_order, is_frame, on_host
from .._checks.lazy_rows import check_resolution, check_row_labels
from ..modules._named_rows import MASK, Layout, NamedRows
from .arrays import Preprocessor
from .scaling import as_float32

# Rows among which some of different lengths are looked for, and how many are tried.
SAMPLED, N_TRIED, FEWEST_TRIED = 10_000, 8, 3


class Columns(BaseEstimator):
    """The columns of a DataFrame, as scikit-learn's validation notes and compares them."""


class NamedPreprocessor(Preprocessor):
    """Arrays by name, each with a row per example, as rows of words."""

    columns: dict[str, Columns]  # of the DataFrames in the training
    layout: Layout
    n_words: int  # of a row in the training

    def validate(self, estimator: Any, X: Any, *y: Any, reset: bool) -> Any:
        if not isinstance(X, Mapping):
            raise ValueError(
                f"X is a {type(X).__name__}, but {type(estimator).__name__} was fitted on the "
                f"arrays {[*self.layout.names]}; expected a mapping of these. For texts, put the "
                "tokenizer in front, in a Pipeline."
            )
        if reset:
            self.columns = {str(name): Columns() for name, part in X.items() if is_frame(part)}
        for name, columns in self.columns.items():
            if name in X:
                with error_context(f"In X[{name!r}]"):
                    validate_data(columns, X[name], reset=reset, skip_check_array=True)
        arrays = as_arrays(X, new=reset)
        if reset:
            self.layout, self.name = Layout.of(arrays), type(estimator).__name__
            for name in ("n_features_in_", "feature_names_in_"):  # of a fit on an array
                vars(estimator).pop(name, None)
        else:
            arrays = self.check(arrays)
        rows = self.layout.pack(arrays)
        self.n_words = rows.shape[1] if reset else self.n_words
        return (rows, check_row_labels(rows, *y)) if y else rows

    def check(self, X: Mapping[str, Any]) -> dict[str, Any]:
        """Arrays or tensors in the types of the training; an error for other names or shapes."""
        layout, mask = self.layout, X.get(MASK)
        length = None if mask is None or mask.ndim < 2 else mask.shape[1]
        if set(X) != set(layout.names):
            raise ValueError(
                f"X contains the arrays {[*X]}, but {self.name} was fitted on {[*layout.names]}; "
                "expected the same."
            )
        arrays, n = {}, len(X[layout.names[0]])
        for key, dtype, shape in zip(layout.names, layout.dtypes, layout.shapes):
            arrays[key] = found = _as_type(X[key], dtype)
            expected = (n, *(length if size is None else size for size in shape))
            if tuple(found.shape) != expected or not str(found.dtype).endswith(dtype):
                raise ValueError(
                    f"X[{key!r}] contains {found.dtype} of shape {tuple(found.shape[1:])} for each "
                    f"of {len(found)} examples, but {self.name} was fitted on {dtype} of shape "
                    f"{shape}, where None is the length that all sequences of X share; expected "
                    "the same, for as many examples in all arrays."
                )
        return arrays

    def rows_to_try(self, rows: Any) -> Any:
        """Rows of several lengths, on which a module shows how it reads its mask."""
        rows = rows[:SAMPLED]
        lengths = self.layout.lengths(rows) if self.layout.masks else None
        if lengths is None or len(set(lengths.tolist())) == 1:
            return rows[: N_TRIED if lengths is None else FEWEST_TRIED]
        _, first = np.unique(lengths, return_index=True)
        chosen = first[np.linspace(0, len(first) - 1, min(len(first), N_TRIED)).astype(int)]
        return rows[np.resize(chosen, max(len(chosen), FEWEST_TRIED))]

    def make_module(self) -> NamedRows:
        return NamedRows(self.layout)

    def as_read_by(self, module: nn.Module) -> NamedPreprocessor:
        (first, *_) = [layer for layer in module.modules() if isinstance(layer, NamedRows)]
        inputs = copy(self)
        inputs.layout = first.layout  # in which fewer axes may be positions
        return inputs

    @property
    def size_of_sample(self) -> tuple[str, int]:
        length = self.layout.length(self.n_words)
        return ("steps", length) if length else ("words", self.n_words)


def _as_type(array: Any, dtype: str) -> Any:
    """An array or tensor in a type that loses nothing, such as whole numbers as floats."""
    if isinstance(array, Tensor):
        wanted = getattr(torch, dtype)
        return array.to(wanted) if torch.can_cast(array.dtype, wanted) else array
    return (
        array.astype(dtype, copy=False) if np.can_cast(array.dtype, dtype, "same_kind") else array
    )


def as_arrays(X: Mapping[Any, Any], *, new: bool = False) -> dict[str, NDArray[Any]]:
    """Arrays of int64, float32 and bool by their names, with as many rows; `new` in a fit."""
    check_row_order(X=X)
    arrays = {str(name): _array(values, f"X[{str(name)!r}]") for name, values in X.items()}
    if not arrays or not all(map(len, arrays.values())):
        raise ValueError(
            f"X contains the arrays {[*arrays]}; expected at least one, each with a row or more."
        )
    check_consistent_length(*arrays.values())
    return {name: _convert(array, name, new) for name, array in arrays.items()}


def _convert(array: NDArray[Any], name: str, new: bool) -> NDArray[Any]:
    """Integers as int64, and floats as float32."""
    if array.dtype.kind != "f":
        return array if array.dtype == bool else array.astype(np.int64)
    if new:
        check_resolution(array, f"X[{name!r}]")
    assert_all_finite(array, input_name=f"X[{name!r}]")
    floats: NDArray[Any] = as_float32(array)
    return floats


def _array(values: Any, name: str) -> NDArray[Any]:
    """Numbers in the type of the caller; of objects, in the type that contains them exactly."""
    check_no_mask(values, name)
    array = np.asarray(on_host(values))
    plain = np.array(array.tolist()) if array.dtype.kind == "O" else array
    array = plain if plain.dtype.kind in "biuf" else array
    if array.dtype.kind not in "biuf" or array.ndim == 0 or 0 in array.shape[1:]:
        raise ValueError(
            f"{name} is read as {array.dtype} of shape {array.shape}; expected a dense array of "
            "numbers with a row per example. A tokenizer makes rows of one length with "
            "padding=True."
        )
    if array.dtype == np.uint64 and (array > np.iinfo(np.int64).max).any():
        raise ValueError(
            f"{name} contains {array.max()}, but modules get int64; expected integers below 2**63, "
            "such as the remainders of hashes."
        )
    return array
