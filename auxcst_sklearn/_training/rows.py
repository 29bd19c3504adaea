"""The rows of a training, and their tensors for the network."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from .._inputs import lazy_rows
from .._inputs.arrays import as_tensor, densify, is_shareable
from .._inputs.sample import Sample
from ..losses import Target

# Rows of this many bytes are read and scaled at once.
READ_BYTES = 2**24

Batch = tuple[Tensor, Target]


class Rows:
    """Inputs and targets of rows; indexing returns some of them on the device.

    Costs are one row per sample, or one row per class, gathered by label for each batch. Sparse
    rows stay sparse until then, and rows that do not fit on the device stay in host memory.
    """

    # Positions of these rows in the data set, the fold of each row, and the fold left out.
    index: Tensor | None = None
    fold: tuple[Tensor, int] | None = None

    def __init__(self, data: Sample, device: str, lengths: Tensor | None = None) -> None:
        self.device = device
        self.lengths = lengths  # of sequences, if batches have rows of similar length
        self.X = data.X
        is_dense = isinstance(data.X, np.ndarray)
        # A tensor shares the memory of dense rows. Too many rows to copy stay an array.
        if is_dense and (is_shareable(data.X) or data.X.nbytes <= lazy_rows.DISK_BYTES):
            self.X = as_tensor(data.X)
        self.on_device = isinstance(self.X, Tensor) and has_room(device, self.X.nbytes)
        if self.on_device:
            self.X = self.X.to(device)
        costs = data.costs
        self.label = torch.from_numpy(costs.label).to(device)
        self.cost = torch.from_numpy(costs.values.astype(np.float32)).to(device)
        self.weight = self.matrices = None
        if data.weight is not None:
            weight = np.empty(len(data.weight), np.float32)  # without another copy in float64
            np.divide(data.weight, data.weight.mean(), out=weight, casting="same_kind")
            self.weight = torch.from_numpy(weight).to(device)
        if costs.matrices is not None:
            self.matrices = torch.from_numpy(costs.matrices).to(device)
        self.per_class = costs.per_class
        self.n_rows: int = self.X.shape[0]

    def __len__(self) -> int:
        return self.n_rows

    @property
    def row_nbytes(self) -> int:
        """Size of one row, when dense."""
        return int(self.X.dtype.itemsize * np.prod(self.X.shape[1:]))

    @property
    def in_blocks(self) -> bool:
        """Whether the rows are too many to shuffle individually."""
        on_gpu = self.on_device and self.X.device.type == "cuda"
        return not (sparse.issparse(self.X) or on_gpu) and self.X.nbytes > lazy_rows.LARGE_BYTES

    # ------------------------------------------------------------------ parts

    def _with(self, n_rows: int, **attributes: Any) -> Rows:
        changed = copy(self)
        vars(changed).update(n_rows=n_rows, **attributes)
        return changed

    def part(self, index: np.ndarray) -> Rows:
        """Some of the rows, without a copy of them."""
        return self._with(len(index), index=torch.from_numpy(index))

    def without(self, fold: Tensor, i: int) -> Rows:
        """The rows outside of fold i, without a list of them."""
        return self._with(len(self) - int((fold == i).sum()), fold=(fold, i))

    def include(self, number: Tensor) -> Tensor:
        """Mask of the row numbers that are outside of the fold."""
        if self.fold is None:
            return torch.ones_like(number, dtype=torch.bool)
        fold, i = self.fold
        return fold[number] != i

    def gathered(self, index: np.ndarray, weight: np.ndarray) -> Rows:
        """Some of the rows, copied, each counted `weight` times."""
        x, target = self[torch.from_numpy(index)]
        counted = torch.from_numpy(weight.astype(np.float32)).to(target.label.device)
        return self._with(
            len(index),
            X=x,
            label=target.label,
            cost=self.cost if self.per_class else target.cost,
            weight=counted if target.weight is None else counted * target.weight,
            matrices=target.matrices,
            on_device=True,
            lengths=None,
        )

    def held_out(self, parts: Sequence[np.ndarray]) -> list[Rows]:
        """Parts to evaluate on; smaller ones are padded with rows of weight 0."""
        if self.lengths is not None:
            parts = [index[self.lengths.numpy()[index].argsort(kind="stable")] for index in parts]
        size = max(map(len, parts))
        if min(map(len, parts)) == size:
            return [*map(self.part, parts)]
        return [self._padded(index, size) for index in parts]

    def _padded(self, index: np.ndarray, size: int) -> Rows:
        others = np.setdiff1d(np.arange(len(self)), index)[: size - len(index)]
        part = self.part(np.concatenate([index, others]))
        weight = torch.ones(len(self.label)) if self.weight is None else self.weight.clone()
        part.weight = weight.to(self.label.device)
        part.weight[torch.from_numpy(others).to(self.label.device)] = 0
        return part

    # ---------------------------------------------------------------- reading

    def __getitem__(self, index: Tensor) -> Batch:
        if self.index is not None:
            index = self.index[index]
        if self.on_device:
            return self.X[index], self._target(index)
        if isinstance(self.X, Tensor):
            x = self.X[index]
        else:
            parts = [part.numpy() for part in index.split(max(1, READ_BYTES // self.row_nbytes))]
            x = densify(self.X[parts[0]]) if len(parts) == 1 else self._dense(parts, len(index))
        return to_device(x, self.device), self._target(index)

    def _dense(self, parts: Sequence[Any], n: int) -> Tensor:
        """The n rows of several parts, which are read one after the other, as a dense tensor."""
        x, start = torch.empty(0), 0
        for part in parts:
            rows = densify(self.X[part])
            x = x if start else rows.new_empty((n, *rows.shape[1:]))
            x[start : start + len(rows)] = rows
            start += len(rows)
        return x

    def _target(self, index: Tensor) -> Target:
        label = self.label[index]
        cost = self.cost[label] if self.per_class else self.cost[index]
        weight = None if self.weight is None else self.weight[index]
        matrices = None if self.matrices is None else self.matrices[index]
        return Target(cost, label, weight, matrices)

    def read(self, blocks: Sequence[slice]) -> tuple[Batch, Tensor]:
        """Rows of the blocks, inputs on the host, and their numbers."""
        number = torch.cat([torch.arange(block.start, block.stop) for block in blocks])
        return (self._dense(blocks, len(number)), self._target(number)), number


def has_room(device: str, n_bytes: int) -> bool:
    """Whether a training set fits on a device, together with a network and its batches."""
    if torch.device(device).type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return n_bytes <= free / 2


def to_device(x: Tensor, device: str) -> Tensor:
    """Copy rows to the device; to a GPU asynchronously from pinned memory."""
    if torch.device(device).type == "cuda":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)
