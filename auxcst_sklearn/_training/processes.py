"""The processes of a fit: this one alone, or the ranks of a torch.distributed group; their log.

In a fit by the ranks of an initialised `torch.distributed` group, each takes its part of every
batch, and gradients are summed. A rank whose fit raises destroys its group: the others lose the
connection, and a launcher such as torchrun ends them.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch import distributed as dist

# torch's optimizers would import it later, and keep the group alive (pytorch issue 190489).
if dist.is_available():
    import torch.distributed.nn  # noqa: F401


class Processes(NamedTuple):
    """The processes of a fit: this one alone, or all ranks of the default group."""

    rank: int = 0
    size: int = 1

    def seed(self, seed: int) -> int:
        """Seed for random numbers that differ among the ranks."""
        of_rank = np.random.SeedSequence([seed, self.rank]).generate_state(1)
        return int(of_rank[0]) if self.rank else seed

    def gpu(self) -> str:
        """The GPU of this process; torchrun and Ray set LOCAL_RANK.

        Where CUDA_VISIBLE_DEVICES is set, each process may see GPUs of its own.
        """
        if self.size == 1:
            return "cuda"
        n_processes, n_gpus = int(os.environ.get("LOCAL_WORLD_SIZE", 1)), torch.cuda.device_count()
        if n_processes > n_gpus and "CUDA_VISIBLE_DEVICES" not in os.environ:
            raise ValueError(
                f"{n_processes} processes train on a machine with {n_gpus} GPUs; expected at most "
                f"one for each, as by torchrun --nproc-per-node={max(n_gpus, 1)}."
            )
        return f"cuda:{int(os.environ.get('LOCAL_RANK') or torch.cuda.current_device()) % n_gpus}"

    def from_first(self, value: Any) -> Any:
        """The value of rank 0."""
        values = [value]
        if self.size > 1:
            dist.broadcast_object_list(values, src=0)
        return values[0]

    def copy_from_first(self, module: nn.Module) -> None:
        """Set the weights of all ranks to the weights of rank 0."""
        weights = [*map(torch.detach, (*module.parameters(), *module.buffers()))]
        for tensor in weights if self.size > 1 else ():
            whole = tensor.clone(memory_format=torch.contiguous_format)
            dist.broadcast(whole, src=0)
            tensor.copy_(whole)

    def check_same(self, digests: Mapping[str, str]) -> None:
        """Raise an error if digests of data and parameters differ among the ranks."""
        of_ranks: list[Any] = [None] * self.size
        dist.all_gather_object(of_ranks, digests)
        first = of_ranks[0]
        for i, other in enumerate(of_ranks):
            if names := sorted(k for k in {*first, *other} if first.get(k) != other.get(k)):
                raise ValueError(
                    f"In the torch.distributed group, rank {i} was given another {', '.join(names)}"
                    " than rank 0; expected the whole data on every rank, which takes its part of "
                    "each batch. Set distributed=False for a model of its own in each process."
                )

    def sum(self, values: Tensor) -> Tensor:
        """Sum of the values of all ranks."""
        sums: Tensor = values.detach().clone(memory_format=torch.contiguous_format)
        dist.all_reduce(sums)
        return sums

    def average_gradients(self, weights: Sequence[Tensor], loss: Tensor, n_rows: int) -> Tensor:
        """Set the gradients of the whole batch; return its loss."""
        grads = [torch.zeros_like(w) if w.grad is None else w.grad for w in weights]
        means = [*(grad.reshape(-1) for grad in grads), loss.reshape(1), loss.new_ones(1)]
        *sums, total, n_all = self.sum(torch.cat(means) * n_rows).split([*map(len, means)])
        for weight, grad, whole in zip(weights, grads, sums):
            if weight.grad is not None or whole.any():  # another rank may have used it
                weight.grad = grad.copy_(whole.view(grad.shape) / n_all)
        mean: Tensor = total / n_all
        return mean.squeeze()

    def average_statistics(self, module: nn.Module) -> None:
        """Batch normalisation uses the rows of the rank; predictions use the means of all ranks."""
        for name, statistic in module.named_buffers():
            if name.endswith(("running_mean", "running_var")):
                statistic.copy_(self.sum(statistic) / self.size)


ALONE = Processes()
_current: ContextVar[Processes] = ContextVar("processes", default=ALONE)
_busy = threading.Lock()
_failure = ""  # of the fit that destroyed the group of this process


def processes() -> Processes:
    """The processes of the current fit of this thread."""
    return _current.get()


@contextmanager
def distributed_fit(distributed: str | bool) -> Iterator[None]:
    """Distribute a fit over the processes of the group, if any; nested fits belong to it.

    An error destroys the group, so that later fits, as of a search, do not meet the others in
    collectives of this one.
    """
    global _failure  # noqa: PLW0603
    has_group = dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1
    if distributed is False or processes().size > 1 or not (has_group or _failure):
        yield
        return
    if not has_group:
        raise RuntimeError(
            f"This process has left its torch.distributed group, because a fit failed ({_failure})."
            " Start all processes anew, or set distributed=False."
        )
    if not _busy.acquire(blocking=False):
        raise RuntimeError(
            "Two threads of a process call fit at once in a torch.distributed group; expected one "
            "fit after the other. Set distributed=False, or n_jobs=1 in a search."
        )
    group, _failure = Processes(dist.get_rank(), dist.get_world_size()), ""
    token = _current.set(group)
    only_gpus = "cpu:" not in dist.get_backend_config()  # they also exchange objects
    try:
        with torch.cuda.device(group.gpu()) if only_gpus else nullcontext():
            yield
    except BaseException as error:
        _failure = f"{type(error).__name__}: {error}"
        dist.destroy_process_group()
        raise
    finally:
        _current.reset(token)
        _busy.release()


# ----------------------------------------------------------------------------------------- log

logger = logging.getLogger("auxcst_sklearn")
logger.addHandler(logging.NullHandler())


def reports(verbose: int | bool) -> bool:
    """Whether a line has any reader, and is worth computing."""
    return processes().rank == 0 and (bool(verbose) or logger.isEnabledFor(logging.INFO))


def report(line: str, verbose: int | bool) -> None:
    """Log a line at INFO, and print it with `verbose`; of several processes, the first one does."""
    if not reports(verbose):
        return
    if verbose:
        print(line, flush=True)
    logger.info(line)
