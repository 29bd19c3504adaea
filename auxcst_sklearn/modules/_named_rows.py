"""Arrays by name, such as those of a tokenizer: one row of 32-bit words for each example."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MASK = "attention_mask"

# Words of an integer (int64) and of a float (float32).
_WORDS = {"int64": 2, "float32": 1}


@dataclass(frozen=True)
class Layout:
    """Names, types and shapes of the arrays in a row of words.

    The first dimension of the shape of a sequence is None: the length, which all sequences share,
    and which may differ between calls. It follows from the number of words.
    """

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int | None, ...], ...]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Layout:
        """The layout of arrays with a row per example.

        Sequences have the length of the attention mask, or else of the first integers: integers
        are, and where these are the mask alone, as of sound, all arrays.
        """
        integers = {k: a for k, a in arrays.items() if a.dtype == np.int64 and a.ndim > 1}
        like = arrays.get(MASK, next(iter(integers.values()), None))
        length = None if like is None or like.ndim < 2 else like.shape[1]
        among = arrays if [*integers] == [MASK] else integers
        named = {k for k, a in among.items() if a.ndim > 1 and a.shape[1] == length}
        shapes = [(None, *a.shape[2:]) if k in named else a.shape[1:] for k, a in arrays.items()]
        return cls(tuple(arrays), tuple(a.dtype.name for a in arrays.values()), tuple(shapes))

    def length(self, n_words: int) -> int:
        """The length of the sequences in rows of some number of words; 0 if there are none."""
        fixed, each = self._sizes
        return (n_words - fixed) // each if each else 0

    @property
    def _sizes(self) -> tuple[int, int]:
        """Words of all arrays that are no sequences, and of one step of all sequences."""
        sizes = [0, 0]
        for dtype, shape in zip(self.dtypes, self.shapes):
            is_sequence = None in shape
            sizes[is_sequence] += _WORDS[dtype] * prod(n for n in shape if n is not None)
        return sizes[0], sizes[1]

    def pack(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """Rows of words (n_samples, n_words)."""
        parts = [arrays[name].reshape(len(arrays[name]), -1) for name in self.names]
        return np.hstack([np.ascontiguousarray(part).view(np.int32) for part in parts])

    def unpack(self, x: Tensor, only: str | None = None) -> dict[str, Tensor]:
        """The arrays, or one, as copies, from rows of words."""
        length, start, arrays = self.length(x.shape[1]), 0, dict[str, Tensor]()
        for name, dtype, shape in zip(self.names, self.dtypes, self.shapes):
            sizes = [length if n is None else n for n in shape]
            end = start + _WORDS[dtype] * prod(sizes)
            if only is None or name == only:
                words = x[:, start:end].clone(memory_format=torch.contiguous_format)
                arrays[name] = words.view(getattr(torch, dtype)).view(len(x), *sizes)
            start = end
        return arrays


class NamedRows(nn.Module):
    """First layer of a network that takes arrays by name: it unpacks rows.

    With an attention mask, a batch `is_cut` to its longest row: padding costs time, and changes no
    result of a module that reads the mask. The only module for which `is_cut` is False is one whose
    output depends on the padding.
    """

    is_cut: bool

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout
        self.is_cut = MASK in layout.names and None in dict(zip(layout.names, layout.shapes))[MASK]

    def forward(self, x: Tensor | dict[str, Tensor]) -> dict[str, Tensor]:
        """The arrays of rows of words; the inputs of a file are such arrays already."""
        if isinstance(x, dict):
            return x
        arrays = self.layout.unpack(x)
        if not self.is_cut:
            return arrays
        length = int(_lengths(arrays[MASK]).max())
        shapes = zip(self.layout.names, self.layout.shapes)
        return {k: arrays[k][:, :length] if None in shape else arrays[k] for k, shape in shapes}

    def lengths(self, X: Any) -> Tensor | None:
        """The length of each row of words; None if batches are not cut."""
        return (
            _lengths(self.layout.unpack(torch.as_tensor(X[:]), MASK)[MASK]) if self.is_cut else None
        )


def _lengths(mask: Tensor) -> Tensor:
    """Position of the last 1 in each row of a mask, counted from 1; at least 1."""
    position = torch.arange(1, mask.shape[1] + 1, device=mask.device)
    return (position * (mask != 0)).amax(dim=1).clamp(min=1)
