"""Distributed fit by the ranks of an initialised `torch.distributed` group.

A rank that raises an error must not leave the others waiting. So there are only two kinds of
collectives, and each rank calls them in the same order: `Group.gather` outside of a training, and
the sum of one buffer within it. A rank that fails takes part in the next one, and all ranks end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from itertools import chain
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn.modules.batchnorm import _NormBase

from .runtime import uninterrupted

if dist.is_available():
    # Its functions have the default group of the moment of the import as default argument. torch's
    # optimizers import it late: then `destroy_process_group` neither frees the group nor ends its
    # threads, and one that still runs at exit can abort the process (pytorch issue 190489).
    import torch.distributed.nn  # noqa: F401

# A part of a batch has at least two rows, which batch normalisation needs.
MIN_PART_ROWS = 2

# Number of sums between checks whether a rank has ended: on a GPU a check waits for all results.
SUMS_PER_CHECK = {"cpu": 1, "cuda": 16}


class OneProcess:
    """An ordinary fit by a single process."""

    rank, size = 0, 1

    def from_first(self, name: str, value: Any) -> Any:
        """The value of rank 0; `name` describes it in errors."""
        return value

    def check_same(self, digests: Callable[[], Mapping[str, str]]) -> None:
        """Raise an error if digests of data and parameters differ among the ranks."""

    def rank_seed(self, seed: int) -> int:
        """Seed for random numbers that differ among the ranks."""
        of_rank = np.random.SeedSequence([seed, self.rank]).generate_state(1)
        return int(of_rank[0]) if self.rank else seed

    def rank_gpu(self) -> str:
        """The GPU of this process."""
        return "cuda"


class Group(OneProcess):
    """All processes of the default group of `torch.distributed`, in one fit."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.exchange: Exchange | None = None  # in a training
        self.ended = False  # by an error that all ranks have received

    def call(self, collective: Callable[..., Any], *arguments: Any) -> None:
        """Call a collective, and name the likely cause if it fails."""
        try:
            with uninterrupted():  # an interrupt could leave others waiting
                collective(*arguments)
        except RuntimeError as error:
            self.ended = True
            raise RuntimeError(
                f"Rank {self.rank} cannot reach the others of its torch.distributed group ({error})"
                ". If one has ended, or did not call fit, start all anew, or set distributed=False."
            ) from error

    def gather(self, name: str, value: Any = None, error: BaseException | None = None) -> list[Any]:
        """Values of all ranks; an error of one is raised on the others."""
        message = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
        of_ranks: list[Any] = [None] * self.size
        self.call(dist.all_gather_object, of_ranks, (name, value, message))
        names, values, messages = zip(*of_ranks)
        failed = [f"rank {i} failed: {m}" for i, m in enumerate(messages) if m is not None]
        if failed and error is None:
            self.refuse("; ".join(failed), RuntimeError)
        if not failed and len(set(names)) > 1:
            at = ", ".join(f"rank {i} at {name}" for i, name in enumerate(names))
            self.refuse(f"The processes are not at the same place of one fit: {at}.", RuntimeError)
        return list(values)

    def refuse(self, message: str, kind: type[Exception] = ValueError) -> NoReturn:
        """Raise an error that occurs on every rank."""
        self.ended = True
        raise kind(message)

    def fail(self, error: BaseException) -> None:
        """Make an error of this rank end the others too."""
        if self.ended:
            return
        self.ended = True
        with suppress(RuntimeError):  # raise this error, whatever the others do
            if self.exchange is None:
                self.gather("an error", error=error)
            else:
                self.exchange.end(None, error)

    def from_first(self, name: str, value: Any) -> Any:
        return self.gather(name, value if self.rank == 0 else None)[0]

    def check_same(self, digests: Callable[[], Mapping[str, str]]) -> None:
        first, *others = self.gather("the comparison of the data", digests())
        differing = [
            f"rank {i} in {', '.join(names)}"
            for i, other in enumerate(others, 1)
            if (names := sorted(k for k in {*first, *other} if first.get(k) != other.get(k)))
        ]
        if differing:
            self.refuse(
                "The processes of the torch.distributed group were given different data or "
                f"parameters: from rank 0 differ {'; '.join(differing)}. Expected the whole data "
                "on every rank, which takes its part of each batch. To fit a model of its own in "
                "each process, set distributed=False."
            )

    def rank_gpu(self) -> str:
        local = os.environ.get("LOCAL_RANK")  # torchrun and Ray set it
        index = torch.cuda.current_device() if local is None else int(local)
        return f"cuda:{index % torch.cuda.device_count()}"


ONE_PROCESS = OneProcess()
_current: ContextVar[OneProcess] = ContextVar("processes", default=ONE_PROCESS)
_busy = threading.Lock()


def processes() -> OneProcess:
    """The processes of the current fit of this thread."""
    return _current.get()


@contextmanager
def joined(distributed: str | bool) -> Iterator[None]:
    """Distribute a fit over the processes of the group, if any; an error of one ends them all.

    Nested fits belong to the outer fit.
    """
    is_group = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if distributed is False or not is_group or _current.get() is not ONE_PROCESS:
        yield
        return
    if not _busy.acquire(blocking=False):
        raise RuntimeError(
            "Two threads of a process call fit at once in a torch.distributed group, where all "
            "ranks must fit one after the other. Set distributed=False, or n_jobs=1 in a search."
        )
    group = Group()
    token = _current.set(group)
    only_gpus = "cpu:" not in dist.get_backend_config()  # they exchange objects, too
    try:
        with torch.cuda.device(group.rank_gpu()) if only_gpus else nullcontext():
            yield
            group.gather("the end")
    except BaseException as error:
        group.fail(error)
        raise
    finally:
        _current.reset(token)
        _busy.release()


