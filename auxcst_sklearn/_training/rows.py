"""Training examples on a device, or on their way to it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.data import Dataset

from ..losses import Target
from .training_set import TrainingSet


def as_tensor(array: np.ndarray) -> Tensor:
    """Share the memory of an array, unless torch would refuse its strides or must not write."""
    shareable = array.flags.writeable and min(array.strides) >= 0
    return torch.from_numpy(array if shareable else array.copy())


def densify(X: np.ndarray | sparse.csr_matrix) -> Tensor:
    """Rows as a dense tensor."""
    return as_tensor(X) if isinstance(X, np.ndarray) else torch.from_numpy(X.toarray())


def has_room(device: str, n_bytes: int) -> bool:
    """Whether a training set fits on a device, beside a network and its batches."""
    if torch.device(device).type != "cuda":
        return True
    free, _ = torch.cuda.mem_get_info(device)
    return n_bytes <= free / 2


def to_device(x: Tensor, device: str) -> Tensor:
    """Copy rows to the device; to a GPU from pinned memory, while it goes on computing."""
    if torch.device(device).type == "cuda":
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


class Rows(Dataset):
    """Examples (x, target) in memory; indexing returns some of them on the device.

    Costs are one row per example, or one row per class, gathered by label for each batch. Sparse
    rows stay sparse until then, and rows that do not fit on the device stay where they are.
    """

    def __init__(self, data: TrainingSet, device: str) -> None:
        self.device = device
        self.X = data.X if sparse.issparse(data.X) else as_tensor(data.X)
        self.on_device = isinstance(self.X, Tensor) and has_room(device, self.X.nbytes)
        if self.on_device:
            self.X = self.X.to(device)
        self.label = torch.from_numpy(data.label).to(device)
        self.cost = torch.from_numpy(data.cost.astype(np.float32)).to(device)
        self.weight = None
        if data.weight is not None:
            weight = data.weight / data.weight.mean()
            self.weight = torch.from_numpy(weight.astype(np.float32)).to(device)
        self.matrices = None
        if data.matrices is not None:
            self.matrices = torch.from_numpy(data.matrices).to(device)
        self.per_class = data.per_class
        self.index: Tensor | None = None

    def part(self, index: np.ndarray) -> Rows:
        """Some of the rows, without a copy of them."""
        part = copy(self)
        part.index = torch.from_numpy(index)
        return part

    def held_out(self, parts: Sequence[np.ndarray]) -> RowSets:
        """Parts to evaluate on; where they differ in size, smaller ones get rows of no weight."""
        size = max(map(len, parts))
        if min(map(len, parts)) == size:
            return RowSets([self.part(index) for index in parts])
        return RowSets([self._padded(index, size) for index in parts])

    def _padded(self, index: np.ndarray, size: int) -> Rows:
        others = np.setdiff1d(np.arange(len(self)), index)[: size - len(index)]
        part = self.part(np.concatenate([index, others]))
        weight = self.weight
        weight = (
            torch.ones_like(self.label, dtype=torch.float32) if weight is None else weight.clone()
        )
        weight[torch.from_numpy(others).to(weight.device)] = 0
        part.weight = weight
        return part

    def shared(self, n_networks: int) -> RowSets:
        """These rows for each of several networks."""
        return RowSets([self] * n_networks)

    @property
    def sets(self) -> list[Rows]:
        """These rows, as the one set of a network; a stack has several."""
        return [self]

    @property
    def row_nbytes(self) -> int:
        """Size of one example, when dense."""
        return self.X.dtype.itemsize * int(np.prod(self.X.shape[1:]))

    def __len__(self) -> int:
        return self.X.shape[0] if self.index is None else len(self.index)

    def __getitem__(self, index: Tensor) -> tuple[Tensor, Target]:
        if self.index is not None:
            index = self.index[index]
        if self.on_device:
            x = self.X[index]
        elif isinstance(self.X, Tensor):
            x = to_device(self.X[index], self.device)
        else:
            x = to_device(densify(self.X[index.numpy()]), self.device)
        label = self.label[index]
        cost = self.cost[label] if self.per_class else self.cost[index]
        weight, matrices = (f if f is None else f[index] for f in (self.weight, self.matrices))
        return x, Target(cost, label, weight, matrices)


class RowSets(Dataset):
    """Sets of rows for the networks of a stack; an epoch has as many as the smallest."""

    def __init__(self, sets: Sequence[Rows]) -> None:
        self.sets = list(sets)

    def __len__(self) -> int:
        return min(map(len, self.sets))


AnyRows = Rows | RowSets
