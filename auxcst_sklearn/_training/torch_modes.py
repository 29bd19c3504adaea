"""How torch computes meanwhile: its threads, modes and random numbers."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import context, current_process

import numpy as np
import torch

from ..modules._layers import SEEDING

# Multiply-adds of a forward pass below which a second thread pays off little or not at all. Where
# the cores are busy it costs much: each of a hundred operations of a step waits for both threads.
FEWEST_MULTIPLICATIONS = 1e8

# Environment variable with the number of threads for large networks.
VARIABLE = "AUXCST_NUM_THREADS"

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


# -------------------------------------------------------------------------- modes, and numbers

_DEVICE_TYPES = ("cpu", "cuda", "mps", "xpu")


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
        for device_type in autocasts:
            # The cache of an inner autocast lasts as long as the outer one, with weights of earlier
            # steps.
            stack.enter_context(torch.autocast(device_type, enabled=False, cache_enabled=False))
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
