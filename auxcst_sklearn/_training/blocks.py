"""Batches of rows that are too many to shuffle one by one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ..losses import Target
from .batches import Batches, OwnPart, StackedBatches, batch_sizes, join_targets
from .rows import Batch, Rows, to_device

# Size in bytes of a block of neighbouring rows that is read at once, and of all blocks that are
# shuffled together. Smaller blocks mix a sorted file better, larger ones are read faster.
BLOCK_BYTES = 2**18
MIXED_BYTES = 2**26


def rows_per_block(row_nbytes: int) -> int:
    """Number of neighbouring rows that are read together."""
    return max(1, BLOCK_BYTES // row_nbytes)


def blocks_at_once() -> int:
    """Number of blocks whose rows are shuffled together."""
    return max(1, MIXED_BYTES // BLOCK_BYTES)


class _Queue:
    """Rows of one set that have been read, but not yet used."""

    def __init__(self) -> None:
        self.parts: list[tuple[Batch, Tensor]] = []

    def __len__(self) -> int:
        return sum(len(index) for _, index in self.parts)

    def copy_rest(self) -> None:
        """Copy the remaining rows, so that the memory of the others can be released."""
        if n := len(self):
            self.parts = [(self.take(n), torch.arange(n))]

    def add(self, batch: Batch, index: Tensor) -> None:
        """Add the rows `index` of those that were read."""
        self.parts.append((batch, index))

    def take(self, n: int) -> Batch:
        """The next n rows."""
        taken: list[Batch] = []
        rest = []
        for batch, index in self.parts:
            now, n = index[:n], n - min(n, len(index))
            if len(now):
                taken.append(_pick(batch, now))
            if len(now) < len(index):
                rest.append((batch, index[len(now) :]))
        self.parts = rest
        return taken[0] if len(taken) == 1 else _join(taken)


def _pick(batch: Batch, index: Tensor) -> Batch:
    x, target = batch
    return x[index], Target(*(None if field is None else field[index] for field in target))


def _join(batches: Sequence[Batch]) -> Batch:
    xs, targets = zip(*batches)
    return torch.cat(xs), join_targets(targets)


class BlockBatches:
    """The shuffled batches of an epoch of large sets: of one network, or side by side of a stack.

    Blocks of neighbouring rows are read in random order, and the rows of many blocks are shuffled
    together. All networks use rows of the same blocks at about the same time, so that each block is
    read once.
    """

    def __init__(
        self,
        sets: Sequence[Rows],
        size: int,
        generators: Sequence[torch.Generator],
        *,
        stacked: bool,
        own_part: OwnPart | None = None,
    ) -> None:
        self.sets, self.size, self.generators, self.stacked = sets, size, generators, stacked
        self.own_part = own_part

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def sizes(self) -> list[int]:
        """Numbers of rows of the batches in each set, of all processes together."""
        return batch_sizes(min(map(len, self.sets)), self.size)

    def __iter__(self) -> Iterator[Batch]:
        device, queues = self.sets[0].device, [_Queue() for _ in self.sets]
        blocks = self._blocks()
        for size in self.sizes:
            while min(map(len, queues)) < size:
                for queue in queues:
                    queue.copy_rest()
                self._read(next(blocks), queues)
            parts = [queue.take(size) for queue in queues]
            if self.own_part is not None:
                own, _ = self.own_part(torch.arange(size), [size])
                parts = [_pick(part, own) for part in parts] if len(own) < size else parts
            xs, targets = zip(*parts)
            if self.stacked:
                yield to_device(torch.stack(xs), device), join_targets(targets)
            else:
                yield to_device(xs[0], device), targets[0]

    def _blocks(self) -> Iterator[list[slice]]:
        """Blocks in random order, in groups that are shuffled together."""
        n, step = self.sets[0].X.shape[0], rows_per_block(self.sets[0].row_nbytes)
        order = torch.randperm(-(-n // step), generator=self.generators[0])
        for several in order.split(blocks_at_once()):
            yield [slice(start, min(start + step, n)) for start in (several * step).tolist()]

    def _read(self, blocks: list[slice], queues: Sequence[_Queue]) -> None:
        """Read blocks, and give each network its training rows of them, shuffled."""
        batch, number = self.sets[0].read(blocks)
        for queue, rows, generator in zip(queues, self.sets, self.generators):
            order = torch.randperm(len(number), generator=generator)
            queue.add(batch, order[rows.is_seen(number[order])])


AnyBatches = Batches | StackedBatches | BlockBatches


def shuffled(
    rows: Rows, size: int, generator: torch.Generator, own_part: OwnPart | None = None
) -> Batches | BlockBatches:
    """The shuffled batches of an epoch of one network."""
    if rows.in_blocks:
        return BlockBatches([rows], size, [generator], stacked=False, own_part=own_part)
    return Batches(rows, size, generator, own_part=own_part)
