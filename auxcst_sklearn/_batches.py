"""Training examples in memory, and their batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.utils.data import Dataset

from ._scaling import CostScale, CostStatistics
from .losses import Loss, Target

if TYPE_CHECKING:
    from ._net import CostNet

# Batches are cut from this many bytes of examples at a time: few enough to stay in the cache.
GATHER_BYTES = 2**20


def as_tensor(array: np.ndarray) -> Tensor:
    """Share the memory of an array, unless torch would refuse its strides or must not write."""
    shareable = array.flags.writeable and min(array.strides) >= 0
    return torch.from_numpy(array if shareable else array.copy())


def densify(X: np.ndarray | sparse.csr_matrix) -> Tensor:
    """Rows as a dense tensor."""
    return torch.from_numpy(X.toarray()) if sparse.issparse(X) else as_tensor(X)


def fits(n_bytes: int, device: str) -> bool:
    """Whether so much of a training set may lie on a device, beside a network and its batches."""
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
    """Examples (x, c, label, weight) in memory; indexing gives some of them on the device.

    Costs are one row per example, or with `per_class` one row per class, gathered by label when
    they are asked for. Sparse rows stay sparse until then, and those that do not fit on the
    device stay where they are.
    """

    def __init__(
        self,
        X: np.ndarray | sparse.csr_matrix,
        label: np.ndarray,
        cost: np.ndarray,
        weight: np.ndarray | None,
        *,
        per_class: bool,
        device: str,
    ) -> None:
        self.device = device
        self.X = X if sparse.issparse(X) else as_tensor(X)
        self.on_device = isinstance(self.X, Tensor) and fits(self.X.nbytes, device)
        if self.on_device:
            self.X = self.X.to(device)
        self.label = torch.from_numpy(label).to(device)
        self.cost = torch.from_numpy(cost.astype(np.float32)).to(device)
        self.weight = None
        if weight is not None:
            self.weight = torch.from_numpy(weight.astype(np.float32)).to(device)
        self.per_class = per_class
        self.index: Tensor | None = None

    def part(self, index: np.ndarray) -> Rows:
        """Some of the rows, without a copy of them."""
        part = copy(self)
        part.index = torch.from_numpy(index)
        return part

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
        return x, Target(cost, label, None if self.weight is None else self.weight[index])


def epoch_means(means: Sequence[Tensor], sizes: Sequence[int]) -> np.ndarray:
    """Means over all rows, from those of the batches."""
    return np.average(torch.stack(list(means)).cpu().double().numpy(), axis=0, weights=sizes)


def join_targets(targets: Sequence[Target]) -> Target:
    """One target of several batches, one below the other."""
    return Target(*(None if field[0] is None else torch.cat(field) for field in zip(*targets)))


class Task:
    """What a network is trained on: rows, some of them perhaps held out, and their costs' unit."""

    second: Second | None = None
    loss: Loss | None = None  # the one that a training goes on with, if it is another

    def __init__(
        self,
        rows: Rows,
        split: tuple[np.ndarray, np.ndarray] | None,
        scale: CostScale,
        statistics: CostStatistics,
    ) -> None:
        self.train, self.valid = (rows, None) if split is None else map(rows.part, split)
        self.scale, self.statistics = scale, statistics


class Second(NamedTuple):
    """A network that is trained beside another, on a part of its rows, and the rest of them."""

    net: CostNet
    task: Task
    held_out: Rows


class Batches:
    """The batches of an epoch: shuffled by a generator, or in order without one.

    Rows are picked for several batches at once, each of which is a view of some: to pick them
    batch by batch takes as long as a small layer.
    """

    def __init__(self, rows: Rows, size: int, generator: torch.Generator | None = None) -> None:
        self.rows, self.size, self.generator = rows, size, generator

    def __iter__(self) -> Iterator[tuple[Tensor, Target]]:
        n = len(self.rows)
        if self.generator is None:
            order = torch.arange(n)
        else:
            order = torch.randperm(n, generator=self.generator)
        sizes = self._sizes(n)
        n_at_once = max(1, GATHER_BYTES // (self.size * self.rows.row_nbytes))
        gathered = [sizes[i : i + n_at_once] for i in range(0, len(sizes), n_at_once)]
        for index, parts in zip(order.split([sum(part) for part in gathered]), gathered):
            x, target = self.rows[index]
            views = (repeat(None) if field is None else field.split(parts) for field in target)
            for x_part, *target_part in zip(x.split(parts), *views):
                yield x_part, Target(*target_part)

    def __len__(self) -> int:
        return len(self._sizes(len(self.rows)))

    def _sizes(self, n: int) -> list[int]:
        whole, rest = divmod(n, self.size)
        sizes = [self.size] * whole
        if rest == 1 and whole:  # batch normalisation needs two rows
            sizes[-1] += 1
        elif rest:
            sizes.append(rest)
        return sizes