class Exchange:
    """The sums of a training over the ranks of a group, by one buffer.

    Its last values are a loss, a number of rows, and the number of ranks whose training has ended,
    in whatever way; the values before them are for the gradients.
    """

    def __init__(self, group: Group, parameters: Sequence[nn.Parameter]) -> None:
        self.group, self.parameters = group, parameters
        self.sizes = [parameter.numel() for parameter in parameters]
        self.buffer = torch.zeros(sum(self.sizes) + 3, device=parameters[0].device)
        self.values, self.tail = self.buffer[:-3], self.buffer[-3:]
        self.sums_per_check = SUMS_PER_CHECK["cuda" if self.buffer.is_cuda else "cpu"]
        self.n_sums = 0

    def rank_part(self, order: Tensor, sizes: list[int]) -> tuple[Tensor, list[int]]:
        """The rows of this rank in each batch; all rows of a batch too small to be divided."""
        parts = [batch[slice(*self._bounds(len(batch)))] for batch in order.split(sizes)]
        return torch.cat(parts), list(map(len, parts))

    def _bounds(self, n: int) -> tuple[int, int]:
        rank, size = self.group.rank, self.group.size
        if n < MIN_PART_ROWS * size:
            return 0, n
        return n * rank // size, n * (rank + 1) // size

    @torch.no_grad()
    def average_gradients(self, loss: Tensor, n_rows: int) -> Tensor:
        """Set the gradients to those of the whole batch; return its loss."""
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        torch.cat([grad.reshape(-1) for grad in grads], out=self.values).mul_(n_rows)
        self._sum(loss=loss * n_rows, n_rows=n_rows)
        self.values /= self.tail[1]
        for parameter, part in zip(self.parameters, self.values.split(self.sizes)):
            if parameter.grad is not None:
                parameter.grad.copy_(part.view(parameter.shape))
            elif part.any():  # another rank has used the parameter
                parameter.grad = part.view(parameter.shape).clone()
        return self.tail[0] / self.tail[1]

    def average_statistics(self, module: nn.Module) -> None:
        """Batch normalisation uses the rows of the rank; predictions use the means of all ranks."""
        norms = [part for part in module.modules() if isinstance(part, _NormBase)]
        for statistic in chain(*((norm.running_mean, norm.running_var) for norm in norms)):
            if statistic is not None:
                statistic.copy_(self.sum(statistic) / self.group.size)

    def epoch_means(self, means: Tensor, sizes: Sequence[int]) -> np.ndarray:
        """Means over the rows of all ranks, the same on each."""
        bounds = np.array([self._bounds(size) for size in sizes])
        n_rows = bounds[:, 1] - bounds[:, 0]
        n_copies = np.where(n_rows == sizes, self.group.size, 1)
        weights = torch.from_numpy(n_rows / n_copies / sum(sizes))
        total = torch.tensordot(weights, means.cpu().double(), dims=1)
        return self.sum(total).cpu().double().reshape(total.shape).numpy()

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the values of all ranks."""
        sums = []
        for part in values.detach().reshape(-1).split(max(1, len(self.values))):
            self.values.zero_()[: len(part)] = part
            self._sum()
            sums.append(self.values[: len(part)].clone())
        return torch.cat(sums)

    def _sum(self, loss: Tensor | float = 0, n_rows: int = 0, ended: int = 0) -> None:
        self.tail.copy_(torch.tensor([0.0, n_rows, ended]))
        self.tail[0] = loss
        self.n_sums += 1  # before the sum, because Ctrl-C is raised right after it
        self.group.call(dist.all_reduce, self.buffer)
        if not ended and self._others_wait():
            self.end(None)  # raises an error

    def _others_wait(self) -> bool:
        """Whether all ranks have seen that one has ended, and meet."""
        return self.n_sums % self.sums_per_check == 0 and bool(self.tail[2])

    def end(self, result: Any, error: BaseException | None = None) -> list[Any]:
        """End the training of all ranks; a result is None on those that would continue.

        An error of one rank is raised on the others.
        """
        # An interrupt may come between a sum and its check, which the others have then done.
        while not self._others_wait():
            self.values.zero_()
            self._sum(ended=1)
        results = self.group.gather("the end of a training", result, error)
        if error is None and None in results:
            self.group.refuse(
                "Callbacks ended the training on some processes, but not on all; expected that "
                "they decide alike on every rank, as by values of the history.",
                RuntimeError,
            )
        return results


@contextmanager
def exchange(net: Any) -> Iterator[Exchange | None]:
    """The exchange of a training; all ranks begin and end it with the weights of rank 0."""
    group = processes()
    if not isinstance(group, Group):
        yield None
        return
    parameters = [p for part in net.optimizer_.param_groups for p in part["params"]]
    group.check_same(lambda: {"the shapes of the weights": str([p.shape for p in parameters])})
    group.call(_copy_from_first, net.module_)
    n_before, group.exchange = len(net.history), Exchange(group, parameters)
    yield group.exchange
    durations, *_ = group.exchange.end([record.get("dur") for record in net.history[n_before:]])
    group.exchange = None
    group.call(_copy_from_first, net.module_)
    for record, duration in zip(net.history[n_before:], durations):
        record["dur"] = duration


@torch.no_grad()
def _copy_from_first(module: nn.Module) -> None:
    for tensor in (*module.parameters(), *module.buffers()):
        whole = tensor.detach().clone(memory_format=torch.contiguous_format)
        dist.broadcast(whole, src=0)
        tensor.copy_(whole)
