"""The exchange between processes of one training: gradients, losses, and whether to continue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import torch
from skorch import NeuralNet
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.modules.batchnorm import _NormBase

from .batches import epoch_means
from .distributed import Group, processes

# A part of a batch has at least two rows, which batch normalisation needs.
FEWEST_ROWS = 2

# Number of sums between two checks of the flags: on a GPU a check waits for all results.
STEPS, GPU_STEPS = 1, 16


class NoExchange:
    """The training of one process."""

    def own_part(self, order: Tensor, sizes: list[int]) -> tuple[Tensor, list[int]]:
        """From the rows `order`: this rank's rows in each batch, and the sizes of its batches."""
        return order, sizes

    def average_gradients(
        self, parameters: Sequence[nn.Parameter], loss: Tensor, n_rows: int
    ) -> Tensor:
        """Set the gradients to those of the whole batch; return its loss."""
        return loss

    def average_statistics(self, module: nn.Module) -> None:
        """Average the running statistics of batch normalisation over all ranks."""

    def epoch_means(self, means: Tensor, sizes: Sequence[int]) -> np.ndarray:
        """Means over all rows, from those of batches of these sizes, or of this rank's parts."""
        return epoch_means(means, sizes)


class Exchange(NoExchange):
    """Sums over the ranks of a group, by one buffer.

    Its last values are a loss, a number of rows, and the numbers of ranks that have failed and that
    have finished; the values before them are for the gradients.
    """

    def __init__(self, group: Group, parameters: Sequence[nn.Parameter]) -> None:
        self.group = group
        sizes = [parameter.numel() for parameter in parameters]
        self.buffer = torch.zeros(sum(sizes) + 4, device=parameters[0].device)
        self.values, self.tail = self.buffer[:-4], self.buffer[-4:]
        parts = self.values.split(sizes)
        self.views = [part.view(p.shape) for part, p in zip(parts, parameters)]
        self.steps = GPU_STEPS if self.buffer.is_cuda else STEPS
        self.n_sums = 0

    # ------------------------------------------------------------------ parts

    def own_part(self, order: Tensor, sizes: list[int]) -> tuple[Tensor, list[int]]:
        """The rows of this rank in each batch; all rows of a batch too small to be divided."""
        own = [batch[slice(*self._bounds(len(batch)))] for batch in order.split(sizes)]
        return torch.cat(own), list(map(len, own))

    def _bounds(self, n: int) -> tuple[int, int]:
        rank, size = self.group.rank, self.group.size
        if n < FEWEST_ROWS * size:
            return 0, n
        return n * rank // size, n * (rank + 1) // size

    # ------------------------------------------------------------------- sums

    @torch.no_grad()
    def average_gradients(
        self, parameters: Sequence[nn.Parameter], loss: Tensor, n_rows: int
    ) -> Tensor:
        """Means over the rows of all ranks; each rank is weighted by its number of rows."""
        for parameter, view in zip(parameters, self.views):
            if parameter.grad is None:
                view.zero_()
            else:
                torch.mul(parameter.grad, n_rows, out=view)
        self._sum(loss=loss * n_rows, n_rows=n_rows)
        self.values /= self.tail[1]
        for parameter, view in zip(parameters, self.views):
            if parameter.grad is not None:
                parameter.grad.copy_(view)
            elif view.any():  # another rank has used the parameter
                parameter.grad = view.clone()
        return self.tail[0] / self.tail[1]

    def average_statistics(self, module: nn.Module) -> None:
        """Each rank normalises by its own rows; predictions use the mean of the statistics."""
        norms = [part for part in module.modules() if isinstance(part, _NormBase)]
        found: list[Any] = [b for n in norms for b in (n.running_mean, n.running_var)]
        found = [b for b in found if b is not None]
        if not found:
            return
        mean = self.sum(torch.cat(found)) / self.group.size
        for statistic, part in zip(found, mean.split(list(map(len, found)))):
            statistic.copy_(part)

    def epoch_means(self, means: Tensor, sizes: Sequence[int]) -> np.ndarray:
        """Means over the rows of all ranks, the same on each."""
        bounds = np.array([self._bounds(size) for size in sizes])
        own = bounds[:, 1] - bounds[:, 0]
        n_copies = np.where(own == sizes, self.group.size, 1)
        weights = torch.from_numpy(own / n_copies / sum(sizes))
        of_batches = means.cpu().double()
        total = torch.tensordot(weights, of_batches, dims=1)
        return self.sum(total).cpu().double().reshape(total.shape).numpy()

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the values of all ranks."""
        values, found = values.detach().reshape(-1), []
        for part in values.split(max(1, len(self.values))):
            self.values.zero_()[: len(part)] = part
            self._sum()
            found.append(self.values[: len(part)].clone())
        return torch.cat(found)

    def _sum(
        self, loss: Tensor | float = 0, n_rows: int = 0, failed: int = 0, done: int = 0
    ) -> None:
        self.tail.copy_(torch.tensor([0.0, n_rows, failed, done]))
        self.tail[0] = loss
        self.n_sums += 1  # before the wait, because Ctrl-C is raised right after it
        with self.group.losses_named():
            dist.all_reduce(self.buffer)
        if self.is_looked_at:
            self._look(failed)

    @property
    def is_looked_at(self) -> bool:
        """Whether all ranks checked the flags of the last sum."""
        return self.n_sums % self.steps == 0

    def _look(self, failed: int) -> None:
        n_failed, n_done = self.tail[2:].tolist()
        if n_failed and not failed:
            self.group.gather("a training")  # raises the error of the others
        elif 0 < n_done < self.group.size and not failed:
            self.group.refuse(
                "Callbacks ended the training on some processes, but not on all; expected that "
                "they decide alike on every rank, as by values of the history.",
                RuntimeError,
            )

    # -------------------------------------------------------------------- end

    def finish(self) -> None:
        """End the training, together with all others."""
        self._repeat(done=1)

    def fail(self, error: BaseException) -> None:
        """Make an error of this rank end the training of the others."""
        if self.group.ended:
            return
        with suppress(RuntimeError):
            # Ctrl-C may come between a sum and the check of its flags, which the others have then
            # done.
            if not (self.is_looked_at and self.tail[2]):
                self._repeat(failed=1)
        self.group.fail(error)

    def _repeat(self, **flag: int) -> None:
        """Set a flag until all ranks check it."""
        while True:
            self.values.zero_()
            self._sum(**flag)
            if self.is_looked_at:
                return


NO_EXCHANGE = NoExchange()


@contextmanager
def exchange(net: NeuralNet) -> Iterator[NoExchange]:
    """The exchange of a training; all ranks begin and end it with the weights of rank 0."""
    group = processes()
    if not isinstance(group, Group):
        yield NO_EXCHANGE
        return
    parameters = [p for part in net.optimizer_.param_groups for p in part["params"]]
    _check_device(parameters[0].device)
    found = group.gather("the start of a training", [tuple(p.shape) for p in parameters])
    if any(shapes != found[0] for shapes in found):
        group.refuse("The networks of the processes differ in the shapes of their weights.")
    _copy_from_first(net.module_)
    n_before, session = len(net.history), Exchange(group, parameters)
    try:
        yield session
        session.finish()
    except BaseException as error:
        session.fail(error)
        raise
    _copy_from_first(net.module_)
    durations = [record.get("dur") for record in net.history[n_before:]]
    durations = group.from_first("the end of a training", durations)
    for record, duration in zip(net.history[n_before:], durations):
        record["dur"] = duration


def _check_device(device: torch.device) -> None:
    if f"{device.type}:" not in dist.get_backend_config():
        raise ValueError(
            f"The torch.distributed group has no backend for device='{device}'. Initialise it with "
            "backend='gloo' for the CPU, and 'nccl' for GPUs, or set distributed=False."
        )


@torch.no_grad()
def _copy_from_first(module: nn.Module) -> None:
    for tensor in (*module.parameters(), *module.buffers()):
        whole = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.broadcast(whole, src=0)
        tensor.copy_(whole)
