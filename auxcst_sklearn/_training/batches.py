"""The rows of a training, their tensors for the network, and batches of them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from itertools import repeat
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from .._checks import lazy_rows
from ..costs._problem import Problem
from ..losses import Target
from .devices import as_tensor, densify, has_room, is_shareable, to_device
from .processes import ALONE, Processes

# Rows of this many bytes are read and scaled at once.
READ_BYTES = 2**24

# Batches are sliced from this many bytes of rows at a time, which fit into the cache.
GATHER_BYTES = 2**20

# Size in bytes of a block of neighbouring rows that is read at once, and of all blocks that are
# shuffled together. Smaller blocks mix a sorted file better, larger ones are read faster.
BLOCK_BYTES = 2**18
MIXED_BYTES = 2**26

# Batches whose sequences are sorted together, so that each has sequences of similar length.
SORTED_BATCHES = 8

Batch = tuple[Tensor, Target]


class Rows:
    """Inputs and targets of rows; indexing returns some of them on the device.

    Costs are one row per sample, or one row per class, gathered by label for each batch. Sparse
    rows stay sparse until then, and rows that do not fit on the device stay in host memory.
    """

    # Positions of these rows in the data set, the fold of each row, and the fold left out.
    index: Tensor | None = None
    fold: tuple[Tensor, int] | None = None

    def __init__(self, data: Problem, device: str, lengths: Tensor | None = None) -> None:
        self.device = device
        self.lengths = lengths  # of sequences, if batches have rows of similar length
        # (n, n_features), images (n, C, H, W), or words of arrays by name (n, n_words).
        self.X = data.X
        is_dense = isinstance(data.X, np.ndarray)
        # A tensor shares the memory of dense rows. Too many rows to copy stay an array.
        if is_dense and (is_shareable(data.X) or data.X.nbytes <= lazy_rows.DISK_BYTES):
            self.X = as_tensor(data.X)
        self.on_device = isinstance(self.X, Tensor) and has_room(device, self.X.nbytes)
        if self.on_device:
            self.X = self.X.to(device)
        self.label = torch.from_numpy(data.label).to(device)
        # (K, D) if the samples of a class share their costs, which batches gather by label; else
        # (n, D).
        self.cost = torch.from_numpy(data.values.astype(np.float32)).to(device)
        self.weight = self.matrices = None
        if (weight := data.relative_weight) is not None:
            self.weight = torch.from_numpy(weight.astype(np.float32)).to(device)
        if data.is_known:  # (n, K, D): one matrix for each payment
            self.matrices = torch.from_numpy(data.costs).to(device)
        self.per_class = data.kind == "matrix"
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

    def take(self, index: np.ndarray) -> Rows:
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

    def gather(self, index: np.ndarray, weight: np.ndarray) -> Rows:
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
            return [*map(self.take, parts)]
        return [self._pad(index, size) for index in parts]

    def _pad(self, index: np.ndarray, size: int) -> Rows:
        # The networks are evaluated side by side, which needs as many rows of each. With folds of
        # 100, 100 and 99 rows, the third one gets a row of another fold, which counts nothing.
        others = np.setdiff1d(np.arange(len(self)), index)[: size - len(index)]
        padded = self.take(np.concatenate([index, others]))
        weight = torch.ones(len(self.label)) if self.weight is None else self.weight.clone()
        padded.weight = weight.to(self.label.device)
        padded.weight[torch.from_numpy(others).to(self.label.device)] = 0
        return padded

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


# ---------------------------------------------------------------------------------- batches


class Batches:
    """The batches of an epoch: shuffled by a generator of each set, or in order without generators.

    Those of all sets lie side by side: inputs (n_sets, n_samples, ...), targets in one. If sets
    differ in size, each epoch leaves out different rows. Each of several processes has its
    part of every batch, or all rows of one that is too small to be divided.
    """

    def __init__(
        self,
        sets: Sequence[Rows],
        size: int,
        generators: Sequence[torch.Generator] | None = None,
        group: Processes = ALONE,
    ) -> None:
        n = min(map(len, sets))
        least = 1  # batch normalisation needs two rows
        if generators is not None:
            size = even_size(n, size)
            least = max(1, size // 4)
        self.sets, self.size, self.generators = sets, size, generators
        self.group = group
        # In each set, of all processes: 130 training rows in batches of 32 at most are five of 26.
        self.sizes = batch_sizes(n, size, least)

    def __len__(self) -> int:
        return len(self.sizes)

    def __iter__(self) -> Iterator[Batch]:
        generators: Any = self.generators or repeat(None)
        iterators = [*map(self._of_set, self.sets, generators)]
        for _ in self.sizes:
            yield self._side_by_side(map(next, iterators))

    def _part_of(self, batch: Tensor) -> Tensor:
        """The rows of this process in a batch; batch normalisation needs two."""
        n, rank, size = len(batch), self.group.rank, self.group.size
        return batch[n * rank // size : n * (rank + 1) // size] if n >= 2 * size else batch

    def epoch_means(self, means: Tensor) -> np.ndarray:
        """Means over all rows, from the means of the batches of this process."""
        if self.group.size == 1:
            return np.average(means.cpu().double().numpy(), axis=0, weights=self.sizes)
        n_own = [len(self._part_of(torch.arange(size))) for size in self.sizes]
        weights = np.where(np.equal(n_own, self.sizes), np.divide(n_own, self.group.size), n_own)
        share = torch.tensordot(means.new_tensor(weights / sum(self.sizes)), means, dims=1)
        return self.group.sum(share).cpu().double().numpy()

    def _of_set(self, rows: Rows, generator: torch.Generator | None) -> Iterator[Batch]:
        """Views of the rows of several batches: selecting each takes as long as a small layer."""
        sizes = self.sizes
        # The numbers of the rows of an epoch, such as 7, 0, 12, ..., in this set.
        if generator is None:
            order = torch.arange(sum(sizes))
        else:
            order = torch.randperm(len(rows), generator=generator)[: sum(sizes)]
            if rows.lengths is not None:
                length = rows.lengths[order if rows.index is None else rows.index[order]]
                order = by_length(order, length, self.size, generator)
        if self.group.size > 1:
            own = [self._part_of(batch) for batch in order.split(sizes)]
            order, sizes = torch.cat(own), [*map(len, own)]
        # Rows of several batches are selected by one operation, and are then split into views.
        n_at_once = max(1, GATHER_BYTES // (self.size * rows.row_nbytes))
        gathered = [sizes[i : i + n_at_once] for i in range(0, len(sizes), n_at_once)]
        for index, parts in zip(order.split([*map(sum, gathered)]), gathered):
            x, target = rows[index]
            views = [
                repeat(None) if field is None else iter(field.split(parts)) for field in target
            ]
            xs = [*reversed(x.split(parts))]
            del x  # so that the memory of large batches can be released
            while xs:
                yield xs.pop(), Target(*map(next, views))

    def _side_by_side(self, parts: Iterator[Batch]) -> Batch:
        """One batch of all sets, which are read one after the other, because they may be large."""
        if len(self.sets) == 1:
            x, target = next(parts)
            return x.unsqueeze(0), target
        x, targets = torch.empty(0), []
        for i in range(len(self.sets)):
            own, target = next(parts)
            if i == 0:
                x = own.new_empty((len(self.sets), *own.shape))
            x[i] = own
            targets.append(target)
            del own
        return x, join_targets(targets)


class BlockBatches(Batches):
    """The batches of rows that are too many to be shuffled one by one.

    Blocks of neighbouring rows are read in random order, and the rows of many blocks are shuffled
    together. All networks use rows of the same blocks at about the same time, so that each block is
    read once.
    """

    generators: Sequence[torch.Generator]

    def __iter__(self) -> Iterator[Batch]:
        # A queue has the rows of a network that were read and not used yet. Networks leave out
        # other folds, so that one of them needs the next blocks first, and all read them then.
        device, queues = self.sets[0].device, [_Queue() for _ in self.sets]
        blocks = self._blocks()
        for size in self.sizes:
            while min(map(len, queues)) < size:
                for queue in queues:
                    queue.copy_rest()
                self._read(next(blocks), queues)
            parts = [queue.take(size) for queue in queues]
            index = self._part_of(torch.arange(size))
            parts = [rows_of_batch(part, index) for part in parts] if len(index) < size else parts
            x, target = self._side_by_side(iter(parts))
            yield to_device(x, device), target

    def _blocks(self) -> Iterator[list[slice]]:
        """Blocks in random order, in groups that are shuffled together."""
        n, step = self.sets[0].X.shape[0], max(1, BLOCK_BYTES // self.sets[0].row_nbytes)
        order = torch.randperm(-(-n // step), generator=self.generators[0])
        for several in order.split(max(1, MIXED_BYTES // BLOCK_BYTES)):
            yield [slice(start, min(start + step, n)) for start in (several * step).tolist()]

    def _read(self, blocks: list[slice], queues: Sequence[_Queue]) -> None:
        """Read blocks, and give each network its training rows of them, shuffled."""
        batch, number = self.sets[0].read(blocks)
        for queue, rows, generator in zip(queues, self.sets, self.generators):
            order = torch.randperm(len(number), generator=generator)
            queue.parts.append((batch, order[rows.include(number[order])]))


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

    def take(self, n: int) -> Batch:
        """The next n rows."""
        taken = []
        while n:
            batch, index = self.parts.pop(0)
            taken.append(rows_of_batch(batch, index[:n]))
            if len(index) > n:
                self.parts.insert(0, (batch, index[n:]))
            n -= min(n, len(index))
        if len(taken) == 1:
            return taken[0]
        xs, targets = zip(*taken)
        return torch.cat(xs), join_targets(targets)


def shuffled_batches(
    sets: Sequence[Rows], size: int, generators: Sequence[torch.Generator], *more: Any
) -> Batches:
    """The shuffled batches of an epoch."""
    cls = BlockBatches if sets[0].in_blocks else Batches
    return cls(sets, size, generators, *more)


def by_length(order: Tensor, length: Tensor, size: int, generator: torch.Generator) -> Tensor:
    """Shuffled rows such that batches have sequences of similar length, in random order."""
    # Rows are shuffled already. Each run of eight batches is sorted by length and cut into batches
    # again; then the batches change places, so that no epoch begins with the shortest sequences.
    n_batches = len(order) // size
    whole, rest = order[: n_batches * size], order[n_batches * size :]
    parts = zip(whole.split(SORTED_BATCHES * size), length.split(SORTED_BATCHES * size))
    alike = [part[of_part[: len(part)].argsort(stable=True)] for part, of_part in parts]
    batches = torch.cat([*alike, whole[:0]]).view(n_batches, size)
    return torch.cat([batches[torch.randperm(n_batches, generator=generator)].flatten(), rest])


def even_size(n: int, size: int) -> int:
    """The size of training batches: smaller than `size` where that would leave a few rows.

    A step with few rows is as long as any other. One with two rows in each epoch raises the cost of
    a network with batch normalisation by several percent.
    """
    return -(-n // -(-n // size)) if n % size <= size // 4 else size


def batch_sizes(n: int, size: int, least: int) -> list[int]:
    """Sizes of the batches of n rows; a rest of at most `least` rows joins the last one."""
    whole, rest = divmod(n, size)
    sizes = [size] * whole
    if whole and rest <= least:
        sizes[-1] += rest
    elif rest:
        sizes.append(rest)
    return sizes


def rows_of_batch(batch: Batch, index: Tensor) -> Batch:
    """Some of the rows of a batch, by positions or a mask."""
    x, target = batch
    fields: Any = (None if field is None else field[index] for field in target)
    return x[index], Target(*fields)


def join_targets(targets: Sequence[Target]) -> Target:
    """Concatenate several targets."""
    fields: Any = (None if field[0] is None else torch.cat(field) for field in zip(*targets))
    return Target(*fields)
