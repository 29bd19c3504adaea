"""Distributed fit by the ranks of an initialised `torch.distributed` group.

A rank that fails must not leave the others waiting. So there are only two kinds of collectives, and
each rank calls them in the same order: `Group.gather` outside of a training, and the sum of one
buffer of fixed size within it (`exchange.py`). A rank that fails takes part in the next collective
with its error, and all ranks end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np
import torch
from torch import distributed as dist

if dist.is_available():
    # Its functions have the default group of the moment of the import as default argument. torch's
    # optimizers import it late: then `destroy_process_group` neither frees the group nor ends its
    # threads, and one that still runs at exit can abort the process (pytorch issue 190489).
    import torch.distributed.nn  # noqa: F401


class OneProcess:
    """An ordinary fit by a single process."""

    rank, size = 0, 1

    def from_first(self, name: str, value: Any) -> Any:
        """The value of rank 0; `name` describes it in errors."""
        return value

    def check_same(self, digests: Callable[[], Mapping[str, str]]) -> None:
        """Raise an error if digests of data and parameters differ among the ranks."""

    def own_seed(self, seed: int) -> int:
        """Seed for random numbers that differ among the ranks."""
        return seed

    def own_gpu(self) -> str:
        """The GPU of this process."""
        return "cuda"


class Group(OneProcess):
    """All processes of the default group of `torch.distributed`, in one fit."""

    def __init__(self) -> None:
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.ended = False  # by an error that all ranks have received

    def gather(
        self, name: str, value: Any = None, *, error: BaseException | None = None
    ) -> list[Any]:
        """Values of all ranks; an error of one is raised on the others."""
        message = None if error is None else f"{type(error).__name__}: {error}".rstrip(": ")
        found: list[Any] = [None] * self.size
        with self.losses_named():
            dist.all_gather_object(found, (name, value, message))
        names, values, messages = zip(*found)
        failed = [f"rank {i} failed: {m}" for i, m in enumerate(messages) if m is not None]
        if failed and error is None:
            self.refuse("; ".join(failed), RuntimeError)
        if not failed and len(set(names)) > 1:
            at = ", ".join(f"rank {i} at {name}" for i, name in enumerate(names))
            self.refuse(f"The processes are not at the same place of one fit: {at}.", RuntimeError)
        return list(values)

    @contextmanager
    def losses_named(self) -> Iterator[None]:
        """Name the likely cause if a collective itself fails."""
        try:
            yield
        except RuntimeError as error:
            self.ended = True
            raise RuntimeError(
                f"Rank {self.rank} lost the other processes of the torch.distributed group "
                f"({error}). One of them has ended, or did not call fit. Start all of them anew; "
                "distributed=False fits by a process alone."
            ) from error

    def refuse(self, message: str, kind: type[Exception] = ValueError) -> NoReturn:
        """Raise an error that occurs on every rank."""
        self.ended = True
        raise kind(message)

    def fail(self, error: BaseException) -> None:
        """Make an error of this rank end the others too."""
        if not self.ended:
            self.ended = True
            with suppress(RuntimeError):  # raise this error, whatever the others do
                self.gather("an error", error=error)

    def from_first(self, name: str, value: Any) -> Any:
        return self.gather(name, value if self.rank == 0 else None)[0]

    def check_same(self, digests: Callable[[], Mapping[str, str]]) -> None:
        first, *others = self.gather("the comparison of the data", digests())
        differing = {
            f"rank {i} in {', '.join(names)}"
            for i, other in enumerate(others, 1)
            if (names := sorted(k for k in {*first, *other} if first.get(k) != other.get(k)))
        }
        if differing:
            self.refuse(
                "The processes of the torch.distributed group were given different data or "
                f"parameters: from rank 0 differ {'; '.join(sorted(differing))}. Expected the "
                "whole data on every rank, which takes its part of each batch. To fit a model of "
                "its own in each process, set distributed=False."
            )

    def own_seed(self, seed: int) -> int:
        if self.rank == 0:
            return seed
        return int(np.random.SeedSequence([seed, self.rank]).generate_state(1)[0])

    def own_device(self) -> AbstractContextManager[Any]:
        """Exchange objects on this rank's GPU if the group has only a GPU backend."""
        only_gpus = "cpu:" not in dist.get_backend_config()
        return torch.cuda.device(self.own_gpu()) if only_gpus else nullcontext()

    def own_gpu(self) -> str:
        local = os.environ.get("LOCAL_RANK")  # torchrun and Ray set it
        index = torch.cuda.current_device() if local is None else int(local)
        return f"cuda:{index % torch.cuda.device_count()}"


ONE_PROCESS = OneProcess()
_current: ContextVar[OneProcess] = ContextVar("processes", default=ONE_PROCESS)
_busy = threading.Lock()


def processes() -> OneProcess:
    """The processes of the current fit of this thread."""
    return _current.get()


def in_group() -> bool:
    """Whether this process is in an initialised group of several."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


@contextmanager
def joined(distributed: str | bool) -> Iterator[None]:
    """Distribute a fit over the processes of the group, if any; an error of one ends them all.

    Nested fits belong to the outer fit.
    """
    if distributed is False or _current.get() is not ONE_PROCESS or not in_group():
        yield
        return
    if not _busy.acquire(blocking=False):
        raise RuntimeError(
            "Two threads of a process call fit at once, within a torch.distributed group, where "
            "all ranks must fit the same models one after the other. Set distributed=False to fit "
            "by each process alone, or n_jobs=1 in a search."
        )
    group = Group()
    token = _current.set(group)
    try:
        with group.own_device():
            yield
            group.gather("the end")
    except BaseException as error:
        group.fail(error)
        raise
    finally:
        _current.reset(token)
        _busy.release()
