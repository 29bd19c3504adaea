"""Arrays by name, such as a tokenizer's output: one row of 32-bit words for each example."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import count
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

MASK = "attention_mask"

# Rows of which one token is left, on which a module shows how it reads padding.
N_SHORT = 3

# A GPU cuts batches to multiples of this length, because it prepares its kernels for each new
# length. On a CPU, which does not, the longer padding would take a few percent of the time.
MULTIPLE = 8

# Words of an integer, a float and a flag.
_WORDS = {"int64": 2, "float32": 1, "bool": 1}


def cut_length(longest: int, device: str) -> int:
    """The length that a batch with this longest sequence is cut to on a type of devices."""
    multiple = MULTIPLE if device == "cuda" else 1
    return -(-longest // multiple) * multiple


@dataclass(frozen=True)
class Layout:
    """Names, types and shapes of the arrays in a row of words.

    Sizes of None in the shapes are the length, which all sequences share, and which may differ
    between calls. It follows from the number of words.
    """

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    shapes: tuple[tuple[int | None, ...], ...]

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> Layout:
        """The layout of arrays with a row per example.

        With an attention mask (n_samples, length), all axes of this length may be positions.
        """
        mask, length = arrays.get(MASK), None
        if mask is not None and mask.ndim == 2 and mask.dtype.kind in "ib":
            length = mask.shape[1]
        names = sorted(arrays)  # whatever the order of the caller
        shapes = [tuple(n if n != length else None for n in arrays[k].shape[1:]) for k in names]
        return cls(tuple(names), tuple(arrays[k].dtype.name for k in names), tuple(shapes))

    def of_first_axes(self, length: int) -> Layout:
        """A layout in which only the first axis of an array may be positions."""
        shapes = [(*s[:1], *(length if n is None else n for n in s[1:])) for s in self.shapes]
        return replace(self, shapes=tuple(shapes))

    @lru_cache  # noqa: B019  # a layout is a small value
    def length(self, n_words: int) -> int:
        """The length of the sequences in rows of some number of words; 0 if there are none."""
        if not any(None in shape for shape in self.shapes):
            return 0
        parts = [
            (_WORDS[dtype] * prod(n for n in shape if n is not None), shape.count(None))
            for dtype, shape in zip(self.dtypes, self.shapes)
        ]
        return next(n for n in count(1) if sum(w * n**power for w, power in parts) >= n_words)

    def pack(self, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.int32]:
        """Rows of words (n_samples, n_words)."""
        parts = [arrays[name].reshape(len(arrays[name]), -1) for name in self.names]
        parts = [part.astype(np.int32) if part.dtype == bool else part for part in parts]
        return np.hstack([np.ascontiguousarray(part).view(np.int32) for part in parts])

    @property
    def masks(self) -> list[str]:
        """Names of the masks of sequences; none without the attention mask."""
        masks = [k for k, s in zip(self.names, self.shapes) if "mask" in k and s == (None,)]
        return masks if MASK in masks else []

    def unpack(self, x: Tensor, only: Collection[str] | None = None) -> dict[str, Tensor]:
        """The arrays, or only some, as copies, from rows of words."""
        length, start, arrays = self.length(x.shape[1]), 0, dict[str, Tensor]()
        for name, dtype, shape in zip(self.names, self.dtypes, self.shapes):
            sizes = [length if n is None else n for n in shape]
            end = start + _WORDS[dtype] * prod(sizes)
            if only is None or name in only:
                words = x[:, start:end].clone(memory_format=torch.contiguous_format)
                values = words != 0 if dtype == "bool" else words.view(getattr(torch, dtype))
                arrays[name] = values.view(len(x), *sizes)
            start = end
        return arrays

    def mask(self, arrays: Mapping[str, Tensor]) -> Tensor:
        """Whether a mask has a 1 at a step of a row."""
        return torch.stack([arrays[name] != 0 for name in self.masks]).any(dim=0)

    def lengths_in(self, arrays: Mapping[str, Tensor]) -> Tensor:
        """Position of the last 1 in the masks of each row, counted from 1; at least 1."""
        mask = self.mask(arrays)
        position = torch.arange(1, mask.shape[1] + 1, device=mask.device)
        return (position * mask).amax(dim=1).clamp(min=1)

    def lengths(self, X: Any) -> Tensor:
        """The same, of rows of words."""
        return self.lengths_in(self.unpack(torch.as_tensor(X[:]), self.masks))


class NamedRows(nn.Module):
    """First layer of a network that takes arrays by name: it unpacks rows.

    With an attention mask, a batch `is_cut` to its longest row after a trial: padding costs time,
    and changes no result of a module that reads the mask. A module that cannot be cut, or whose
    output depends on the padding, gets whole rows.
    """

    is_cut = False

    def __init__(self, layout: Layout) -> None:
        super().__init__()
        self.layout = layout

    def forward(self, x: Tensor | dict[str, Tensor]) -> dict[str, Tensor]:
        """The arrays of rows of words; the inputs of a file are such arrays already."""
        if isinstance(x, dict):
            return x
        arrays = self.layout.unpack(x)
        if not self.is_cut:
            return arrays
        end = slice(cut_length(int(self.layout.lengths_in(arrays).max()), x.device.type))
        for name, shape in zip(self.layout.names, self.layout.shapes):
            if None in shape:
                parts = [end if size is None else slice(None) for size in (0, *shape)]
                arrays[name] = arrays[name][tuple(parts)]
        return arrays

    def lengths(self, X: Any) -> Tensor | None:
        """The length of each row of words; None if batches are not cut."""
        return self.layout.lengths(X) if self.is_cut else None

    def shorten(self, rows: Tensor) -> Tensor:
        """The first rows with their first token alone, and padding as in some row after it.

        A maximum over all steps, say, shows that it reads padding only where few tokens are left.
        """
        arrays, few = self.layout.unpack(rows), range(min(N_SHORT, len(rows)))
        mask = self.layout.mask(arrays)
        first, gaps = mask.int().argmax(dim=1)[few], (~mask).nonzero().tolist()
        for name, shape in zip(self.layout.names, self.layout.shapes):
            for axis in (i for i, size in enumerate(shape, 1) if size is None):
                steps = arrays[name].movedim(axis, 1)
                padding = steps[tuple(gaps[0])].clone() if gaps else steps[few, 1:]
                steps[few, 0] = steps[few, first]
                steps[few, 1:] = 0 if name in self.layout.masks else padding
        return torch.as_tensor(self.layout.pack({k: v.numpy()[few] for k, v in arrays.items()}))
