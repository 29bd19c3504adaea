"""Number of threads for the arithmetic of a fit or a prediction."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import context, current_process

import torch
from torch import nn

# Multiply-adds of a forward pass below which a second thread does not pay off.
FEWEST_MULTIPLICATIONS = 2e7

# Environment variable with the number of threads for large networks.
VARIABLE = "AUXCST_NUM_THREADS"

# Whether this process was forked from one that had imported this module.
_forked = False


def _note_fork() -> None:
    global _forked  # noqa: PLW0603
    _forked = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


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
    if multiplications < FEWEST_MULTIPLICATIONS or _is_fork():
        return 1
    if not (named := os.environ.get(VARIABLE)):
        return 1 if _is_worker() else usual
    if not (named.isdecimal() and int(named)):
        raise ValueError(
            f"The environment variable {VARIABLE}={named!r}; expected a positive integer, the "
            "number of threads of each fit."
        )
    return int(named)


def multiplications_per_row(module: nn.Module) -> float:
    """Multiply-adds of a forward pass; infinite with convolutions, which reuse each weight."""
    parameters = list(module.parameters())
    if any(parameter.dim() > 2 for parameter in parameters):
        return math.inf
    return float(sum(parameter.numel() for parameter in parameters))


def _is_worker() -> bool:
    """Whether this is a second thread or a daemonic process; loky workers are neither."""
    return threading.current_thread() is not threading.main_thread() or current_process().daemon


def _is_fork() -> bool:
    return _forked or isinstance(current_process(), getattr(context, "ForkProcess", ()))
