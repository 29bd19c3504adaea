"""The process around a computation: its threads and modes, and the other processes.

In a fit by the ranks of an initialised `torch.distributed` group, each takes its part of every
batch, and gradients are summed. A rank whose fit raises destroys its group: the others lose the
connection, and a launcher such as torchrun ends them.
"""

from __future__ import annotations

import logging
import math
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from multiprocessing import context, current_process
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch import distributed as dist
from torch.overrides import TorchFunctionMode

from ..modules._layers import SEEDING

# Multiply-adds of a forward pass below which a second thread pays off little or not at all. Where
# the cores are busy it costs much: each of a hundred operations of a step waits for both threads.
FEWEST_MULTIPLICATIONS = 1e8

# Environment variable with the number of threads for large networks.
VARIABLE = "AUXCST_NUM_THREADS"

_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")

# ------------------------------------------------------------------------------------- threads

# A process with another number was forked from this one, which has imported the module.
_PROCESS = os.getpid()


@contextmanager
def thread_limit(multiplications: float = math.inf) -> Iterator[None]:
    """Limit workers of a parallel run, and passes too small for two threads, to one thread.

    The workers of joblib's threading and multiprocessing backends each see all cores, unlike those
    of loky. A forked one would also wait forever for the threads of its parent. Large passes use
    the number in the environment variable AUXCST_NUM_THREADS, except in forks.
    """
    before = torch.get_num_threads()
    wanted = _threads(multiplications, before)
    if wanted == before:
        yield
        return
    # Not with threadpoolctl: torch's own MKL ignores OpenMP once a number of threads has been set.
    # In both libraries the limit applies to the calling thread only.
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _threads(multiplications: float, usual: int) -> int:
    forked = isinstance(current_process(), getattr(context, "ForkProcess", ()))
    is_fork = forked or os.getpid() != _PROCESS
    if multiplications < FEWEST_MULTIPLICATIONS or is_fork:
        return 1
    if named := os.environ.get(VARIABLE):
        return int(named)
    is_main = threading.current_thread() is threading.main_thread()
    return usual if is_main and not current_process().daemon else 1  # as workers of loky are


def multiplications_per_row(module: nn.Module) -> float:
    """Multiply-adds of a forward pass; infinite with convolutions, which reuse each weight."""
    n_multiplications = 0.0
    for part in module.modules():
        for parameter in part.parameters(recurse=False):
            n_multiplications += math.inf if hasattr(part, "kernel_size") else parameter.numel()
    return n_multiplications


# --------------------------------------------------------------------------------------- torch


class _DeterministicKernels:
    """The same kernels of cuDNN in each run, without which no seed reproduces convolutions.

    torch has one flag for all threads. The first of several fits and predictions that overlap sets
    it, and the last one restores what the caller had.
    """

    def __init__(self) -> None:
        self.lock, self.n_users, self.before = threading.Lock(), 0, (False, False)

    def __enter__(self) -> None:
        flags = torch.backends.cudnn
        with self.lock:
            if self.n_users == 0:
                self.before = flags.deterministic, flags.benchmark
                flags.deterministic, flags.benchmark = True, False
            self.n_users += 1

    def __exit__(self, *error: object) -> None:
        flags = torch.backends.cudnn
        with self.lock:
            self.n_users -= 1
            if self.n_users == 0:
                flags.deterministic, flags.benchmark = self.before


_DETERMINISTIC = _DeterministicKernels()


@contextmanager
def neutral_torch_modes() -> Iterator[None]:
    """Disable the caller's autocast, inference mode and no_grad.

    Only `precision` sets the arithmetic: losses, heads and costs would lose digits in half
    precision. A fit needs gradients. Meanwhile all threads use deterministic kernels of cuDNN.
    """
    with _DETERMINISTIC, _neutral_modes():
        yield


@contextmanager
def _neutral_modes() -> Iterator[None]:
    autocasts = [*filter(torch.is_autocast_enabled, _DEVICE_TYPES)]
    inference = torch.is_inference_mode_enabled()
    if not (autocasts or inference) and torch.is_grad_enabled():
        yield
        return
    with ExitStack() as stack:
        for kind in autocasts:
            # The cache of an inner autocast lasts as long as the outer one, with weights of earlier
            # steps.
            stack.enter_context(torch.autocast(kind, enabled=False, cache_enabled=False))
        if inference:
            stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        yield


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Make torch's initialisers draw float32 from `seed`; restore the generator and the type."""
    with SEEDING, torch.random.fork_rng(devices=[]):
        dtype = torch.get_default_dtype()
        torch.default_generator.manual_seed(seed)
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


def draw_seed(rng: np.random.RandomState) -> int:
    """Draw a seed."""
    return int(rng.randint(np.iinfo(np.int32).max))


def densify(X: Any) -> Tensor:
    """Rows as a dense tensor, which shares the memory of an array where it can."""
    if isinstance(X, Tensor):
        return X
    return as_tensor(X) if isinstance(X, np.ndarray) else torch.from_numpy(X.toarray())


def as_tensor(array: NDArray[Any]) -> Tensor:
    """Share the memory of an array, unless its strides are unsupported or it is read-only."""
    return torch.from_numpy(array if is_shareable(array) else array.copy())


def is_shareable(array: NDArray[Any]) -> bool:
    """Whether a tensor can share the memory of an array."""
    return bool(array.flags.writeable and min(array.strides) >= 0)


def is_gpu(device: str) -> bool:
    """Whether a device is a GPU, whose sizes differ from those of a CPU."""
    return torch.device(device).type == "cuda"


def free_memory(device: str) -> int | None:
    """Bytes that a GPU has left, with those that torch keeps for later; None of other devices."""
    if not is_gpu(device):
        return None
    kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    return int(torch.cuda.mem_get_info(device)[0] + kept)


def has_room(device: str, n_bytes: int) -> bool:
    """Whether a training set fits on a device, together with a network and its batches."""
    free = free_memory(device)
    return free is None or n_bytes <= free / 2


def to_device(x: Tensor, device: str) -> Tensor:
    """Copy rows to the device; to a GPU asynchronously from pinned memory."""
    if is_gpu(device):
        return x.pin_memory().to(device, non_blocking=True)
    return x.to(device)


class _Largest(TorchFunctionMode):
    """Notes the size of the largest tensor that a thread computes; views of weights are none."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.weights = {p.untyped_storage().data_ptr() for p in module.parameters()}
        self.nbytes = 0

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Compute a function, and note the size of its output."""
        output = function(*args, **(kwargs or {}))
        if isinstance(output, Tensor) and output.untyped_storage().data_ptr() not in self.weights:
            self.nbytes = max(self.nbytes, output.nbytes)
        return output


@torch.no_grad()
def largest_output(module: nn.Module, x: Tensor) -> int:
    """Bytes of the largest output of any layer for one of some samples, in evaluation mode."""
    with _Largest(module) as largest:
        module.eval()(x.unsqueeze(0))
    return -(-max(largest.nbytes, x.nbytes) // len(x))


# ----------------------------------------------------------------------------------------- log

logger = logging.getLogger("auxcst_sklearn")
logger.addHandler(logging.NullHandler())


def reports(verbose: int | bool) -> bool:
    """Whether a line has any reader, and is worth computing."""
    return bool(verbose) or (logger.isEnabledFor(logging.INFO) and processes().rank == 0)


def report(line: str, verbose: int | bool) -> None:
    """Log a line at INFO, and print it with `verbose`."""
    if verbose:
        print(line, flush=True)
    if reports(verbose=False):
        logger.info(line)


# ------------------------------------------------------------------------------ processes

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
