"""Batches of rows: of one set for a network, of several side by side for a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

import numpy as np
import torch
from torch import Tensor

from ..losses import Target
from .rows import Rows

# Batches are sliced from this many bytes of examples at a time, which fit into the cache.
GATHER_BYTES = 2**20

# From ordered rows: the rows of this process in each batch, and the sizes of its batches.
OwnPart = Callable[[Tensor, list[int]], tuple[Tensor, list[int]]]


class Batches:
    """The batches of an epoch: shuffled by a generator, or in order without one.

    Rows are selected for several batches at once, each of which is a view: selecting them batch by
    batch takes as long as a small layer. With more than `n_rows` rows, each epoch leaves out
    different ones. In distributed training each process has an `own_part` of every batch; see
    `distributed.py`.
    """

    def __init__(
        self,
        rows: Rows,
        size: int,
        generator: torch.Generator | None = None,
        n_rows: int | None = None,
        own_part: OwnPart | None = None,
    ) -> None:
        self.rows, self.size, self.generator = rows, size, generator
        self.own_part = own_part
        self.n_rows = len(rows) if n_rows is None else n_rows

    def __iter__(self) -> Iterator[tuple[Tensor, Target]]:
        n = self.n_rows
        if self.generator is None:
            order = torch.arange(n)
        else:
            order = torch.randperm(len(self.rows), generator=self.generator)[:n]
        sizes = batch_sizes(n, self.size)
        if self.own_part is not None:
            order, sizes = self.own_part(order, sizes)
        n_at_once = max(1, GATHER_BYTES // (self.size * self.rows.row_nbytes))
        gathered = [sizes[i : i + n_at_once] for i in range(0, len(sizes), n_at_once)]
        for index, parts in zip(order.split([sum(part) for part in gathered]), gathered):
            x, target = self.rows[index]
            views = (repeat(None) if field is None else field.split(parts) for field in target)
            for x_part, *target_part in zip(x.split(parts), *views):
                yield x_part, Target(*target_part)

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows of the batches, of all processes together."""
        return batch_sizes(self.n_rows, self.size)


def batch_sizes(n: int, size: int) -> list[int]:
    """Sizes of the batches of n rows."""
    whole, rest = divmod(n, size)
    sizes = [size] * whole
    if rest == 1 and whole:  # batch normalisation needs two rows
        sizes[-1] += 1
    elif rest:
        sizes.append(rest)
    return sizes


class StackedBatches:
    """The batches of several sets of rows: inputs (n_sets, n_samples, ...), targets in one."""

    def __init__(self, parts: Sequence[Batches]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[tuple[Tensor, Target]]:
        for batches in zip(*self.parts):
            xs, targets = zip(*batches)
            yield torch.stack(xs), join_targets(targets)

    def __len__(self) -> int:
        return len(self.parts[0])

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows of the batches, in each set."""
        return self.parts[0].sizes


def join_targets(targets: Sequence[Target]) -> Target:
    """Concatenate several targets."""
    return Target(*(None if field[0] is None else torch.cat(field) for field in zip(*targets)))


def split_target(target: Target, n: int) -> list[Target]:
    """The targets that `join_targets` joined."""
    fields = (repeat(None, n) if field is None else field.chunk(n) for field in target)
    return [Target(*parts) for parts in zip(*fields)]


def epoch_means(means: Tensor, sizes: Sequence[int]) -> np.ndarray:
    """Means over all rows, from those of the batches."""
    return np.average(means.cpu().double().numpy(), axis=0, weights=sizes)
