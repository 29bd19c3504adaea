"""The threads of a computation: of torch, of linear algebra and of OpenMP."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from multiprocessing import context, current_process
from typing import Any

from threadpoolctl import ThreadpoolController

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
    import torch  # late, because the rule needs no torch

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


# ------------------------------------------------------------------------ other libraries


@cache
def _libraries(user_api: str) -> ThreadpoolController:
    """The libraries of a kind that are loaded; finding them takes 1 ms."""
    return ThreadpoolController().select(user_api=user_api)


def one_blas_thread() -> AbstractContextManager[Any]:
    """Limit the algebra of a few numbers to one thread: several only wait for each other.

    The number is one for all threads, so that only the main thread changes and restores it.
    """
    is_main = threading.current_thread() is threading.main_thread()
    return _libraries("blas").limit(limits=1) if is_main else nullcontext()


def one_openmp_thread() -> AbstractContextManager[Any]:
    """Limit computations of scikit-learn to one thread."""
    return _libraries("openmp").limit(limits=1)
